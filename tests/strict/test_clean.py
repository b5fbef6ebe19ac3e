"""Right programs under `anynpu run --strict`: training in two precisions, streams, DDP: no finding."""
from __future__ import annotations

import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
sys.path.insert(0, str(HERE))

from guide import Page  # noqa: E402
from test_strict import findings, run  # noqa: E402

GUIDE = [("first-program", "first.py", ()), ("first-program", "transfer.py", ()), ("first-program", "amp.py", ()), ("migration", "pieces.py", ()),
         ("distributed", "ddp.py", ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"))]

GPT = """
import random, sys, time, torch, torch_npu
sys.path.insert(0, sys.argv[1])
import models
torch.manual_seed(int(time.time()))
model = models.MODELS["gpt"](vocab=200, dim=64, heads=4, layers=2, length=32).to("npu")
optimizer = models.optimizer(model)
data = tuple(t.to("npu") for t in models.MODELS["gpt"].batch(1, n=4, vocab=200, length=32))
for precise in (True, False):
    for _ in range(2):
        optimizer.zero_grad()
        with torch.autocast("npu", dtype=torch.bfloat16, enabled=not precise):
            loss = model(*data)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
side = torch.npu.Stream()
side.wait_stream(torch.npu.current_stream())
with torch.npu.stream(side):
    extra = data[0].float().cumsum(0)
torch.npu.current_stream().wait_stream(side)
extra.record_stream(torch.npu.current_stream())
pinned = torch.empty(1000).pin_memory()
pinned.copy_(torch.ones(1000, device="npu"), non_blocking=True)
torch.npu.synchronize()
print("trained", loss.item() == loss.item(), extra.sum().item() >= 0, pinned.sum().item())
"""


def check(done):
    assert done.returncode == 0 and not findings(done.stderr), done.stdout[-2000:] + done.stderr[-8000:]
    assert "anynpu strict: no findings" in done.stderr, done.stderr[-2000:]


@pytest.mark.parametrize("page,name,launcher", GUIDE)
def test_guide(tmp_path, page, name, launcher):
    path = tmp_path / name
    path.write_text(Page(page).files[name])
    check(run(sys.executable, *launcher, str(path), env={"OMP_NUM_THREADS": "1"}))


@pytest.mark.parametrize("caching", ["", "0"])
def test_training(tmp_path, caching):
    """With each tensor an allocation, and with torch's caching allocator left on."""
    path = tmp_path / "gpt.py"
    path.write_text(GPT)
    env = {"OMP_NUM_THREADS": "1"} | ({"PYTORCH_NO_NPU_MEMORY_CACHING": caching} if caching else {})
    check(run(sys.executable, str(path), str(HERE.parent / "e2e"), env=env))
