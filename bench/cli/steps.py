"""Training steps and one small operator through torch: what `anynpu bench` times on every side."""
from __future__ import annotations

SHAPES = {
    "gpt": (dict(vocab=2000, dim=256, heads=8, layers=4, length=128), dict(n=8, vocab=2000, length=128)),
    "resnet": (dict(width=32), dict(n=32)),
    "mlp": (dict(), dict()),
}
WORKS = ["gpt", "gpt bf16", "resnet", "mlp", "small add"]
LEAST = {"small add": 0.02}  # seconds of a group of calls; steps are synchronised one by one


def build(key: str, device: str):
    """One call of `key` on a device, as a function; the values come from one seed."""
    import torch

    if key == "small add":
        a, b = torch.ones(64, device=device), torch.ones(64, device=device)
        return lambda: torch.add(a, b)
    import models

    name, autocast = key.split()[0], key.endswith("bf16")
    shape, batch = SHAPES[name]
    torch.manual_seed(0)
    model = models.MODELS[name](**shape).to(device)
    optimizer = models.optimizer(model)
    data = tuple(t.to(device) for t in models.MODELS[name].batch(1, **batch))

    def step():
        optimizer.zero_grad()
        with torch.autocast(device_type=device, dtype=torch.bfloat16, enabled=autocast):
            loss = model(*data)
        loss.backward()
        optimizer.step()

    return step
