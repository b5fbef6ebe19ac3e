"""Two loads of known size give the known ratio of operator counts, tasks, bytes, time at work and use: through the C
interface and through torch. The clock of the machine's figures is held, so that work counts with the time it was planned to
take: real time decides nothing here."""
from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import textwrap
import time

import pytest
from live import fetch, program, wheels_python

SEED = int(os.environ.get("ANYNPU_SEED", str(time.time_ns() % 1_000_000)))

# Answers "COUNT" with that many products, copies to the card and copies back; the rest of its standard input too.
IN_C = textwrap.dedent("""
    import ctypes, sys
    import acl
    card, size, copied = (int(word) for word in sys.argv[1:])
    assert acl.init() == 0 and acl.rt.set_device(card) == 0
    op, base, runtime = ctypes.CDLL("libopapi.so"), ctypes.CDLL("libnnopbase.so"), ctypes.CDLL("libascendcl.so")
    base.aclCreateTensor.restype = ctypes.c_void_p
    held, code = acl.rt.malloc(3 * size * size * 4 + copied, 0)
    assert code == 0, code
    def tensor(i):
        dims, steps = (ctypes.c_int64 * 2)(size, size), (ctypes.c_int64 * 2)(size, 1)
        at = ctypes.c_void_p(held + i * size * size * 4)
        return ctypes.c_void_p(base.aclCreateTensor(dims, ctypes.c_uint64(2), 0, steps, ctypes.c_int64(0), 2, dims, ctypes.c_uint64(2), at))
    a, b, c = (tensor(i) for i in range(3))
    stream, code = acl.rt.create_stream()
    assert code == 0
    room = ctypes.create_string_buffer(copied)
    far = ctypes.c_void_p(held + 3 * size * size * 4)
    def once():
        workspace, executor = ctypes.c_uint64(), ctypes.c_void_p()
        assert op.aclnnMatmulGetWorkspaceSize(a, b, c, ctypes.c_int8(0), ctypes.byref(workspace), ctypes.byref(executor)) == 0
        extra, _ = acl.rt.malloc(workspace.value, 0) if workspace.value else (0, 0)
        assert op.aclnnMatmul(ctypes.c_void_p(extra), workspace, executor, ctypes.c_void_p(stream)) == 0
        assert acl.rt.synchronize_stream(stream) == 0
        if extra: acl.rt.free(extra)
        size_ = ctypes.c_size_t(copied)
        assert runtime.aclrtMemcpy(far, size_, room, size_, 1) == 0
        assert runtime.aclrtMemcpy(room, size_, far, size_, 2) == 0
    print("ready", flush=True)
    for line in sys.stdin:
        for _ in range(int(line)): once()
        print("done", flush=True)
""")

IN_TORCH = textwrap.dedent("""
    import sys, torch, torch_npu
    card, size, copied = (int(word) for word in sys.argv[1:])
    torch.npu.set_device(card)
    x = torch.ones(size, size).npu()
    room = torch.zeros(copied, dtype=torch.uint8)
    far = room.npu()
    def once():
        torch.mm(x, x)
        far.copy_(room)
        room.copy_(far)
    once()
    torch.npu.synchronize()
    print("ready", flush=True)
    for line in sys.stdin:
        for _ in range(int(line)): once()
        torch.npu.synchronize()
        print("done", flush=True)
""")

# All-reduces of COUNT floats between two cards of one process.
COLLECTIVE = textwrap.dedent("""
    import ctypes, sys
    import acl
    hccl = ctypes.CDLL("libhccl.so")
    acl.init()
    comms, streams, at = (ctypes.c_void_p * 2)(), [], []
    for card in range(2): assert acl.rt.set_device(card) == 0
    assert hccl.HcclCommInitAll(2, (ctypes.c_int32 * 2)(0, 1), comms) == 0
    for card in range(2):
        acl.rt.set_device(card)
        streams.append(acl.rt.create_stream()[0])
        at.append(acl.rt.malloc(32 << 20, 0)[0])
    print("ready", flush=True)
    for line in sys.stdin:
        for card in range(2):
            acl.rt.set_device(card)
            there = ctypes.c_void_p(at[card])
            assert hccl.HcclAllReduce(there, there, ctypes.c_uint64(int(line)), 4, 0, ctypes.c_void_p(comms[card]), ctypes.c_void_p(streams[card])) == 0
        for card in range(2):
            acl.rt.set_device(card)
            assert acl.rt.synchronize_stream(streams[card]) == 0
        print("done", flush=True)
""")


class Load:
    def __init__(self, machine, python: str, text: str, *words: int):
        line = [program(), "run", "-q", "--", python, "-c", text, *map(str, words)]
        self.log = open(machine.folder / "load.err", "w")
        self.process = subprocess.Popen(line, env=machine.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        machine.children.append(self.process)
        self.machine = machine
        self.hear("ready")

    def hear(self, word: str) -> None:
        line = self.process.stdout.readline().strip()
        assert line == word, (line, (self.machine.folder / "load.err").read_text()[-2000:])

    def do(self, count: int) -> None:
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        self.hear("done")

    def end(self) -> None:
        self.process.stdin.close()
        assert self.process.wait(60) == 0
        self.log.close()


def figures(machine) -> dict[str, float]:
    text = machine.run("exporter", "--print", "--collector", "software").stdout
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines() if not line.startswith("#")}


WATCHED = {
    "products": 'acl_op_execute_time_count{op_name="MatMul"}',
    "time in products": 'acl_op_execute_time_seconds_sum{op_name="MatMul"}',
    "tasks": 'npu_tasks_total{device="npu1",unit="cube"}',
    "time": 'npu_busy_seconds_total{device="npu1",unit="cube"}',
    "to the card": 'npu_moved_bytes_total{device="npu1",flow="to_device"}',
    "from the card": 'npu_moved_bytes_total{device="npu1",flow="to_host"}',
}


@pytest.mark.parametrize("how", ["in C", "through torch"])
def test_two_loads_of_known_size_give_their_ratio(machine, how):
    draw = random.Random(SEED)
    count, ratio = draw.randint(3, 8), draw.randint(2, 5)
    size, copied = draw.choice([256, 384, 512]), draw.randint(1, 64) * 4096
    python, text = (wheels_python(), IN_TORCH) if how == "through torch" else (sys.executable, IN_C)
    machine.run("clock", "hold")
    load = Load(machine, python, text, 1, size, copied)

    def one(times: int) -> tuple[dict[str, float], float, float]:
        """What grew, the use of the window, and the time at work per time of the window."""
        machine.run("clock", "advance", "1")
        before = figures(machine)
        load.do(times)
        after = figures(machine)
        grown = {name: after.get(series, 0) - before.get(series, 0) for name, series in WATCHED.items()}
        window = max(0.1, grown["time"] * draw.uniform(1.5, 4))
        machine.run("clock", "advance", repr(window))
        return grown, figures(machine)['npu_cube_utilization_ratio{device="npu1"}'], grown["time"] / window

    small, small_use, small_share = one(count)
    large, large_use, large_share = one(count * ratio)
    say = f"seed {SEED}: {count} and {count * ratio} of size {size}, {copied} bytes\n{small}\n{large}"
    assert small["products"] == small["tasks"] == count and large["products"] == large["tasks"] == count * ratio, say
    for grown, times in ((small, count), (large, count * ratio)):
        assert grown["to the card"] == grown["from the card"] == times * copied, say
    assert small["time"] > 0, say
    for name in ("time", "time in products"):
        assert large[name] == pytest.approx(small[name] * ratio, rel=1e-3), say  # printed with six digits
    # Use is kept in thousandths, rounded down.
    for use, share in ((small_use, small_share), (large_use, large_share)):
        assert share - 0.0021 <= use <= share + 0.0011, (use, share, say)
    idle = figures(machine)
    assert idle.get('npu_tasks_total{device="npu0",unit="cube"}', 0) == 0, "the other card did nothing"
    load.end()
    ended = figures(machine)
    assert ended[WATCHED["tasks"]] >= count * (1 + ratio), "sums of a card outlive the process"


def test_two_collectives_of_known_size_give_their_ratio(machine):
    draw = random.Random(SEED)
    floats, ratio = draw.randint(1, 16) * 4096, draw.randint(2, 6)
    load = Load(machine, sys.executable, COLLECTIVE)

    def link() -> dict[str, float]:
        now = figures(machine)
        return {flow: now[f'npu_moved_bytes_total{{device="npu0",flow="link_{flow}"}}'] for flow in ("send", "receive")} | {
            "tasks": now['npu_tasks_total{device="npu0",unit="link"}']}

    def one(count: int) -> dict[str, float]:
        before = link()
        load.do(count)
        return {name: value - before[name] for name, value in link().items()}

    small, large = one(floats), one(floats * ratio)
    say = f"seed {SEED}: {floats} floats and {ratio} times as many: {small} {large}"
    assert small["tasks"] == large["tasks"] == 1, say
    assert small["send"] > 0 and small["receive"] > 0, say
    for flow in ("send", "receive"):
        assert large[flow] == small[flow] * ratio, say
    # The port's counters are the same bytes.
    stat = machine.run("run", "-q", "--", "hccn_tool", "-i", "0", "-stat", "-g").stdout
    assert int(re.search(r"^mac_tx_total_oct_num:(\d+)$", stat, re.M)[1]) == link()["send"]
    load.end()


# Trainings on one card, of known numbers of steps, with optimisers as torch makes them by default, fused, and with two backward passes a step.
ON_ONE_CARD = textwrap.dedent("""
    import sys, torch, torch_npu
    torch.npu.set_device(int(sys.argv[1]))
    net = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8)).npu()
    x = torch.ones(16, 32).npu()
    def train(make, steps):
        optimiser = make(net.parameters())
        for _ in range(steps):
            optimiser.zero_grad()
            for _ in range(2): net(x).square().mean().backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimiser.step()
        torch.npu.synchronize()
    makes = {"sgd": lambda p: torch.optim.SGD(p, lr=0.01), "momentum": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9), "adam": torch.optim.AdamW}
    for line in sys.stdin:
        name, steps = line.split()
        train(makes[name], int(steps))
        print("done", flush=True)
""")


def test_steps_on_one_card_are_counted(machine, exporter):
    """The updates of an optimiser end a step; nobody is told to be slower than peers that a card alone does not have."""
    rng = random.Random(SEED)
    load = subprocess.Popen([program(), "run", "-q", "--", wheels_python(), "-c", ON_ONE_CARD, "1"], env=machine.env, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)
    try:
        begun = 0
        for name in ("sgd", "momentum", "adam"):
            steps = rng.randint(5, 40)
            load.stdin.write(f"{name} {steps}\n")
            load.stdin.flush()
            assert load.stdout.readline() == "done\n"
            # The last step ends with the next one's first product.
            begun += steps
            time.sleep(0.3)  # a reading serves all for so long
            labels = '{device="npu1",rank="0",ranks="1"}'
            assert exporter_ranks(exporter, "npu_step_time_seconds_count" + labels) == begun - 2, (SEED, name, steps)
            own, wall = (exporter_ranks(exporter, f"npu_step_{kind}seconds_sum{labels}") for kind in ("time_", "wall_time_"))
            assert 0 < own == wall
    finally:
        load.stdin.close()
        load.wait(120)


def exporter_ranks(exporter, series: str) -> float:
    text = fetch(f"http://127.0.0.1:{exporter.ranks_port}/metrics")
    return next(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.rpartition(" ")[0] == series)
