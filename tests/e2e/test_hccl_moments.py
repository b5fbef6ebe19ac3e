"""Through torch.distributed: ranks that are killed or stopped at random moments, and random sequences of collectives on random groups.
Few by default; ANYNPU_TEST_FULL=1 runs twenty of each. The same at the C level, in larger numbers, stands in tests/coll."""
from __future__ import annotations

import os

FULL = os.environ.get("ANYNPU_TEST_FULL") == "1"

# One process imports the wheel and forks the ranks of each job.
HEAD = """
    import os, random, signal, sys, time, traceback
    from datetime import timedelta
    import torch, torch_npu
    import torch.distributed as dist

    seed, folder, many = int(os.environ["ANYNPU_SEED"]), os.getcwd(), int(sys.argv[1])
    LONG = 120  # nothing takes so long but a hang
    FAILED = 42

    def data(rank, count, round):
        return torch.randint(-3, 4, (count,), generator=torch.Generator().manual_seed(seed + 1000 * rank + round)).float()

    class Job:
        def __init__(self, name, body, world):
            self.name, self.pids, self.codes = f"{folder}/{name}", [], [None] * world
            for rank in range(world):
                self.pids.append(os.fork())
                if self.pids[-1] == 0:
                    self.be(body, rank, world)

        def be(self, body, rank, world):
            code = 1
            try:
                log = os.open(f"{self.name}.log{rank}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
                os.dup2(log, 1); os.dup2(log, 2)
                torch.npu.set_device(rank)
                torch.zeros(1).npu()
                open(f"{self.name}.here{rank}", "w").close()
                while not os.path.exists(f"{self.name}.go"): time.sleep(0.002)
                dist.init_process_group("hccl", init_method=f"file://{self.name}.store", rank=rank, world_size=world, timeout=timedelta(seconds=20))
                body(rank, world)
                code = 0
            except BaseException as error:
                traceback.print_exc()
                code = FAILED if isinstance(error, RuntimeError) else 1
            finally:
                sys.stdout.flush(); sys.stderr.flush()
                os._exit(code)  # teardown is part of the body

        def go(self):
            self.wait(lambda: all(os.path.exists(f"{self.name}.here{r}") for r in range(len(self.pids))))
            open(f"{self.name}.go", "w").close()
            return time.monotonic()

        def log(self, rank):
            with open(f"{self.name}.log{rank}", errors="replace") as text:
                return text.read()

        def look(self):
            for r, pid in enumerate(self.pids):
                if self.codes[r] is None:
                    done, status = os.waitpid(pid, os.WNOHANG)
                    if done == pid: self.codes[r] = os.waitstatus_to_exitcode(status)
            return None not in self.codes

        def wait(self, what):
            until = time.monotonic() + LONG
            while not what():
                if time.monotonic() > until:
                    for r, pid in enumerate(self.pids):
                        if self.codes[r] is None: os.kill(pid, signal.SIGKILL)
                    raise AssertionError("no end: " + "".join(self.log(r)[-2000:] for r in range(len(self.pids))))
                time.sleep(0.01)

        def end(self):
            self.wait(self.look)
            return self.codes
"""

MOMENTS = HEAD + """
    def work(rank, world):
        for group in (None, dist.new_group(list(range(world)))):
            for round in range(12):
                t = data(rank, 1 + round * 5000, round).npu()
                dist.all_reduce(t, group=group)
                assert torch.equal(t.cpu(), sum(data(r, 1 + round * 5000, round) for r in range(world))), round
        torch.npu.synchronize()
        dist.destroy_process_group()

    def undisturbed(name):
        job = Job(name, work, 3)
        start = job.go()
        assert job.end() == [0, 0, 0], job.log(0) + job.log(1) + job.log(2)
        return time.monotonic() - start

    rng = random.Random(seed)
    undisturbed("first")
    whole = undisturbed("second")
    named = absent = 0
    os.environ["ANYNPU_HCCL_TIME_SCALE"] = "0.04"  # who has not come is awaited for the connect limit: 5.6 s
    for i in range(many):
        victim, moment = rng.randrange(3), rng.random() * whole
        job = Job(f"kill{i}", work, 3)
        job.go()
        time.sleep(moment)
        os.kill(job.pids[victim], rng.choice((signal.SIGKILL, signal.SIGTERM)))
        killed = time.monotonic()
        codes = job.end()
        for r in range(3):
            if r == victim or codes[r] == 0: continue
            text = job.log(r)
            # torch_npu's watchdog may be the first to see it; it ends the process by SIGABRT.
            assert codes[r] in (FAILED, -signal.SIGABRT), (codes, text)
            # One that dies before it has made or read the root info is unknown to the communicator; torch's store names nobody.
            if "wait timeout" in text.lower() or "timed out" in text.lower(): absent += 1; continue
            assert f"rank {victim}" in text, (victim, moment, text)
            named += 1
    del os.environ["ANYNPU_HCCL_TIME_SCALE"]
    stopped = 0
    for i in range(many):
        victim, moment = rng.randrange(3), rng.random() * whole
        job = Job(f"stop{i}", work, 3)
        job.go()
        time.sleep(moment)
        os.kill(job.pids[victim], signal.SIGSTOP)
        others = [r for r in range(3) if r != victim]
        until = time.monotonic() + 6
        told = lambda: any("anynpu: " in job.log(r) and f"rank {victim}" in job.log(r) for r in others)
        while not told() and time.monotonic() < until and not (job.look() or all(job.codes[r] is not None for r in others)): time.sleep(0.05)
        stopped += told()
        if job.codes[victim] is None: os.kill(job.pids[victim], signal.SIGCONT)
        assert job.end() == [0, 0, 0], (victim, moment, job.log(0) + job.log(1) + job.log(2))
    undisturbed("last")
    print(f"{many} kills: {named} survivors named the victim, {absent} waited for one that had not come; {stopped} of {many} stops told; a job takes {whole:.2f} s")
    print("through", flush=True)
"""

SEQUENCES = HEAD + """
    def work(rank, world):
        rng = random.Random(seed)  # all ranks draw the same
        groups, round = [(None, list(range(world)))], 0
        for sequence in range(many):
            if sequence % 2 == 0 and len(groups) < 6:
                members = sorted(rng.sample(range(world), rng.randint(2, world)))
                groups.append((dist.new_group(members), members))
            pending = []
            for _ in range(rng.randint(3, 10)):
                group, members = rng.choice(groups)
                what, count, later = rng.randrange(7), rng.choice((1, 7, 128, 4099, 40000)), rng.random() < 0.4
                root, round = rng.choice(members), round + 1
                if rank not in members: continue
                n, me = len(members), members.index(rank)
                every = [data(r, count * n, round) for r in members]
                mine = every[me].npu()
                opt = {"group": group, "async_op": later}
                if what == 0:
                    out, want = mine, sum(every); handle = dist.all_reduce(out, **opt)
                elif what == 1:
                    out, want = mine, torch.stack(every).amax(0); handle = dist.all_reduce(out, op=dist.ReduceOp.MAX, **opt)
                elif what == 2:
                    out, want = mine, data(root, count * n, round); handle = dist.broadcast(out, src=root, **opt)
                elif what == 3:
                    out, want = torch.empty(count * n * n, device="npu"), torch.cat(every); handle = dist.all_gather_into_tensor(out, mine, **opt)
                elif what == 4:
                    out, want = torch.empty(count, device="npu"), sum(every)[me * count:(me + 1) * count]
                    handle = dist.reduce_scatter_tensor(out, mine, **opt)
                elif what == 5:
                    out, want = torch.empty(count * n, device="npu"), torch.cat([e[me * count:(me + 1) * count] for e in every])
                    handle = dist.all_to_all_single(out, mine, **opt)
                else:
                    before, after = members[me - 1], members[(me + 1) % n]
                    out, want = torch.empty(count * n, device="npu"), data(before, count * n, round)
                    for one in dist.batch_isend_irecv([dist.P2POp(dist.isend, mine, after, group), dist.P2POp(dist.irecv, out, before, group)]): one.wait()
                    handle = None
                pending.append((handle, out, want, what, count, n, mine))
            for handle, out, want, what, count, n, _ in pending:
                if handle is not None: handle.wait()
                assert torch.equal(out.cpu(), want), (rank, sequence, what, count, n)
        torch.npu.synchronize()
        dist.destroy_process_group()

    job = Job("sequences", work, 4)
    job.go()
    assert job.end() == [0] * 4, "".join(job.log(r)[-2000:] for r in range(4))
    print("through", flush=True)
"""


def test_ranks_that_are_killed_or_stopped(machine213):
    done = machine213.run(machine213.python, machine213.script("moments.py", MOMENTS), "20" if FULL else "2", cards=3, timeout=1500).ok()
    print(done.out)
    assert "through" in done.out, done.tail()


def test_random_sequences_on_random_groups(machine213):
    done = machine213.run(machine213.python, machine213.script("sequences.py", SEQUENCES), "20" if FULL else "4", cards=4, timeout=900).ok()
    assert "through" in done.out, done.tail()
