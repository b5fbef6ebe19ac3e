"""anynpu inject, clear, faults: what a client sees, in ACL, npu-smi and DCMI alike."""
from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import time

from conftest import program, until
from test_npu_smi import value

DCMI = """
import ctypes, sys
lib = ctypes.CDLL("libdcmi.so")
def health(card):
    word = ctypes.c_uint(99)
    return lib.dcmi_get_device_health(card, 0, ctypes.byref(word)), word.value
def codes(card, room=128):
    count, room_ = ctypes.c_int(-1), (ctypes.c_uint * 128)()
    code = lib.dcmi_get_device_errorcode_v2(card, 0, ctypes.byref(count), room_, room)
    return code, [f"{c:08X}" for c in room_[: max(count.value, 0)]], count.value
"""


def dcmi(machine, text: str, **more) -> list[str]:
    done = machine.python(DCMI + text, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


def test_a_typo_is_an_error_that_names_the_nearest(machine):
    done = machine("inject", "ecc-duoble")
    assert done.returncode == 2 and "Did you mean ecc-double?" in done.stderr
    done = machine("inject", "call", "--call", "aclrtMaloc", "--nth", "1", "--code", "1")
    assert done.returncode == 2 and "Did you mean aclrtMalloc?" in done.stderr
    for words in (("call", "--call", "aclrtMalloc"), ("call", "--code", "1"), ("slow", "--code", "3"), ("card-lost", "--amount", "3"), ("hang", "--factor", "2"),
                  ("card-lost", "--card", "x"), ("card-lost", "--bogus"), ("error-code", "--code", "xyz"), ("call", "--call", "aclrtMalloc", "--code", "0x1g"),
                  ("link-down", "--period", "5"), ("packet-loss", "--probability", "0"), ("call", "--call", "aclrtMalloc", "--code", "5", "--card", "0"), ()):
        assert machine("inject", *words).returncode in (1, 2), words
    # Numbers that an unsigned number would take for others, and faults that would never act.
    for words in (("packet-loss", "--amount", "-5"), ("hang", "--after", "-1"), ("link-flapping", "--period", "-5"), ("ecc-double", "--seed", "-1"),
                  ("ecc-single", "--times", "-1"), ("ecc-single", "--times", "99999999999999999999"), ("pcie-degraded", "--amount", "0"),
                  ("packet-loss", "--probability", "1e-9"), ("call", "--call", "aclGetRecentErrMsg", "--code", "5"),
                  ("call", "--call", "aclrtGetLastError", "--code", "5"), ("call", "--call", "aclnnApplyAdam", "--code", "5"),
                  ("call", "--call", "aclrtMalloc", "--code", "5", "--nth", "0")):
        done = machine("inject", *words)
        assert done.returncode == 2 and len(done.stderr) < 300, (words, done.stderr)
    assert "--call is needed" in machine("inject", "call", "--code", "1").stderr
    assert machine("inject", "card-lost", "--card", "7").returncode == 1
    assert "no faults" in machine("faults").stdout
    assert machine("clear").returncode == 2
    assert machine("clear", "bogus").returncode == 2
    assert machine("clear", "slow", "--all").returncode == 2
    assert machine("clear", "77").returncode == 1
    # Names and numbers that nothing has: an end that looks done would leave the fault in place.
    machine("up")
    machine("inject", "hang", "--card", "1")
    for words, code, told in ((("clear", "slow"), 1, "1 hang (card 1)"), (("clear", "--card", "0"), 1, "1 hang (card 1)"),
                              (("clear", "--card", "9"), 2, "cards 0 to 1"), (("clear", "hang", "--card", "9"), 2, "cards 0 to 1"),
                              (("clear", "--all", "--machine", machine.name + "x"), 2, machine.name), (("faults", "--machine", machine.name + "0"), 2, machine.name),
                              (("inject", "slow", "--machine", machine.name[:-1]), 2, machine.name), (("clock", "hold", "--machine", machine.name + "1"), 2, machine.name),
                              (("down", "--machine", machine.name + "0"), 2, machine.name)):
        done = machine(*words)
        assert (done.returncode, told in done.stderr) == (code, True), (words, done.returncode, done.stderr)
    assert machine("clear", "hang", "--card", "1", "--machine", machine.name).returncode == 0
    assert machine("clear", "--all").returncode == 0, "all of none is no mistake"


def test_every_fault_can_be_injected_listed_and_cleared(machine):
    names = re.findall(r"^  ([a-z-]+) {2,}\S", machine("inject", "--help").stdout.split("Faults:")[1], re.M)
    assert len(names) == 15
    more = {"call": ("--call", "aclrtMalloc", "--code", "207001"), "error-code": ("--code", "80E18402")}
    for name in names:
        done = machine("inject", name, *more.get(name, ()))
        assert done.returncode == 0, (name, done.stderr)
    listed = machine("faults").stdout
    assert all(re.search(rf"^\d+ +{name} ", listed, re.M) for name in names)
    assert machine("clear", "--all").stdout.startswith("15 faults")
    assert "no faults" in machine("faults").stdout


def test_the_nth_call_of_any_function_fails_with_its_code(machine):
    client = """
    import acl, ctypes
    print(acl.init())
    print(acl.rt.set_device(0))
    print([acl.rt.malloc(1 << 20, 0)[1] for _ in range(4)])
    hccl = ctypes.CDLL("libhccl.so")
    print([hccl.HcclGetRootInfo(ctypes.create_string_buffer(4108)) for _ in range(2)])
    """
    machine("inject", "call", "--call", "aclrtMalloc", "--nth", "3", "--code", "207001")
    machine("inject", "call", "--call", "HcclGetRootInfo", "--nth", "1", "--code", "19")
    assert machine.python(client).stdout.split("\n")[2:4] == ["[0, 0, 207001, 0]", "[19, 0]"]
    assert machine.python(client).stdout.split("\n")[2:4] == ["[0, 0, 0, 0]", "[0, 0]"], "the n-th of all processes has passed"
    machine("inject", "call", "--call", "aclnnNpuFormatCastCalculateSizeAndFormat", "--nth", "1", "--code", "561103")
    helper = "import ctypes; f = ctypes.CDLL('libopapi.so').aclnnNpuFormatCastCalculateSizeAndFormat; print([f(None, 2, 0, None, None, None) for _ in range(2)])"
    assert machine.python(helper).stdout.strip() == "[561103, 161001]", "it answers at once and is no operator of two phases"
    machine("inject", "call", "--call", "aclInit", "--nth", "1", "--code", "500000")
    assert machine.python(client).stdout.split("\n")[0] == "500000", "the first call of a process too"


def test_operators_fail_in_either_phase(machine):
    machine("inject", "call", "--call", "aclnnMatmulGetWorkspaceSize", "--nth", "2", "--code", "161002")
    worker = machine.worker(size=64)
    worker.work()
    worker.process.wait(timeout=120)
    assert "AssertionError: 161002" in worker.process.stderr.read()
    machine("inject", "call", "--call", "aclnnMatmul", "--nth", "2", "--code", "361001")
    worker = machine.worker(size=64)
    worker.work()
    worker.process.wait(timeout=120)
    assert "AssertionError: 361001" in worker.process.stderr.read()


def test_a_lost_card_is_lost_to_all(machine):
    worker = machine.worker(card=1, size=128)
    worker.work()
    machine("inject", "card-lost", "--card", "1")
    assert until(worker.process.stdout.readline).split() == ["failed", "507010"]
    for _ in range(2):  # it survives dcmi_init, in this process and in the next
        assert dcmi(machine, "print(lib.dcmi_init(), lib.dcmi_init(), health(0), health(1), codes(1)[1])") == [
            "0 0 (0, 0) (0, 4294967295) ['40F84E00']"]
    text = machine.smi("info")
    assert re.search(r"^\| 1 +910B4 +\| UNKNOWN +\| NA +NA ", text, re.M) and re.search(r"^\| 0 +910B4 +\| OK ", text, re.M)
    assert machine.python("import acl; acl.init(); print(acl.rt.set_device(1))").stdout.strip() != "0"
    machine("clear", "card-lost")
    assert machine.python("import acl; acl.init(); print(acl.rt.set_device(1), acl.rt.malloc(4096, 0)[1])").stdout.strip() == "0 0"
    assert machine.smi("info").count("| OK ") == 2


def test_a_hang_ends_when_it_is_cleared(machine):
    worker = machine.worker(card=0, size=64)
    machine("inject", "hang", "--card", "0")
    worker.work()
    assert dcmi(machine, "lib.dcmi_init(); print(health(0), codes(0)[1])") == ["(0, 2) ['80CB800A']"]
    time.sleep(0.3)
    assert worker.process.poll() is None
    machine("clear", "hang")
    worker.rest()
    worker.end()
    assert worker.process.returncode == 0


def test_memory_errors_are_counted_and_stop_work_once(machine):
    worker = machine.worker(card=0, size=64)
    machine("inject", "ecc-double", "--card", "0")
    worker.work()
    assert until(worker.process.stdout.readline).split() == ["failed", "507054"]
    ecc = machine.smi("info", "-t", "ecc", "-i", "0")
    assert value(ecc, "HBM Double Bit Error Count") == "1" and value(ecc, "HBM Single Bit Error Count") == "0"
    assert value(machine.smi("info", "-t", "health", "-i", "0"), "Health") == "Critical"
    chip = machine.smi("info", "-t", "health", "-i", "0", "-c", "0")
    assert value(chip, "Error Code") == "80E01801" and "ECC" in value(chip, "Error Information")
    assert value(machine.smi("info", "-t", "board", "-i", "0"), "Chip Fault") == "1"
    assert value(machine.smi("info", "-t", "health", "-i", "1"), "Health") == "OK"


def test_heat_throttles_and_goes(machine):
    machine("up")
    machine("clock", "hold")
    machine("inject", "over-temperature", "--card", "0", "--amount", "115")
    machine("clock", "advance", "10")
    assert abs(int(value(machine.smi("info", "-t", "temp", "-i", "0"), "NPU Temperature (C)")) - 115) <= 1
    assert value(machine.smi("info", "-t", "health", "-i", "0"), "Health") == "Alarm"
    machine("clear", "over-temperature")
    machine("clock", "advance", "300")
    assert value(machine.smi("info", "-t", "temp", "-i", "0"), "NPU Temperature (C)") == "39"
    assert machine("clock", "run").returncode == 0
    assert machine("clock", "advance", "1").returncode == 1


def test_the_held_clock_makes_figures_repeat(make_machine):
    def figures() -> str:
        machine = make_machine()
        machine("up")
        machine("clock", "hold")
        worker = machine.worker(card=0, size=96)
        worker.end()
        machine("clock", "advance", "1")
        return machine.smi("info", "-t", "common", "-i", "0") + machine.smi("info", "-t", "usages", "-i", "0")

    assert figures() == figures()


def test_codes_of_the_fault_list_are_reported(machine):
    """R088: any code of the plugin's table."""
    machine("inject", "error-code", "--card", "0", "--code", "80E18402")
    machine("inject", "error-code", "--card", "0", "--code", "0x81078603")
    assert dcmi(machine, "lib.dcmi_init(); print(codes(0), codes(0, 1), codes(1))") == [
        "(0, ['80E18402', '81078603'], 2) (-8001, ['00000000', '00000000'], 2) (0, [], 0)"]


def test_subscribers_hear_of_each_change_once(machine):
    """R089: a callback for what comes and one for what goes."""
    machine("up")
    text = """
    import time, ctypes
    class Event(ctypes.Structure):
        _fields_ = [("type", ctypes.c_int), ("pad", ctypes.c_int), ("event_id", ctypes.c_uint), ("deviceid", ctypes.c_ushort), ("node", ctypes.c_ubyte * 4),
                    ("severity", ctypes.c_ubyte), ("assertion", ctypes.c_ubyte), ("serial", ctypes.c_int), ("notify", ctypes.c_int), ("raised", ctypes.c_ulonglong),
                    ("name", ctypes.c_char * 256), ("rest", ctypes.c_char * 64)]
    class Filter(ctypes.Structure):
        _fields_ = [("flag", ctypes.c_ulonglong), ("event_id", ctypes.c_uint), ("severity", ctypes.c_ubyte), ("node", ctypes.c_ubyte), ("resv", ctypes.c_ubyte * 32)]
    heard = []
    @ctypes.CFUNCTYPE(None, ctypes.POINTER(Event))
    def hear(event):
        e = event.contents
        heard.append((f"{e.event_id:08X}", e.deviceid, e.severity, e.assertion, e.name.decode(), e.raised > 1_000_000_000_000))
        print("heard", len(heard), flush=True)
    lib.dcmi_init()
    assert ctypes.sizeof(Event) == 360
    print(lib.dcmi_subscribe_fault_event(1, 0, Filter(), hear), flush=True)
    input()
    time.sleep(0.5)
    print(heard)
    """
    line = [program(), "run", "-q", "--", sys.executable, "-c", DCMI + textwrap.dedent(text)]
    client = subprocess.Popen(line, env=machine.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert client.stdout.readline().strip() == "0"
    machine("inject", "card-lost", "--card", "0")  # not the card that is listened to
    machine("inject", "ecc-double", "--card", "1")
    assert client.stdout.readline() == "heard 1\n"
    machine("clear", "ecc-double")
    assert client.stdout.readline() == "heard 2\n"
    out, _ = client.communicate("\n", timeout=30)
    assert out.strip() == str([("80E01801", 1, 3, 1, "HBM multi-bit ECC", True), ("80E01801", 1, 0, 0, "HBM multi-bit ECC", True)]) or out.strip() == str(
        [("80E01801", 1, 3, 1, "HBM multi-bit ECC", True), ("80E01801", 1, 3, 0, "HBM multi-bit ECC", True)])


def test_a_driver_of_another_chip_gives_minus_8010(make_machine):
    """R055."""
    machine = make_machine("--soc", "Ascend310P3")
    assert dcmi(machine, "lib.dcmi_init(); print(health(0))", ANYNPU_DRIVER="mismatched") == ["(-8010, 4)"]
    assert dcmi(machine, "lib.dcmi_init(); print(health(0))") == ["(0, 0)"]


def test_a_driver_that_does_not_answer_times_out(machine):
    machine("inject", "driver-timeout", "--card", "0", "--amount", "50")
    assert dcmi(machine, """
lib.dcmi_init(); n = ctypes.c_int()
print(lib.dcmi_get_device_temperature(0, 0, ctypes.byref(n)), lib.dcmi_get_device_temperature(1, 0, ctypes.byref(n)))
""") == ["-8006 0"]
    assert machine.python("import acl; acl.init(); print(acl.rt.set_device(0), acl.rt.malloc(4096, 0)[1])").stdout.split()[-1] != "0"


def test_the_950_speaks_the_second_generation_only(make_machine):
    """R050: the launcher picks the library; the first generation answers not-supported."""
    text = """
    import ctypes
    lib = ctypes.CDLL("libdcmi.so")
    ids, n = (ctypes.c_int * 64)(), ctypes.c_int()
    print(lib.dcmi_init(), hasattr(lib, "dcmiv2_init") and lib.dcmiv2_init(), hasattr(lib, "dcmiv2_init") and lib.dcmiv2_get_device_list(ids, ctypes.byref(n), 64), n.value)
    """
    assert make_machine("--soc", "Ascend950PR_9579", "-n", "3").python(text).stdout.strip() == "-8255 0 0 3"
    for soc in ("Ascend910B4", "Ascend910_9391", "Ascend310P3"):
        assert make_machine("--soc", soc).python(text).stdout.strip() == "0 False False 0", soc
    assert make_machine("--soc", "Ascend950PR_9579", "-n", "3").smi("info").count("| OK ") == 3


ALL_REDUCE = """
import acl, ctypes
hccl = ctypes.CDLL("libhccl.so")
acl.init()
comms = (ctypes.c_void_p * 2)()
for card in range(2): acl.rt.set_device(card)
assert hccl.HcclCommInitAll(2, (ctypes.c_int32 * 2)(0, 1), comms) == 0
def all_reduce():
    codes, streams = [], []
    for card in range(2):
        acl.rt.set_device(card)
        at, _ = acl.rt.malloc(4096, 0)
        stream, _ = acl.rt.create_stream()
        codes.append(hccl.HcclAllReduce(ctypes.c_void_p(at), ctypes.c_void_p(at), ctypes.c_uint64(1024), 4, 0, ctypes.c_void_p(comms[card]), ctypes.c_void_p(stream)))
        streams.append((card, stream))
    for card, stream in streams:
        acl.rt.set_device(card)
        codes.append(acl.rt.synchronize_stream(stream))
    return codes
print(all_reduce(), flush=True)
input()
print(all_reduce(), flush=True)
"""


def two_rounds(machine, between) -> list[str]:
    client = subprocess.Popen([program(), "run", "-q", "--", sys.executable, "-c", ALL_REDUCE], env=machine.env, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    first = client.stdout.readline().strip()
    between()
    rest, err = client.communicate("\n", timeout=300)
    assert client.returncode == 0, err
    return [first, rest.strip()]


def test_collectives_meet_a_link_that_is_down(machine):
    first, second = two_rounds(machine, lambda: machine("inject", "link-down", "--card", "1"))
    assert first == "[0, 0, 0, 0]"
    codes = [int(code) for code in second.strip("[]").split(",")]
    assert codes[3] == 507056 and codes[2] != 0, "the peer learns of it too"
    assert machine.smi("info", "-t", "hccs", "-i", "1", "-c", "0").count("Abnormal") == 1


def test_collectives_ride_out_flapping_and_lost_packets(machine):
    def between():
        machine("inject", "link-flapping", "--card", "0", "--period", "400")
        machine("inject", "packet-loss", "--card", "1", "--amount", "3")

    assert two_rounds(machine, between) == ["[0, 0, 0, 0]"] * 2
    counters = dict(line.split(":") for line in machine.inside("hccn_tool", "-i", "1", "-stat", "-g").stdout.splitlines() if re.fullmatch(r"\w+:\d+", line))
    assert int(counters["roce_new_pkt_rty_num"]) >= 1
