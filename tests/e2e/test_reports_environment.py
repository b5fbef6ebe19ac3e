"""Public bug reports about environments and memory as tests (numbers are those of the case list).

Those that stand elsewhere: R004 test_article_ray.py (discovery by the module and by device files); R005, R040, R085 and the first half of R035
test_bad_input.py; R022, R037, R076, R097 test_reports.py; R106 test_plog.py; R098 tests/pack/test_wheel.py. R094 and R095 need Kubernetes (docs/limits.md).
"""
import re

import pytest

COUNT = """
    import acl
    count, code = acl.rt.get_device_count()
    print("count", count, "code", code)
    print("text", (acl.get_recent_err_msg() or "").replace("\\n", " "))
"""


def test_r001_unordered_list(machine213):
    done = machine213.py(COUNT, env={"ASCEND_RT_VISIBLE_DEVICES": "1,0"}).ok()
    done.says(r"^count 0 code 207004$", r"^text EE1001: .*ascending")
    assert '"1,0"' in done.err and "List each card once" in done.err, done.err


def test_r002_ids_that_do_not_exist(machine213):
    code = """
        import acl
        print("count", acl.rt.get_device_count()[0], "code", acl.rt.set_device({device}))
        print("text", (acl.get_recent_err_msg() or "").replace("\\n", " "))
    """
    machine213.py(code.format(device=3), cards=4, env={"ASCEND_RT_VISIBLE_DEVICES": "0,1,3,9"}).ok().says(r"^count 3 code 107001$", r'^text .*stopped at "9"')
    machine213.py(code.format(device=0), cards=4, env={"ASCEND_RT_VISIBLE_DEVICES": "1, 2,3"}).ok().says(r"^count 1 code 0$")


def test_r107_a_physical_number_where_a_logical_one_is_wanted(machine213):
    machine213.py("""
        import acl
        print("code", acl.rt.set_device(5))
        print("text", acl.get_recent_err_msg().replace("\\n", " "))
        print("code", acl.rt.set_device(1))
    """, cards=8, env={"ASCEND_RT_VISIBLE_DEVICES": "4,5,6,7"}).ok().says("^code 107001$", "^text .*use 1", "^code 0$")


def test_r008_the_first_operator_needs_no_package_of_a_compiler(machine213):
    machine213.py("""
        import sys
        for name in ("decorator", "attr", "attrs", "cffi", "psutil", "scipy", "google.protobuf", "tbe", "te", "absl", "cloudpickle", "tornado"):
            sys.modules[name] = None
        import torch, torch_npu
        print("shape", tuple(torch.randn(2, 2).npu().cpu().shape))
    """).ok().says(r"^shape \(2, 2\)$")


def test_r035_memory_ends_at_the_configured_size_and_the_program_goes_on(machine213):
    machine213.py("""
        import torch, torch_npu
        kept = torch.empty(700 << 20, dtype=torch.uint8, device="npu")
        for _ in range(3):
            try:
                torch.empty(700 << 20, dtype=torch.uint8, device="npu")
                raise SystemExit("no error")
            except torch.OutOfMemoryError as e:
                assert "NPU out of memory. Tried to allocate 702.00 MiB" in str(e) and "1024.00 MiB total capacity; 700.00 MiB already allocated" in str(e), e  # rounded to 2 MiB
        del kept
        print("again", torch.empty(700 << 20, dtype=torch.uint8, device="npu").numel() >> 20, torch.ones(3, device="npu").sum().item())
    """, options=("--hbm", "1G")).ok().says(r"^again 700 3\.0$")


def test_r080_a_model_that_fits_only_in_shards(machine213):
    """300 MiB of weights, two cards of 256 MiB."""
    code = """
        import sys, torch, torch_npu
        sharded, rank = sys.argv[1] == "sharded", int(sys.argv[2])
        torch.npu.set_device(rank)
        rows = list(range(rank, 30, 2)) if sharded else list(range(30))
        try:
            weights = [torch.full((10 << 18,), float(row), device=f"npu:{rank}") for row in rows]
        except torch.OutOfMemoryError:
            print("out of memory")
            raise SystemExit
        assert all(w[0].item() == row for row, w in zip(rows, weights))
        print("loaded", len(weights))
    """
    path = machine213.script("load.py", code)
    for rank in (0, 1):
        machine213.run(machine213.python, path, "whole", str(rank), options=("--hbm", "256M")).ok().says("^out of memory$")
        machine213.run(machine213.python, path, "sharded", str(rank), options=("--hbm", "256M")).ok().says("^loaded 15$")


def test_r082_all_ranks_on_card_0_show(machine213):
    path = machine213.script("two.py", """
        import os, subprocess, sys, time
        HOLD = "import sys, acl; acl.init(); acl.rt.set_device(0); assert acl.rt.malloc(64 << 20, 0)[1] == 0; print('held', flush=True); sys.stdin.readline()"
        children = [subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        for child in children:
            assert child.stdout.readline() == "held\\n"
        table = subprocess.run(["npu-smi", "info"], capture_output=True, text=True).stdout
        for child in children:
            child.communicate("\\n")
        rows = [line for line in table.splitlines() if any(f"| {child.pid} " in line for child in children)]
        print(table)
        print("on card 0:", sum(line.startswith("| 0 ") for line in rows), "of", len(rows))
    """)
    machine213.run(machine213.python, path).ok().says("^on card 0: 2 of 2$")


def test_r007_without_the_drivers_library(machine213):
    """As on a machine with CANN and without a driver."""
    code = "import torch_npu; print('imported')"
    machine213.py(code).ok().says("^imported$")
    done = machine213.py(code, options=("--missing", "driver"))
    assert done.code == 1 and re.search(r"ImportError: libascend_hal\.so", done.err), done.tail()


def test_r086_without_the_operator_package(machine213):
    done = machine213.py("""
        import torch, torch_npu
        try:
            print(torch.arange(4).npu() + torch.ones(4).npu())
            torch.npu.synchronize()
        except RuntimeError as e:
            text = str(e)
            print("refused", "EZ9999" in text, "Cannot find bin of op" in text, "ERR0" in text)
    """, options=("--missing", "ops")).ok()
    done.says("^refused True True True$")


@pytest.mark.parametrize("word", ["", "everything", "driver,ops"])
def test_what_may_be_missing_is_named(machine213, word):
    done = machine213.run("true", options=("--missing", word))
    assert done.code == 2 and "driver" in done.err and "ops" in done.err, done.tail()
