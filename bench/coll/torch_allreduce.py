"""torch.distributed's all-reduce between processes of one host: gloo on the CPU, or hccl. Prints "BYTES best_us median_us" at rank 0.

    torch_allreduce.py BACKEND RANKS [RANK URL]        with RANK and URL: one rank, which meets the others there
"""
import os
import sys
import tempfile
import time


def run(backend: str, rank: int, ranks: int, url: str) -> None:
    if backend == "gloo":
        os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    if backend == "hccl":
        import torch_npu  # noqa: F401

        torch.npu.set_device(rank % torch.npu.device_count())
    wait = torch.npu.synchronize if backend == "hccl" else lambda: None
    dist.init_process_group(backend, init_method=url, rank=rank, world_size=ranks)
    for size in (4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20, 32 << 20, 64 << 20):
        data = torch.ones(size // 4, device="npu" if backend == "hccl" else "cpu")
        times = []
        for _ in range(max(8, min(300, (1 << 27) // size)) + 3):
            dist.barrier()
            wait()
            start = time.perf_counter()
            dist.all_reduce(data, op=dist.ReduceOp.MAX)  # sums would grow without end
            wait()
            times.append((time.perf_counter() - start) * 1e6)
        times = sorted(times[3:])
        if rank == 0:
            print(size, f"{times[0]:.2f} {times[len(times) // 2]:.2f}", flush=True)
    os._exit(0)  # libraries that do nothing have nothing to tear down


if __name__ == "__main__":
    backend, ranks = sys.argv[1], int(sys.argv[2])
    if len(sys.argv) > 3:
        run(backend, int(sys.argv[3]), ranks, sys.argv[4])
    path = os.path.join(tempfile.mkdtemp(), "store")
    children = []
    for r in range(ranks):
        pid = os.fork()
        if pid == 0:
            run(backend, r, ranks, f"file://{path}")
        children.append(pid)
    codes = [os.waitpid(pid, 0)[1] for pid in children]
    sys.exit(1 if any(codes) else 0)
