"""Programs of several ranks under each starter: mpirun of Open MPI and MPICH, torchrun, spawn, Accelerate. The article's own program
runs as written; what it says of HCCL is warned of when asked."""
from __future__ import annotations

import re
import shutil

import pytest

ARTICLE = """
    import torch
    import torch_npu
    import torch.npu
    import os

    def init_npu_distributed():
        local_rank = int(os.environ["LOCAL_RANK"])
        torch.npu.set_device(local_rank)
        world_size = int(os.environ["WORLD_SIZE"])
        rank = int(os.environ["RANK"])
        from torch_npu.contrib import transfer_to_npu
        import torch_npu
        torch.distributed.init_process_group(backend='hccl', init_method='env://', world_size=world_size, rank=rank)
        if torch.distributed.is_initialized():
            print(f"[Rank {rank}] hccl initialized successfully")
            tensor = torch.ones(1).npu() * rank
            torch.distributed.all_reduce(tensor, op=torch.distributed.ReduceOp.SUM)
            print(f"[Rank {rank}] AllReduce result: {tensor.item()}", flush=True)

    if __name__ == "__main__":
        init_npu_distributed()
        torch.distributed.destroy_process_group()
"""

ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def results(done, ranks):
    # Starters may join the lines of several ranks.
    found = sorted((int(r), float(v)) for r, v in re.findall(r"\[Rank (\d+)\] AllReduce result: ([\d.]+?\.0)", done.out))
    assert found == [(r, float(sum(range(ranks)))) for r in range(ranks)], done.tail()


@pytest.mark.parametrize("kind", ["openmpi", "mpich"])
def test_mpirun_fills_in_what_torchrun_would(machine213, kind):
    mpirun = shutil.which(f"mpirun.{kind}")
    if mpirun is None:
        pytest.skip(f"{kind} is not installed")
    oversubscribe = ["--oversubscribe"] if kind == "openmpi" else []
    done = machine213.run(mpirun, "-n", "3", *oversubscribe, machine213.python, machine213.script("train.py", ARTICLE), cards=3, env=ROOT,
                          options=("--mpi",)).ok()
    results(done, 3)


def test_a_script_with_one_rank_on_each_slot(machine213):
    mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    if mpirun is None:
        pytest.skip("no mpirun is installed")
    script = machine213.script("npu_mpirun.sh", f"""\
        #!/bin/bash
        {mpirun} -n $1 --allow-run-as-root --oversubscribe --bind-to none anynpu mpi-rank --master 127.0.0.1:$2 -- {machine213.python} $3
        """)
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    results(machine213.run("bash", script, "2", port, machine213.script("train.py", ARTICLE)).ok(), 2)


def test_what_a_rank_lacks_is_explained(machine213):
    done = machine213.run(machine213.python, "-c", "print('ran')", options=("--mpi",))
    assert done.code != 0 and "OMPI_COMM_WORLD_RANK" in done.err and "ran" not in done.out, done.tail()


def test_agents_on_every_slot_are_recognised(machine213):
    script = machine213.script("npu_torchrun.sh", """\
        #!/bin/bash
        true mpirun -n $1 \\
          --allow-run-as-root \\
          python -m torch.distributed.run \\
          --nproc_per_node=$1 --nnodes=$2 "$6"
        """)
    done = machine213.run("bash", script, "8", "1", "0", "127.0.0.1", "29500", "train.py").ok()
    assert "torchrun --nproc-per-node" in done.err and "--mpi -- mpirun" in done.err, done.tail()


def test_the_articles_program_under_torchrun_with_its_rules_as_warnings(machine213):
    done = machine213.run("torchrun", "--standalone", "--nproc-per-node=2", machine213.script("train.py", ARTICLE),
                          options=("--legacy-hccl-rules",)).ok()
    results(done, 2)
    assert "multiples of 128" in done.err and "section 2.2" in done.err and "section 2.1" in done.err, done.tail()


# R100: bfloat16 and any count; R101: 1 + 2 + 3 under torchrun. R083: torch_npu's own text.
def test_reports_of_the_article(machine213):
    done = machine213.run("torchrun", "--standalone", "--nproc-per-node=3", machine213.script("r100.py", """
        import os, torch, torch_npu, torch.distributed as dist
        rank = int(os.environ["RANK"]); torch.npu.set_device(rank); dist.init_process_group("hccl")
        for count in (31 * 768, 7):
            t = torch.full((count,), float(rank + 1), dtype=torch.bfloat16, device="npu"); dist.all_reduce(t)
            assert torch.equal(t.cpu(), torch.full((count,), 6.0, dtype=torch.bfloat16)), t
        try:
            dist.all_reduce(torch.ones(3, 4, device="npu").t())
        except RuntimeError as e:
            assert "ERR02002" in str(e) and "contiguous" in str(e), e
        else:
            raise AssertionError("not refused")
        torch.npu.synchronize(); dist.destroy_process_group(); print(f"rank {rank} is through", flush=True)
        """), cards=3).ok()
    assert done.out.count("is through") == 3, done.tail()


def test_spawn(machine213):
    done = machine213.py("""
        import os, torch, torch_npu, torch.distributed as dist, torch.multiprocessing as mp

        def work(rank, world, port):
            os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
            torch.npu.set_device(rank)
            dist.init_process_group("hccl", rank=rank, world_size=world)
            t = torch.full((1000,), float(rank + 1), device="npu"); dist.all_reduce(t)
            assert torch.equal(t.cpu(), torch.full((1000,), 3.0)); dist.destroy_process_group()
            print(f"rank {rank} is through", flush=True)

        if __name__ == "__main__":
            import socket
            with socket.socket() as s: s.bind(("127.0.0.1", 0)); port = str(s.getsockname()[1])
            mp.spawn(work, args=(2, port), nprocs=2)
        """).ok()
    assert done.out.count("is through") == 2, done.tail()


# R038: FSDP2 through Accelerate; R064 and the others of that kind stand in shim/hccl and tests/coll.
def test_r038_accelerate_fsdp2(machine213):
    import importlib.util
    if importlib.util.find_spec("accelerate") is None:
        pytest.skip("accelerate is not installed")
    script = machine213.script("fsdp2.py", """
        import torch, torch_npu
        from accelerate import Accelerator
        from accelerate.utils import FullyShardedDataParallelPlugin
        import torch.nn.functional as F

        def net():
            torch.manual_seed(11)
            return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))

        accelerator = Accelerator(fsdp_plugin=FullyShardedDataParallelPlugin(fsdp_version=2))
        x = torch.randn(16, 16, generator=torch.Generator().manual_seed(5)); y = torch.arange(16) % 4
        model = net(); optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model, optimizer = accelerator.prepare(model, optimizer)
        rank, world = accelerator.process_index, accelerator.num_processes
        alone = net(); sgd = torch.optim.SGD(alone.parameters(), lr=0.1)
        for step in range(5):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[rank::world].npu()), y[rank::world].npu()); accelerator.backward(loss); optimizer.step()
            both = accelerator.gather(loss.detach().reshape(1)).mean().item()
            sgd.zero_grad(); want = F.cross_entropy(alone(x), y); want.backward(); sgd.step()
            assert abs(both - want.item()) < 1e-5, (step, both, want.item())
        print(f"rank {rank} is through", flush=True)
        torch.distributed.destroy_process_group()
        """)
    done = machine213.run("torchrun", "--standalone", "--nproc-per-node=2", script, timeout=280).ok()
    assert done.out.count("is through") == 2, done.tail()
