"""Runs every implementation in its own process and prints GFLOP/s with our ratio to the best of the others.

    python3 bench/micro/gemm/table.py build/dev/bench/micro/gemm/gemm_bench [--python PYTHON_WITH_TORCH] [--only ours,torch]
"""
import argparse
import os
import pathlib
import subprocess

here = pathlib.Path(__file__).parent
parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("--python", default="python3")
parser.add_argument("--only", default="ours,openblas,onednn,torch")
parser.add_argument("--shapes", default=str(here / "gemm.shapes"))
parser.add_argument("--rounds", type=int, default=1)
parser.add_argument("--threads", type=int, default=os.cpu_count())
args = parser.parse_args()

# The referees choose their threads from the environment.
environment = dict(os.environ, OMP_NUM_THREADS=str(args.threads), OPENBLAS_NUM_THREADS=str(args.threads))
names = args.only.split(",")
results: dict[str, dict[str, float]] = {}
for _ in range(args.rounds):
    for name in names:
        if name.startswith("torch"):
            command = [args.python, str(here / "gemm_torch.py"), name, args.shapes, str(args.threads)]
        else:
            command = [args.program, name, args.shapes, str(args.threads)]
        for line in subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.splitlines():
            shape, value = line.split("\t")
            row = results.setdefault(shape, {})
            row[name] = max(row.get(name, 0.0), float(value))

print("| shape | " + " | ".join(names) + " | ours / best other |")
print("|---" * (len(names) + 2) + "|")
for shape, row in results.items():
    batch, m, n, k, op = shape.split()
    others = [v for name, v in row.items() if not name.startswith("ours")]
    ratio = f"{row[names[0]] / max(others):.2f}" if others and names[0].startswith("ours") else ""
    label = f"{batch + ' × ' if batch != '1' else ''}{m}×{n}×{k} {op}"
    print(f"| {label} | " + " | ".join(f"{row[name]:.0f}" for name in names) + f" | {ratio} |")
