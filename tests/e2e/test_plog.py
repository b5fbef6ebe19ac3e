"""The log of CANN's form: files, switches, operator times."""
import re

LINE = re.compile(r"^\[(DEBUG|INFO|WARNING|ERROR|EVENT)\] [A-Z]+\(\d+,[^)]+\):\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d\.\d{3}\.\d{3} \[[\w.]+:\d+\]\d+ .*$")

FAILS = """
    import acl
    acl.init()
    print("code", acl.rt.set_device(0) if {good} else acl.rt.set_device(77))
"""


def logs(machine, kind="debug"):
    return sorted((machine.tmp / "logs").glob(f"{kind}/plog/plog-*_*.log"))


def test_failures_are_in_the_files_where_the_variable_says(machine213):
    env = {"ASCEND_PROCESS_LOG_PATH": str(machine213.tmp / "logs")}
    machine213.py(FAILS.format(good=False), env=env).ok().says("^code 107001$")
    (file,) = logs(machine213)
    lines = file.read_text().splitlines()
    assert all(LINE.match(line) for line in lines), lines
    assert any("[ERROR] ASCENDCL(" in line and "ErrCode=107001" in line and "invalid device=77" in line for line in lines), lines


def test_switches(machine213):
    folder = str(machine213.tmp / "logs")
    machine213.py(FAILS.format(good=False), env={"ASCEND_PROCESS_LOG_PATH": folder, "ASCEND_GLOBAL_LOG_LEVEL": "4"}).ok()
    assert logs(machine213) == []
    done = machine213.py(FAILS.format(good=False), env={"ASCEND_PROCESS_LOG_PATH": folder, "ASCEND_SLOG_PRINT_TO_STDOUT": "1"}).ok()
    assert [line for line in done.out.splitlines() if LINE.match(line) and "107001" in line], done.out
    assert logs(machine213) == []
    machine213.py(FAILS.format(good=True), env={"ASCEND_PROCESS_LOG_PATH": folder}).ok().says("^code 0$")
    assert logs(machine213) == [], "no line, no file"


def test_r106_the_only_chip_is_hidden(machine213):
    env = {"ASCEND_PROCESS_LOG_PATH": str(machine213.tmp / "logs"), "ASCEND_RT_VISIBLE_DEVICES": "4"}
    machine213.py(FAILS.format(good=True), env=env, cards=1).ok().says("^code 107001$")
    text = logs(machine213)[0].read_text()
    assert "invalid device=0" in text and "input visible devices:4" in text, text


def test_a_folder_that_cannot_be_written_harms_nothing(machine213):
    done = machine213.py(FAILS.format(good=False), env={"ASCEND_PROCESS_LOG_PATH": "/proc/none"}).ok()
    done.says("^code 107001$")
    assert done.err.count("no log can be written") == 1, done.err


def test_operator_times_as_the_article_says(machine213):
    code = """
        import torch, torch_npu
        a = torch.rand(8, 16).npu()
        print("shape", tuple(torch.matmul(a, a.t()).cpu().shape))
    """
    env = {"ASCEND_PROCESS_LOG_PATH": str(machine213.tmp / "logs"), "ASCEND_GLOBAL_LOG_LEVEL": "3", "PROFILING_MODE": "true"}
    machine213.py(code, env=env).ok().says(r"^shape \(8, 8\)$")
    text = "".join(p.read_text() for p in logs(machine213, "run"))
    assert re.search(r"\[EVENT\] PROFILING\(\d+,python[\d.]*\):.* aclnnM\w+ \d+\.\d us float32\[8, 16\]", text), text
    machine213.py(code, env=env | {"ASCEND_SLOG_PRINT_TO_STDOUT": "1"}).ok().says(r"PROFILING.* us float32\[8, 16\]")
    done = machine213.py(code, env={k: v for k, v in env.items() if k != "PROFILING_MODE"} | {"ASCEND_SLOG_PRINT_TO_STDOUT": "1"}).ok()
    assert "PROFILING" not in done.out
