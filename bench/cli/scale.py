"""Data-parallel training with a fixed number of cores for each card. Prints "@WORK samples_a_second" of all cards together.

    python scale.py CARDS CORES SECONDS

Rank r keeps to its own CORES cores as long as there are any that no other rank has; each card's batch stays the same however many
there are. Started under `anynpu run`.
"""
from __future__ import annotations

import os
import sys
import tempfile
import time

BATCH = {"gpt": dict(n=8, vocab=2000, length=128), "mlp": dict()}
SHAPES = {"gpt": dict(vocab=2000, dim=256, heads=8, layers=4, length=128), "mlp": dict()}


def keep_to(cores: int, rank: int) -> None:
    usable = sorted(os.sched_getaffinity(0))
    first = rank * cores
    os.sched_setaffinity(0, {usable[(first + k) % len(usable)] for k in range(min(cores, len(usable)))})


def run(rank: int, cards: int, cores: int, seconds: float, path: str) -> None:
    keep_to(cores, rank)
    os.environ["OMP_NUM_THREADS"] = str(cores)
    import torch
    import torch.distributed as dist
    import torch_npu  # noqa: F401

    import models

    torch.set_num_threads(cores)
    torch.npu.set_device(rank)
    if cards > 1:
        dist.init_process_group("hccl", init_method=f"file://{path}", rank=rank, world_size=cards)
    for name, batch in BATCH.items():
        torch.manual_seed(0)
        model = models.MODELS[name](**SHAPES[name]).npu()
        optimizer = models.optimizer(model)
        data = tuple(t.npu() for t in models.MODELS[name].batch(rank, **batch))
        both = torch.nn.parallel.DistributedDataParallel(model) if cards > 1 else model
        steps, start = 0, 0.0
        for step in range(1 << 30):
            optimizer.zero_grad()
            both(*data).backward()
            optimizer.step()
            torch.npu.synchronize()
            if step == 2:
                start = time.perf_counter()
            elif step > 2:
                steps += 1
                over = torch.tensor([time.perf_counter() - start > seconds], dtype=torch.int32).npu()
                if cards > 1:
                    dist.all_reduce(over, op=dist.ReduceOp.MAX)
                if over.item():
                    break
        if rank == 0:
            print(f"@{name} {cards * len(data[0]) * steps / (time.perf_counter() - start):.3f}", flush=True)
    if cards > 1:
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    cards, cores, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    path = os.path.join(tempfile.mkdtemp(), "store")
    children = []
    for r in range(cards):
        pid = os.fork()
        if pid == 0:
            run(r, cards, cores, seconds, path)
            sys.stdout.flush()
            os._exit(0)
        children.append(pid)
    codes = [os.waitpid(pid, 0)[1] for pid in children]
    sys.exit(1 if any(codes) else 0)
