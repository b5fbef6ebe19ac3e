"""torch.distributed over HCCL: two processes by torchrun, the unmodified wheel, expected values computed from every rank's seed."""
import os


CALLS = """
    import os, torch, torch_npu
    import torch.distributed as dist

    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("hccl")
    seed = int(os.environ["ANYNPU_SEED"])

    def data(r, shape, dtype, round):
        g = torch.Generator().manual_seed(seed + 1000 * r + round)
        return torch.randint(-3, 4, shape, generator=g).to(dtype)

    def same(got, want, what):
        torch.testing.assert_close(got.cpu(), want, rtol=0, atol=0, msg=lambda m: f"rank {rank}: {what}: {m}")

    for round, dtype in enumerate((torch.float32, torch.bfloat16, torch.float16, torch.int32, torch.int64, torch.int8)):
        for shape in ((7,), (31, 768), (1,)):
            mine = data(rank, shape, dtype, round)
            everybody = [data(r, shape, dtype, round) for r in range(world)]
            total = torch.stack([t.to(torch.int64) for t in everybody]).sum(0).to(dtype)
            t = mine.npu(); dist.all_reduce(t); same(t, total, "all_reduce")
            t = mine.npu(); dist.all_reduce(t, op=dist.ReduceOp.MAX); same(t, torch.stack(everybody).amax(0), "max")
            t = mine.npu(); dist.broadcast(t, src=1); same(t, everybody[1], "broadcast")
            out = [torch.empty_like(t) for _ in range(world)]
            dist.all_gather(out, mine.npu())
            for got, want in zip(out, everybody): same(got, want, "all_gather")
            t = mine.npu(); dist.reduce(t, dst=0)
            if rank == 0: same(t, total, "reduce")
            big = torch.empty(world * mine.numel(), dtype=dtype, device="npu")
            dist.all_gather_into_tensor(big, mine.flatten().npu())
            same(big, torch.cat([t.flatten() for t in everybody]), "all_gather_into_tensor")
            wide = [data(r, (world * 5,), dtype, 50 + round) for r in range(world)]
            part = torch.empty(5, dtype=dtype, device="npu")
            dist.reduce_scatter_tensor(part, wide[rank].npu())
            same(part, torch.stack([w.to(torch.int64) for w in wide]).sum(0).to(dtype)[rank * 5:rank * 5 + 5], "reduce_scatter")
            swapped = torch.empty(world * 5, dtype=dtype, device="npu")
            dist.all_to_all_single(swapped, wide[rank].npu())
            same(swapped, torch.cat([w[rank * 5:rank * 5 + 5] for w in wide]), "all_to_all")
    if rank == 0:
        dist.send(data(0, (1000,), torch.float32, 99).npu(), dst=1)
    else:
        t = torch.empty(1000, device="npu"); dist.recv(t, src=0); same(t, data(0, (1000,), torch.float32, 99), "recv")
    dist.barrier()
    group = dist.new_group([0, 1])
    t = torch.ones(3, device="npu") * (rank + 1); dist.all_reduce(t, group=group); same(t, torch.full((3,), 3.0), "sub group")
    torch.npu.synchronize()
    dist.destroy_process_group()
    print(f"rank {rank} is through", flush=True)
"""

KILLED = """
    import os, signal, sys, time, torch, torch_npu
    import torch.distributed as dist
    rank = int(os.environ["RANK"])
    torch.npu.set_device(rank)
    dist.init_process_group("hccl")
    t = torch.ones(100, device="npu"); dist.all_reduce(t); torch.npu.synchronize()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun ends the others at once: this one is to see for itself
    if rank == 1: os.kill(os.getpid(), signal.SIGKILL)
    start = time.time()
    try:
        dist.all_reduce(t); torch.npu.synchronize()
    except RuntimeError as e:
        print("noticed", "in time" if time.time() - start < 2 else "late", "names rank 1:", "rank 1" in str(e), flush=True)
    sys.stdout.flush()
    os._exit(0)
"""


def torchrun(machine, path, ranks=2, **kw):
    return machine.run("torchrun", "--standalone", f"--nproc-per-node={ranks}", path, cards=ranks, **kw)


def test_every_call(machine):
    done = torchrun(machine, machine.script("calls.py", CALLS)).ok()
    done.ranks_say("rank {rank} is through", 2)


def test_a_killed_peer_is_noticed(machine213):
    done = torchrun(machine213, machine213.script("killed.py", KILLED))
    assert "noticed in time names rank 1: True" in done.out, done.tail()


LINK = """
    import os, torch, torch_npu
    import torch.distributed as dist
    rank = int(os.environ["RANK"])
    torch.npu.set_device(rank)
    dist.init_process_group("hccl")
    try:
        t = torch.ones(100, device="npu"); dist.all_reduce(t); torch.npu.synchronize()
    except RuntimeError as e:
        assert "EJ0002" in str(e) and "device 1" in str(e), e
        print(f"rank {rank} was told", flush=True)
    os._exit(0)
"""


def test_r020_a_port_that_is_down_is_told_to_all_ranks(machine213):
    import subprocess
    from conftest import find_program
    subprocess.run([find_program(), "inject", "link-down", "--card", "1"], check=True, capture_output=True,
                   env=os.environ | {"ANYNPU_CARDS": "2", "ANYNPU_MACHINE": machine213.name})
    link = machine213.run("hccn_tool", "-i", "1", "-link", "-g").ok()
    assert "DOWN" in link.out, link.out
    done = torchrun(machine213, machine213.script("link.py", LINK))
    assert done.out.count("was told") == 2, done.tail()


def test_r017_every_result_of_hccl_has_a_cause_and_a_remedy():
    import re, subprocess
    from conftest import ROOT, find_program
    codes = re.findall(r"^HcclResult\t(HCCL_E_\w+)\t(\d+)", (ROOT / "abi" / "enums.tsv").read_text(), re.M)
    assert len(codes) > 20
    for name, number in codes:
        if name == "HCCL_E_RESERVED":
            continue
        for word in (name, f"hccl:{number}"):
            text = subprocess.run([find_program(), "explain", "--lang", "en", word], capture_output=True, text=True).stdout
            assert name in text and re.search(r"^ *why +\S", text, re.M) and re.search(r"^ *next +\S", text, re.M), (word, text)
