"""Training steps and small operators through torch: software NPU, torch CPU and the null library in one run.

    python bench/flow/steps.py [--program build/release/tree/bin/anynpu] [--queue 0 1 2]

Every figure is the best (and median) of many steps of a process of its own; sides alternate, baselines use their defaults
and all cores. Prints a Markdown table with ratios.
"""
from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
SIZES = {
    "gpt": (dict(vocab=2000, dim=256, heads=8, layers=4, length=128), dict(n=8, vocab=2000, length=128)),
    "resnet": (dict(width=32), dict(n=32)),
    "mlp": (dict(), dict()),
}


def measure(device: str) -> dict[str, list[float]]:
    import torch

    if device == "npu":
        import torch_npu  # noqa: F401
    import models

    sync = torch.npu.synchronize if device == "npu" else (lambda: None)
    out: dict[str, list[float]] = {}

    def timed(key: str, body, seconds: float, at_least: int, per: int = 1):
        for _ in range(3):
            body()
        sync()
        times, end = [], time.perf_counter() + seconds
        while time.perf_counter() < end or len(times) < at_least:
            t = time.perf_counter()
            body()
            sync()
            times.append((time.perf_counter() - t) / per)
        out[key] = times

    for name, (shape, batch) in SIZES.items():
        for autocast in (False, True):
            if autocast and name != "gpt":
                continue
            torch.manual_seed(0)
            model = models.MODELS[name](**shape).to(device)
            opt = models.optimizer(model)
            data = tuple(t.to(device) for t in models.MODELS[name].batch(1, **batch))

            def step():
                opt.zero_grad()
                with torch.autocast(device_type=device, dtype=torch.bfloat16, enabled=autocast):
                    loss = model(*data)
                loss.backward()
                opt.step()

            timed(name + (" bf16" if autocast else ""), step, 4.0 if name != "mlp" else 2.0, 6)
    a, b = torch.ones(64, device=device), torch.ones(64, device=device)

    def adds():
        for _ in range(2000):
            torch.add(a, b)

    timed("small add", adds, 1.0, 5, per=2000)
    return out


def run(side: str, queue: str, program: str, null: str) -> dict[str, list[float]]:
    env = dict(os.environ)
    command = [sys.executable, __file__, "--measure", "cpu" if side == "cpu" else "npu"]
    if side != "cpu" and queue != "default":
        env["TASK_QUEUE_ENABLE"] = queue
    if side == "npu":
        command = [program, "run", "--", *command]
    elif side == "null":
        env["LD_LIBRARY_PATH"] = null
    else:
        env["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # torch finds torch_npu installed and would load it
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{side}: exit code {done.returncode}\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.split("FIGURES", 1)[1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--measure")
    parser.add_argument("--program", default=str(ROOT / "build/release/tree/bin/anynpu"))
    parser.add_argument("--queue", nargs="*", default=["default"])
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    if args.measure:
        print("FIGURES", json.dumps(measure(args.measure)))
        return
    import importlib.util

    wheel = pathlib.Path(importlib.util.find_spec("torch_npu").submodule_search_locations[0])
    with tempfile.TemporaryDirectory() as null:
        subprocess.run(["bash", str(ROOT / "bench/baselines/null/make.sh"), str(wheel), null], check=True, capture_output=True)
        sides = [("cpu", "-")] + [(s, q) for q in args.queue for s in ("npu", "null")]
        figures: dict[tuple[str, str], dict[str, list[float]]] = {}
        for _ in range(args.rounds):
            for side in sides:
                for key, times in run(*side, args.program, null).items():
                    figures.setdefault(side, {}).setdefault(key, []).extend(times)
    keys = list(next(iter(figures.values())))
    print("| work | " + " | ".join(f"{s} (queue {q})" if s != "cpu" else "torch CPU" for s, q in sides) + " | " +
          " | ".join(f"CPU ÷ NPU (queue {q})" for q in args.queue) + " |")
    print("|---|" + "---|" * (len(sides) + len(args.queue)))
    for key in keys:
        unit, name = (1e6, "µs") if key == "small add" else (1e3, "ms")
        cells = [f"{min(figures[s][key]) * unit:.2f} ({statistics.median(figures[s][key]) * unit:.2f}) {name}" for s in sides]
        ratios = [f"{min(figures[('cpu', '-')][key]) / min(figures[('npu', q)][key]):.2f}" for q in args.queue]
        print(f"| {key} | " + " | ".join(cells + ratios) + " |")


if __name__ == "__main__":
    main()
