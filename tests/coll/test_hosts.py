"""Collectives between hosts: network namespaces, one machine each, ranks without Python (coll_processes_test)."""
from __future__ import annotations

import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest

from hosts import Hosts, ip, possible

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("ANYNPU_BUILD", HERE.parent.parent / "build" / "dev"))
PROGRAM = BUILD / "tests" / "coll" / "coll_processes_test"
FULL = os.environ.get("ANYNPU_TEST_FULL") == "1"
why_not = possible()
pytestmark = [pytest.mark.skipif(bool(why_not), reason=why_not),
              pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")]


class Job:
    """Ranks of one body of the program, dealt out to hosts."""

    def __init__(self, tmp: pathlib.Path, body: str, hosts: list, env: dict | None = None):
        self.tmp, self.ranks = tmp, []
        seed = random.randrange(1 << 31)
        print(f"{body}: seed {seed}")
        for rank, host in enumerate(hosts):
            own = {"HCCL_TEST_RANK": str(rank), "HCCL_TEST_RANKS": str(len(hosts)), "HCCL_TEST_SEED": str(seed), "ANYNPU_CARDS": "16",
                   "HCCL_TEST_DIRECTORY": str(tmp), "ANYNPU_HBM": "2G", **(env or {})}
            log = open(tmp / f"log{rank}", "w")
            self.ranks.append(host.start([str(PROGRAM), f"--gtest_filter=Body.DISABLED_{body}", "--gtest_also_run_disabled_tests",
                                          "--gtest_brief=1"], own, stdout=log, stderr=subprocess.STDOUT))

    def log(self, rank: int) -> str:
        return (self.tmp / f"log{rank}").read_text()

    def logs(self) -> str:
        return "\n".join(f"rank {r}: {self.log(r)[-1500:]}" for r in range(len(self.ranks)))

    def codes(self, timeout: float = 120) -> list[int]:
        until = time.monotonic() + timeout
        codes = []
        for child in self.ranks:
            try:
                codes.append(child.wait(max(0.1, until - time.monotonic())))
            except subprocess.TimeoutExpired:
                child.kill()
                codes.append("no end")
        return codes

    def ok(self, timeout: float = 120) -> "Job":
        codes = self.codes(timeout)
        assert codes == [0] * len(codes), f"{codes}\n{self.logs()}"
        return self


@pytest.mark.parametrize("per_host", [2, 4] if FULL else [2])
def test_ranks_of_four_hosts_agree_and_only_hosts_use_the_wire(tmp_path, per_host):
    with Hosts(4) as hosts:
        Job(tmp_path, "Matrix", [h for h in hosts for _ in range(per_host)],
            {"HCCL_TEST_COUNTS": "0 7 4099 100003" if FULL else "7 4099", "HCCL_TEST_TYPES": "12" if FULL else "3"}).ok(600)
        # Ranks dealt out in turn: hosts are not neighbours in rank order.
        folder = tmp_path / "turns"
        folder.mkdir()
        Job(folder, "Matrix", [hosts[i % 4] for i in range(4 * per_host)], {"HCCL_TEST_COUNTS": "4099", "HCCL_TEST_TYPES": "3"}).ok(600)


def test_hosts_of_different_sizes(tmp_path):
    """Every call: within hosts first needs equal hosts, so these exchange directly."""
    with Hosts(3) as hosts:
        for name, sizes in (("three and one", (3, 1)), ("one, two, two", (1, 2, 2))):
            folder = tmp_path / name.split()[0]
            folder.mkdir()
            Job(folder, "Matrix", [h for h, ranks in zip(hosts, sizes) for _ in range(ranks)],
                {"HCCL_TEST_COUNTS": "0 1 7 4099 100003" if FULL else "7 4099", "HCCL_TEST_TYPES": "12" if FULL else "3"}).ok(600)


def test_the_wire_carries_what_hosts_owe_each_other(tmp_path):
    size, calls, hosts_count = 4 << 20, 4, 4
    with Hosts(hosts_count) as hosts:
        before = [h.sent() for h in hosts]
        Job(tmp_path, "Volume", [h for h in hosts for _ in range(2)], {"HCCL_TEST_BYTES": str(size), "HCCL_TEST_CALLS": str(calls)}).ok()
        sent = [h.sent() - b for h, b in zip(hosts, before)]
        # Sums of each host go out once, then results: 2 (H-1)/H of the data, not that times the ranks of a host.
        owed = calls * 2 * (hosts_count - 1) / hosts_count * size
        print("sent", sent, "owed", owed)
        for bytes_sent in sent:
            assert 0.9 * owed < bytes_sent < 1.5 * owed, (sent, owed)


def test_ranks_of_one_host_leave_the_wire_alone(tmp_path):
    with Hosts(2) as hosts:
        wire, loop = hosts[0].sent(), hosts[0].looped()
        Job(tmp_path, "Volume", [hosts[0]] * 4, {"HCCL_TEST_BYTES": str(4 << 20), "HCCL_TEST_CALLS": "10"}).ok()
        assert hosts[0].sent() - wire < 20_000
        assert hosts[0].looped() - loop < 400_000, "only the meeting uses sockets"


# R071: 20 MB all-to-all between four ranks of one host went over a slow interface until the right one was named. R073: 32 MB all-reduce.
@pytest.mark.parametrize("what, size, ranks", [(8, 5 << 20, 4), (0, 32 << 20, 2)], ids=["r071", "r073"])
def test_reports_of_slow_calls_on_one_host_use_no_socket(tmp_path, what, size, ranks):
    with Hosts(1) as hosts:
        wire, loop = hosts[0].sent(), hosts[0].looped()
        Job(tmp_path, "Volume", [hosts[0]] * ranks, {"HCCL_TEST_BYTES": str(size), "HCCL_TEST_CALLS": "3", "HCCL_TEST_WHAT": str(what)}).ok()
        assert hosts[0].sent() - wire < 20_000 and hosts[0].looped() - loop < 400_000


def test_a_killed_and_a_stopped_rank_on_another_host_are_named(tmp_path):
    with Hosts(2) as hosts:
        env = {"HCCL_TEST_BYTES": "4096", "HCCL_TEST_CALLS": "1000000", "HCCL_TEST_MAY_FAIL": "1"}
        job = Job(tmp_path, "Volume", [hosts[0], hosts[0], hosts[1], hosts[1]], env)
        wait_for(lambda: "begins" in job.log(0), job)
        job.ranks[3].send_signal(signal.SIGSTOP)
        wait_for(lambda: "has waited" in job.log(0) and "rank 3" in job.log(0), job)
        assert "no sign of life" in job.log(0) or "has made" in job.log(0) or "last call" in job.log(0), job.log(0)
        job.ranks[3].send_signal(signal.SIGCONT)
        time.sleep(0.5)
        job.ranks[3].kill()
        started = time.monotonic()
        assert job.codes()[:3] == [42, 42, 42], job.logs()
        print(f"{time.monotonic() - started:.1f} s from the kill to the end of all")
        for rank in range(3):
            assert "rank 3" in job.log(rank), job.log(rank)


def wait_for(what, job: Job, seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, job.logs()
        time.sleep(0.05)


class Between:
    """Two hosts with a proxy between them: each sees the other's address on a segment that ends at the proxy."""

    def __enter__(self):
        self.sides = [Hosts(2), Hosts(2)]
        for side in self.sides:
            side.__enter__()
        # Side 0 has host A as 10.77.0.1, side 1 host B as 10.77.0.2; the other hosts of both belong to the proxy.
        self.a, self.b = self.sides[0][0], self.sides[1][1]
        self.near_a, self.near_b = self.sides[0][1], self.sides[1][0]
        return self

    def proxy(self, mode: str, after: int = 0) -> None:
        child = subprocess.Popen([sys.executable, str(HERE / "proxy.py"), self.near_b.space, self.near_a.space, self.a.address, mode,
                                  str(after), "61000", "17000", "17001"], stdout=subprocess.PIPE, text=True)
        self.near_a.children.append(child)
        assert child.stdout.readline() == "ready\n"

    def __exit__(self, *what):
        for side in self.sides:
            side.__exit__(*what)


PORTS = {"HCCL_IF_BASE_PORT": "61000", "HCCL_NPU_SOCKET_PORT_RANGE": "17000-17001"}


def test_a_slow_network_gives_right_values(tmp_path):
    with Between() as two:
        two.proxy("delay")
        Job(tmp_path, "Volume", [two.a, two.b], {**PORTS, "HCCL_TEST_BYTES": "200000", "HCCL_TEST_CALLS": "5"}).ok()


def test_a_reset_connection_is_named_at_once(tmp_path):
    with Between() as two:
        two.proxy("reset", 2_000_000)
        job = Job(tmp_path, "Volume", [two.a, two.b], {**PORTS, "HCCL_TEST_BYTES": "400000", "HCCL_TEST_CALLS": "1000000", "HCCL_TEST_MAY_FAIL": "1"})
        assert job.codes() == [42, 42], job.logs()
        assert "rank 1" in job.log(0) and "rank 0" in job.log(1), job.logs()


def test_a_half_open_connection_is_told_and_ends_at_the_limit(tmp_path):
    with Between() as two:
        two.proxy("swallow", 2_000_000)
        # 60 s at a tenth: 6 s.
        job = Job(tmp_path, "Volume", [two.a, two.b], {**PORTS, "HCCL_TEST_BYTES": "400000", "HCCL_TEST_CALLS": "1000000", "HCCL_TEST_MAY_FAIL": "1",
                                                       "HCCL_EXEC_TIMEOUT": "60", "ANYNPU_HCCL_TIME_SCALE": "0.1"})
        wait_for(lambda: "no sign of life" in job.log(0) + job.log(1), job)
        assert job.codes() == [42, 42], job.logs()
        assert "EI0002" in job.logs() or "gave up" in job.logs(), job.logs()


def test_an_address_that_swallows_everything_ends_at_the_connect_limit(tmp_path):
    with Between() as two:
        two.proxy("swallow", 0)
        job = Job(tmp_path, "Volume", [two.a, two.b], {**PORTS, "HCCL_TEST_BYTES": "4000", "HCCL_TEST_MAY_FAIL": "1", "ANYNPU_HCCL_TIME_SCALE": "0.02"})
        assert job.codes() == [42, 42], job.logs()
        assert "EI0006" in job.log(0) or "EI0015" in job.log(0), job.logs()


def test_the_wrong_interface_is_explained(tmp_path):
    with Hosts(2) as hosts:
        job = Job(tmp_path, "Volume", [hosts[0], hosts[1]], {"HCCL_SOCKET_IFNAME": "ib0", "HCCL_TEST_BYTES": "4000", "HCCL_TEST_MAY_FAIL": "1"})
        assert job.codes()[0] == 42, job.logs()
        assert "HCCL_SOCKET_IFNAME" in job.log(0) and "EI0001" in job.log(0), job.logs()
        folder = tmp_path / "loopback"
        folder.mkdir()
        # Rank 0 listens where the other host does not reach it: the error of rank 1 says so at once.
        job = Job(folder, "Volume", [hosts[0], hosts[1]], {"HCCL_SOCKET_IFNAME": "=lo", "HCCL_TEST_BYTES": "4000", "HCCL_TEST_MAY_FAIL": "1",
                                                           "ANYNPU_HCCL_TIME_SCALE": "0.03"})
        assert job.codes() == [42, 42], job.logs()
        assert "nobody listens at 127.0.0.1" in job.log(1) and "HCCL_SOCKET_IFNAME" in job.log(1), job.logs()
        assert "rank 1 of 2" in job.log(0), job.logs()


def test_a_link_that_goes_down_is_told_and_waited_for(tmp_path):
    with Hosts(2) as hosts:
        job = Job(tmp_path, "Volume", [hosts[0], hosts[1]], {"HCCL_TEST_BYTES": "4096", "HCCL_TEST_CALLS": "3000", "HCCL_TEST_PAUSE_MS": "1"})
        wait_for(lambda: "begins" in job.log(0), job)
        ip("-n", hosts[1].space, "link", "set", "eth0", "down")
        wait_for(lambda: "no sign of life" in job.log(0) or "no sign of life" in job.log(1), job)
        ip("-n", hosts[1].space, "link", "set", "eth0", "up")
        job.ok()
