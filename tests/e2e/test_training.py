"""GPT-like, ResNet-like and MLP models train 50 steps on npu with the CPU's losses, fp32 and bf16 autocast.

The bound: both runs start from one state. What fp32 rounding does to a training run is measured, not guessed: the same run
in double on the CPU is the truth, the CPU's own distance from it is the unit. Ours may be 8 units away, plus 1e-5 of the
loss (bf16 autocast: 4 units of the CPU's autocast run plus 2 % of the loss, since each matmul result carries 8 bits).
"""
import json

import pytest

from conftest import HERE, SEED

PROGRAM = """
    import json, sys
    sys.path.insert(0, {here!r})
    import torch, torch_npu
    import models
    name, seed = {name!r}, {seed}
    out = dict(truth=models.train(name, "cpu", 50, seed, dtype=torch.float64), cpu=models.train(name, "cpu", 50, seed, autocast={autocast}),
               npu=models.train(name, "npu:0", 50, seed, autocast={autocast}))
    print("LOSSES", json.dumps(out))
"""


@pytest.mark.parametrize("autocast", [False, True], ids=["fp32", "bf16"])
@pytest.mark.parametrize("name", ["gpt", "resnet", "mlp"])
def test_losses_equal_the_cpus(machine, name, autocast):
    done = machine.py(PROGRAM.format(here=str(HERE), name=name, seed=SEED, autocast=autocast), timeout=500,
                      env={"OMP_NUM_THREADS": ""}).ok()
    losses = json.loads(done.out.split("LOSSES", 1)[1])
    unit = 0.0
    for step, (t, c, n) in enumerate(zip(losses["truth"], losses["cpu"], losses["npu"])):
        unit = max(unit, abs(c - t))  # an early rounding error lives on in every later step
        bound = 4 * unit + 0.02 * abs(t) if autocast else 8 * unit + 1e-5 * abs(t)
        assert abs(n - t) <= bound, f"seed {SEED} step {step}: npu {n}, cpu {c}, double {t}, bound {bound:.3g}"
    assert losses["npu"][-1] < losses["npu"][0]
