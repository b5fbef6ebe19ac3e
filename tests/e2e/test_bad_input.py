"""What users get wrong: the real codes, a text with cause and remedy, and the process goes on."""
import pytest


def test_out_of_memory_and_on(machine213):
    machine213.py("""
        import torch, torch_npu
        free, total = torch.npu.mem_get_info()
        assert total == 1 << 30, total
        try:
            torch.empty(2 << 30, dtype=torch.uint8, device="npu")
            raise SystemExit("no error")
        except torch.OutOfMemoryError as e:
            text = str(e)
            assert "NPU out of memory" in text and "1024.00 MiB total capacity" in text, text  # torch changes to GiB above 1 GiB
        print("sum", torch.ones(4, device="npu").sum().item())
    """, options=("--hbm", "1G")).ok().says(r"^sum 4\.0$")


def test_an_operators_failure_has_its_own_number_after_out_of_memory(machine213):
    """torch_npu prints the runtime's last code where it finds one: that of an older failure must not stand above a later text."""
    machine213.py("""
        import torch, torch_npu
        try:
            torch.empty(2 << 30, dtype=torch.uint8, device="npu")
            raise SystemExit("no error")
        except torch.OutOfMemoryError:
            pass
        try:
            torch.ones(4, device="npu", dtype=torch.int32).pow(-2).cpu()
            raise SystemExit("no error")
        except RuntimeError as e:
            first = str(e).splitlines()[0]
            assert "aclnnPow" in first and "161002" in first and "207001" not in first, e
        print("its own")
    """, options=("--hbm", "1G")).ok().says("^its own$")


def test_wrong_device_index(machine213):
    machine213.py("""
        import torch, torch_npu
        try:
            torch.ones(2, device="npu:5")
        except RuntimeError as e:
            assert "107001" in str(e) or "device" in str(e).lower(), e
            print("refused")
    """).ok().says("^refused$")


@pytest.mark.parametrize("value,count", [("0", 1), ("1", 1), ("0,1", 2), ("1,0", 0), ("", 0), ("0,7", 1), ("0, 1", 1), ("x", 0), ("NoDevFiles", 0)])
def test_visible_list(machine213, value, count):
    machine213.py("""
        import torch, torch_npu
        print("count", torch.npu.device_count(), torch.npu.is_available())
    """, env={"ASCEND_RT_VISIBLE_DEVICES": value}).ok().says(rf"^count {count} {count > 0}$")


def test_mixed_devices(machine213):
    machine213.py("""
        import torch, torch_npu
        try:
            torch.add(torch.rand(2), torch.rand(2).npu())
        except RuntimeError as e:
            assert "Expected all tensors to be on the same device" in str(e), e
            print("refused")
    """).ok().says("^refused$")


def test_npu0_is_the_assigned_chip(machine213):
    """R005: with list "1" the memory of npu:0 is that of chip 1."""
    machine213.py("""
        import subprocess, re, os
        import torch, torch_npu
        def used(card):
            text = subprocess.run(["npu-smi", "info"], capture_output=True, text=True, check=True).stdout
            return [int(m) for m in re.findall(r"(\\d+) */ *32768", text)][card]
        before = used(0), used(1)
        x = torch.ones(64 << 20, device="npu:0")   # 256 MiB
        x.sum().item()
        after = used(0), used(1)
        assert after[0] == before[0] and after[1] >= before[1] + 256, (before, after)
        print("chip 1")
    """, env={"ASCEND_RT_VISIBLE_DEVICES": "1"}).ok().says("^chip 1$")


def test_save_and_load(machine213):
    """R040: both formats, to another card."""
    machine213.py("""
        import torch, torch_npu
        x = torch.randn(5, 3)
        for zipped in (True, False):
            torch.save(x.npu(), "x.pt", _use_new_zipfile_serialization=zipped)
            y = torch.load("x.pt", map_location="npu:1")
            assert y.device == torch.device("npu:1") and torch.equal(y.cpu(), x)
        print("equal")
    """).ok().says("^equal$")
