"""Four boards sum their predictions. Boards of this kind have no HCCL: tensors go through the CPU and gloo.

On each board (RANK 0 to 3, MASTER_ADDR the address of board 0):

    RANK=0 WORLD_SIZE=4 MASTER_ADDR=192.168.1.101 MASTER_PORT=29500 anynpu run -n 1 --hbm 8G -- python predict.py

The rank comes from the environment. A program that says rank=0 on every board, as an article does, cannot work: four
processes then wait to be the first one.
"""
import os

import torch
import torch.distributed as dist
import torch_npu


def rk3588_allreduce(tensor):
    """The sum over all boards of a tensor on the NPU, by way of the CPU."""
    on_cpu = tensor.cpu()
    if not dist.is_initialized():
        dist.init_process_group("gloo", init_method="env://")  # RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
    dist.all_reduce(on_cpu, op=dist.ReduceOp.SUM)
    return on_cpu.npu()


def prediction(rank):
    return torch.randn(1024, generator=torch.Generator().manual_seed(int(os.environ.get("ANYNPU_SEED", "0")) + rank))


def main():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.npu.set_device(0)
    everybody = rk3588_allreduce(prediction(rank).npu())
    want = sum(prediction(r) for r in range(world))
    assert everybody.device.type == "npu"
    # Sums of four float32 in another order.
    torch.testing.assert_close(everybody.cpu(), want, rtol=1e-5, atol=1e-5)
    gib = torch.npu.get_device_properties(0).total_memory / 2**30
    print(f"board {rank} of {world}: sum {everybody.sum().item():.3f}, {gib:.1f} GiB", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
