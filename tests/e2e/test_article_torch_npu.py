"""The torch_npu article: its checks, and a CUDA script that only gained `transfer_to_npu`; docs/guide/en/first-program.md is what runs here."""
import pytest
from guide import Page

PAGE = Page("first-program")


@pytest.mark.parametrize("label", ["versions", "home", "first", "transfer", "amp", "visible"])
def test_command(machine, label):
    PAGE.run(label, machine)


def test_cards(machine):
    assert len([line for line in PAGE.run("cards", machine).out.splitlines() if "910B4" in line]) == 2


def test_printing_a_tensor(machine):
    machine.py("""
        import torch, torch_npu
        x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
        assert repr(x.npu()) == repr(x)[:-1] + ", device='npu:0')", repr(x.npu())
        for t in [torch.tensor([1.5, float('inf'), float('nan'), -2e-7]), torch.arange(2000) % 7, torch.tensor(3), torch.zeros(0, 3),
                  torch.tensor([True, False]), torch.randn(3).bfloat16(), torch.randn(3).half()]:
            a, b = repr(t), repr(t.npu())
            assert b.replace(", device='npu:0'", "").replace("\\n       ", "") == a.replace("\\n       ", ""), (a, b)
        print("same")
    """).ok().says("^same$")
