"""A referee: torch's gloo all-reduce between two processes. Prints "BYTES best_us median_us" at rank 0."""
import os
import sys
import tempfile
import time

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
import torch
import torch.distributed as dist


def run(rank: int, ranks: int, path: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=ranks)
    for size in (4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20, 32 << 20, 64 << 20):
        data = torch.ones(size // 4)
        times = []
        for i in range(max(8, min(300, (1 << 27) // size)) + 3):
            data.fill_(1)
            dist.barrier()
            start = time.perf_counter()
            dist.all_reduce(data)
            times.append((time.perf_counter() - start) * 1e6)
        times = sorted(times[3:])
        if rank == 0:
            print(size, f"{times[0]:.2f} {times[len(times) // 2]:.2f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    path = os.path.join(tempfile.mkdtemp(), "store")
    children = []
    for r in range(1, ranks):
        pid = os.fork()
        if pid == 0:
            run(r, ranks, path)
            os._exit(0)
        children.append(pid)
    run(0, ranks, path)
    for pid in children:
        os.waitpid(pid, 0)
