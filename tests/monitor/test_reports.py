"""What users of monitors reported, one test each: R056, R088, R091, R092, R103. The others of this kind are in tests/monitors."""
from __future__ import annotations

import re
import subprocess
import sys
import textwrap

import pytest
from live import Exporter, program
from test_exporter import STOCK_LABELS, label_keys

HOLD = textwrap.dedent("""
    import sys, acl
    assert acl.init() == 0 and acl.rt.set_device(int(sys.argv[1])) == 0
    assert acl.rt.malloc(int(sys.argv[2]) << 20, 0)[1] == 0
    print("ready", flush=True)
    sys.stdin.read()
""")


@pytest.fixture
def hold(machine):
    """hold(card, megabytes): a process that has that much memory of the card, until the end."""
    held = []

    def make(card: int, megabytes: int) -> subprocess.Popen:
        line = [program(), "run", "-q", "--", sys.executable, "-c", HOLD, str(card), str(megabytes)]
        held.append(subprocess.Popen(line, env=machine.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        assert held[-1].stdout.readline().strip() == "ready"
        return held[-1]

    yield make
    for process in held:
        process.stdin.close()
        process.wait(60)


def samples(text: str, family: str) -> list[tuple[dict[str, str], float]]:
    found = []
    for line in text.splitlines():
        if line.startswith(family + "{"):
            labels, _, value = line.partition("{")[2].rpartition("} ")
            found.append((dict(re.findall(r'(\w+)="([^"]*)"', labels)), float(value)))
    return found


def test_r056_a_container_has_its_use_and_memory(machine, hold, tmp_path):
    process, container = hold(0, 512), "c0ffee" * 10 + "beef"
    # The process is in a container as far as the tables of the kernel say; --procfs is where the exporter reads them.
    (tmp_path / "proc" / str(process.pid)).mkdir(parents=True)
    (tmp_path / "proc" / str(process.pid) / "cgroup").write_text(f"0::/system.slice/docker-{container}.scope\n")
    text = machine.run("exporter", "--print", "--collector", "software", "--procfs", str(tmp_path / "proc")).stdout
    (labels, used), = samples(text, "container_npu_used_memory")
    assert set(labels) == STOCK_LABELS and labels["id"] == "0" and labels["container_name"] == container[:12]
    assert 512 <= used <= 514
    assert samples(text, "container_npu_utilization")[0][0] == labels
    (total_labels, total), = samples(text, "container_npu_total_memory")
    assert total_labels == labels and total == 2048
    (own, held), = samples(text, "npu_container_memory_bytes")
    assert own == {"container": container, "device": "npu0"} and held == used * 2**20
    (info, _), = samples(text, "npu_chip_info_process_info")
    assert info["container_id"] == container and info["process_id"] == str(process.pid)


def test_r088_an_injected_code_is_what_dcmi_and_the_exporter_show(machine):
    machine.run("inject", "error-code", "--card", "1", "--code", "80E01801")
    client = textwrap.dedent("""
        import ctypes
        lib = ctypes.CDLL("libdcmi.so")
        lib.dcmi_init()
        count, codes = ctypes.c_int(), (ctypes.c_uint * 128)()
        assert lib.dcmi_get_device_errorcode_v2(1, 0, ctypes.byref(count), codes, 128) == 0
        print(list(codes[:count.value]))
    """)
    assert machine.run("run", "-q", "--", sys.executable, "-c", client).stdout.strip() == str([0x80E01801])
    for collector in ("software", "dcmi"):
        text = machine.run("exporter", "--print", "--collector", collector).stdout
        assert {labels["id"]: value for labels, value in samples(text, "npu_chip_info_error_code")} == {"0": 0, "1": 0x80E01801}, collector
        assert {labels["id"]: value for labels, value in samples(text, "npu_chip_info_health_status")} == {"0": 1, "1": 0}, collector


def test_r091_label_keys_are_there_whoever_runs_and_after_a_restart(machine, hold):
    exporter = Exporter(machine)
    before = label_keys(exporter.scrape())
    hold(0, 16)
    hold(1, 16)
    again = Exporter(machine)
    for text in (exporter.scrape(), again.scrape()):
        for family, keys in label_keys(text).items():
            assert len(keys) == 1 and before.get(family, keys) == keys, (family, keys)
    assert before["npu_chip_info_hbm_used_memory"] == {frozenset(STOCK_LABELS)}


def test_r092_memory_by_process_is_that_of_npu_smi(machine, hold):
    first, second = hold(0, 300), hold(1, 77)
    text = machine.run("exporter", "--print", "--collector", "software").stdout
    shown = {int(labels["process_id"]): value for labels, value in samples(text, "npu_chip_info_process_info")}
    assert set(shown) == {first.pid, second.pid} and 300 <= shown[first.pid] <= 302 and 77 <= shown[second.pid] <= 79
    info = machine.run("smi", "info").stdout
    for pid, megabytes in shown.items():
        assert abs(int(re.search(rf"\| {pid} +\| \S+ +\| (\d+)", info)[1]) - megabytes) <= 2


@pytest.mark.parametrize("collector", ["software", "dcmi"])
def test_r103_stock_units_and_base_units_are_one_value(machine, hold, collector):
    hold(0, 123)
    text = machine.run("exporter", "--print", "--collector", collector).stdout
    for stock, own, factor, margin in (("npu_chip_info_power", "npu_power_watts", 1, 1e-6), ("npu_chip_info_hbm_used_memory", "npu_memory_used_bytes", 2**20, 2**20),
                                       ("npu_chip_info_hbm_total_memory", "npu_memory_total_bytes", 2**20, 1), ("npu_chip_info_temperature", "npu_temperature_celsius", 1, 1e-6)):
        theirs = {labels["id"]: value for labels, value in samples(text, stock)}
        ours = {labels["device"].removeprefix("npu"): value for labels, value in samples(text, own)}
        assert theirs.keys() == ours.keys() == {"0", "1"}
        for card in theirs:
            assert abs(theirs[card] * factor - ours[card]) <= margin, (stock, card)
    assert 30 < samples(text, "npu_power_watts")[0][1] < 500, "watts, not milliwatts"
