"""The whole chain: a training with DDP on four cards, the exporter, the real Prometheus, the shipped rules and boards."""
from __future__ import annotations

import json
import re
import sys
import textwrap
import threading
import time

import pytest
from live import Exporter, Machine, Prometheus, until, wheels_python
from test_dashboards import ARTICLE, queries
from test_loads import IN_C, Load

RANKS = 4
LATE = 1  # the rank whose data come late
# Steps until its standard input ends; MatMul, Softmax and LayerNorm in each.
TRAINING = textwrap.dedent("""
    import os, sys, time, torch, torch_npu
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    torch.npu.set_device(rank)
    dist.init_process_group("hccl", init_method="env://", world_size=int(os.environ["WORLD_SIZE"]), rank=rank)
    torch.manual_seed(rank)
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.norm, self.b = nn.Linear(96, 96), nn.LayerNorm(96), nn.Linear(96, 16)
        def forward(self, x):
            return torch.softmax(self.b(self.norm(torch.relu(self.a(x)))), dim=-1)
    model = DDP(Net().npu(), device_ids=[rank])
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(64, 96).npu()
    stop = os.environ["STOP_FILE"]
    slow = stop + f".slow{rank}"
    step = 0
    while True:
        if os.path.exists(slow):  # its data come late
            time.sleep(0.02)
        opt.zero_grad()
        model(x).square().mean().backward()
        opt.step()
        step += 1
        # All ranks must leave together: rank 0 looks, all learn.
        if step % 100 == 0:
            flag = torch.tensor([1.0 if rank == 0 and os.path.exists(stop) else 0.0]).npu()
            dist.all_reduce(flag)
            if flag.item() > 0:
                break
    dist.destroy_process_group()
""")


class World:
    def __init__(self, folder):
        self.machine = Machine(folder, RANKS)
        self.exporter = Exporter(self.machine)
        (folder / "prometheus").mkdir()
        self.prometheus = Prometheus(folder / "prometheus", self.exporter)
        self.stop = folder / "stop"
        self.late = folder / f"stop.slow{LATE}"  # from the start: what takes its time to be noticed has had it when its test comes
        self.late.touch()
        (folder / "train.py").write_text(TRAINING)
        from live import free_port
        port = str(free_port())
        self.ranks = []
        for rank in range(RANKS):
            self.ranks.append(self.machine.start("run", "-q", "--", wheels_python(), str(folder / "train.py"), name=f"rank{rank}", RANK=str(rank),
                                                 LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
                                                 STOP_FILE=str(self.stop), OMP_NUM_THREADS="1"))

    def say(self) -> str:
        return "\n".join(self.machine.log(f"rank{r}")[-800:] for r in range(RANKS)) + self.exporter.log()

    def steps(self) -> float:
        result = self.prometheus.query("min(npu_step_time_seconds_count)")
        return float(result[0]["value"][1]) if result else 0

    def close(self):
        self.stop.touch()
        for rank in self.ranks:
            try:
                rank.wait(30)
            except Exception:
                pass
        self.prometheus.close()
        self.machine.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    w = World(tmp_path_factory.mktemp("live"))
    yield w
    w.close()


@pytest.fixture(scope="module")
def training(world):
    """All four ranks take steps and Prometheus has seen some."""
    def alive():
        assert all(r.poll() is None for r in world.ranks), world.say()
        return world.steps() > 60
    until(alive, 240, 1, world.say)
    first = world.steps()
    until(lambda: world.steps() > first + 40, 120, 1, world.say)
    return world


def test_every_panel_has_data_under_load(training):
    empty = {name for name, expr in queries() if not training.prometheus.query(expr)}
    # Recording rules and rates need a few rounds.
    until(lambda: not {n for n, e in queries() if n in empty and not training.prometheus.query(e)}, 60, 1,
          lambda: f"empty: {[n for n, e in queries() if not training.prometheus.query(e)]}")


@pytest.mark.parametrize("expression", ARTICLE)
def test_the_articles_queries_run_as_written(training, expression):
    def answer():
        result = training.prometheus.query(expression)
        return result and all(float(s["value"][1]) >= 0 for s in result)
    until(answer, 60, 1, lambda: str(training.prometheus.query(expression)))


def test_operators_are_counted_as_they_are_called(training):
    """Per step one Softmax, one LayerNorm and their gradients on each rank; the counts keep that ratio."""
    def count(op: str) -> float:
        return sum(float(s["value"][1]) for s in training.prometheus.query(f'acl_op_execute_time_count{{op_name="{op}"}}'))
    softmax, norm, product = count("Softmax"), count("LayerNorm"), count("MatMul")
    assert softmax > 100
    assert norm == pytest.approx(softmax, rel=0.05)
    assert 4 * softmax < product < 8 * softmax  # two forward, three backward


def test_ranks_have_steps_and_processes_have_memory(training):
    steps = {s["metric"]["rank"]: float(s["value"][1]) for s in training.prometheus.query("npu_step_time_seconds_count")}
    assert set(steps) == {str(r) for r in range(RANKS)}
    assert max(steps.values()) - min(steps.values()) <= 0.2 * max(steps.values())
    own = training.prometheus.query("sum(npu_step_time_seconds_sum)")[0]["value"][1]
    wall = training.prometheus.query("sum(npu_step_wall_time_seconds_sum)")[0]["value"][1]
    assert 0 < float(own) <= float(wall)
    text = training.exporter.scrape()
    by_pid = dict(re.findall(r'npu_process_memory_bytes\{device="npu\d",pid="(\d+)",process="[^"]*"\} ([0-9.e+]+)', text))
    assert len(by_pid) == RANKS
    # The other view of the same.
    smi = training.machine.run("smi", "info").stdout
    for pid, value in by_pid.items():
        megabytes = int(re.search(rf"\| {pid} +\| \S+ +\| (\d+)", smi)[1])
        assert abs(float(value) / 2**20 - megabytes) <= 2


def test_a_bad_rule_file_is_refused_and_the_rules_stay(training):
    prometheus = training.prometheus
    bad = prometheus.folder / "rules" / "bad.yml"
    bad.write_text("groups:\n  - name: x\n    rules:\n      - alert: A\n        expr: sum(((\n")
    status, text = prometheus.reload()
    bad.unlink()
    assert status == 500
    assert "bad.yml" in text + (prometheus.folder / "prometheus.log").read_text()
    assert prometheus.query("rank:npu_step_time_seconds:mean")
    assert prometheus.reload()[0] == 200


def inject(world, *words):
    done = world.machine.run("inject", *words, check=False)
    if done.returncode != 0 and ("was not" in done.stderr or "following argument" in done.stderr or "not expected" in done.stderr):
        pytest.skip("anynpu inject is not built")
    assert done.returncode == 0, done.stderr


def test_a_slowed_rank_is_named_and_its_peers_are_not(training):
    """One by its host, then another by its card; hosts wait for their cards once in 100 steps only."""
    def named_alone(slow: int) -> None:
        # Until the slow rank's steps fill the window, other work on this machine may make any rank stand out.
        looks = []

        def stays() -> bool:
            looks.append({(a["rank"], a["device"], a["ranks"]) for a in training.prometheus.firing() if a["alertname"] == "NpuRankSlow"})
            return looks[-4:] == [{(str(slow), f"npu{slow}", str(RANKS))}] * 4
        until(stays, 240, 1,
              lambda: f"{looks[-4:]} " + json.dumps(training.prometheus.query("rank:npu_step_time_seconds:deviation_ratio")) + training.say())

    named_alone(LATE)
    inject(training, "slow", "--card", "2", "--factor", "8")
    training.late.unlink()
    try:
        named_alone(2)
    finally:
        training.machine.run("clear", "--all")
    until(lambda: not [a for a in training.prometheus.firing() if a["alertname"] == "NpuRankSlow"], 120, 1)


def test_a_card_that_hangs_fills_the_queues_of_its_peers(training):
    """P1 and P2: the others call their collectives on and nobody answers."""
    def queue() -> float:
        return max(float(s["value"][1]) for s in training.prometheus.query("hccl_send_queue_length"))

    def blocked() -> bool:
        return {a["alertname"] for a in training.prometheus.firing()} >= {"HcclSendBlocked", "HcclReceiveSlow"}

    try:
        # Ranks meet every 100 steps: right before that few calls are under way, and the next attempt finds more.
        for _ in range(6):
            inject(training, "hang", "--card", "1")
            end = time.monotonic() + 15
            while time.monotonic() < end and queue() <= 10:
                time.sleep(0.5)
            if queue() > 10:
                break
            training.machine.run("clear", "--all")
            time.sleep(2)
        until(blocked, 60, 1, lambda: json.dumps(training.prometheus.query("hccl_send_queue_length")) + training.say())
    finally:
        training.machine.run("clear", "--all")
    until(lambda: not {a["alertname"] for a in training.prometheus.firing()} & {"HcclSendBlocked", "HcclReceiveSlow"}, 120, 1, training.say)


# Each round: faults on cards of their own, and the alert that each must fire there; together, to spend the waiting once.
ROUNDS = [
    {1: (["ecc-double"], "NpuEccDoubleBit"), 3: (["over-temperature"], "NpuTemperatureHigh"), 2: (["link-down"], "NpuLinkDown"),
     0: (["hbm-fragmentation", "--amount", "60"], "NpuMemoryFragmented")},
    {1: (["card-lost"], "NpuCardLost"), 0: (["ecc-single"], "NpuEccSingleBit"), 2: (["hang"], "NpuUnhealthy")},
]


@pytest.fixture(scope="module")
def idle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("idle")
    machine = Machine(folder, RANKS)
    exporter = Exporter(machine)
    (folder / "prometheus").mkdir()
    prometheus = Prometheus(folder / "prometheus", exporter)
    until(lambda: prometheus.query("npu_card_up"), 60, 0.5)
    yield type("Idle", (), {"machine": machine, "prometheus": prometheus, "exporter": exporter})
    prometheus.close()
    machine.close()


@pytest.mark.parametrize("faults", ROUNDS, ids=["wear", "loss"])
def test_faults_fire_their_alerts_alone_and_clearing_ends_them(idle, faults):
    firing = idle.prometheus.firing
    assert firing() == []
    for card, (words, _) in faults.items():
        inject(idle, *words, "--card", str(card))
    expected = {(alert, f"npu{card}") for card, (_, alert) in faults.items()}

    def fired() -> set:
        return {(a["alertname"], a.get("device")) for a in firing()}

    until(lambda: fired() >= expected, 120, 0.5, lambda: f"{fired()} of {expected}")
    time.sleep(3)  # what else there would be
    assert fired() == expected
    idle.machine.run("clear", "--all")
    for card, (words, _) in faults.items():
        if words[0].startswith("ecc"):  # what was counted stays counted until somebody has looked
            idle.machine.run("smi", "clear", "-t", "ecc-info", "-i", str(card), check=False)
    until(lambda: firing() == [], 120, 0.5, lambda: str(firing()))


def test_slow_matrix_products_fire_their_alert_alone(idle):
    """A slow card makes MatMul slower than 800 µs in the mean. The clock is held: products count with the time they are planned
    to take, whatever else this machine does."""
    mean = lambda: [float(s["value"][1]) for s in idle.prometheus.query('op_name:acl_op_execute_time:mean_us{op_name="MatMul"}')]  # noqa: E731
    firing = lambda: [(a["alertname"], a.get("op_name")) for a in idle.prometheus.firing()]  # noqa: E731
    idle.machine.run("clock", "hold")
    load = Load(idle.machine, sys.executable, IN_C, 1, 192, 4096)
    ended = threading.Event()

    def work():
        while not ended.is_set():
            load.do(5)
            time.sleep(0.01)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        healthy = until(mean, 400, 0.5)[0]
        assert 0 < healthy < 800
        assert firing() == []
        inject(idle, "slow", "--card", "1", "--factor", str(int(2500 / healthy) + 2))
        until(lambda: firing() == [("MatMulSlow", "MatMul")], 400, 0.5, lambda: f"{firing()} {mean()}")
        time.sleep(3)  # what else there would be
        assert firing() == [("MatMulSlow", "MatMul")]
        idle.machine.run("clear", "--all")
        until(lambda: firing() == [], 400, 0.5, lambda: f"{firing()} {mean()}")
    finally:
        ended.set()
        worker.join()
        load.end()
        idle.machine.run("clear", "--all")
        idle.machine.run("clock", "run")


def test_an_exporter_that_is_gone_is_missed_until_it_is_back(idle):
    firing = lambda: [a["alertname"] for a in idle.prometheus.firing()]  # noqa: E731
    assert firing() == []
    idle.machine.end(idle.exporter.process)
    until(lambda: firing() == ["NpuExporterDown"], 400, 0.5, lambda: str(firing()))
    name = "exporter-again"
    idle.machine.start("exporter", "--listen", f"127.0.0.1:{idle.exporter.port}", "--trainer", f"127.0.0.1:{idle.exporter.ranks_port}", name=name)
    until(lambda: firing() == [], 400, 0.5, lambda: f"{firing()} {idle.machine.log(name)}")
