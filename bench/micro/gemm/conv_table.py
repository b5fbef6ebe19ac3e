"""Convolutions in ms, ours and torch's on the CPU: forward, gradient of the input, gradient of the weight.

    PYTHON_WITH_TORCH bench/micro/gemm/conv_table.py build/dev/bench/micro/gemm/conv_bench [THREADS]
"""
import os
import subprocess
import sys
import time

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # the judge is torch alone

import torch  # noqa: E402

# batch, groups, in, out, size, kernel, stride, pad
CASES = [
    (8, 1, 64, 64, 56, 3, 1, 1), (32, 1, 3, 32, 32, 3, 1, 1), (32, 1, 32, 64, 32, 3, 1, 1), (32, 1, 128, 128, 8, 3, 1, 1),
    (32, 1, 64, 128, 16, 3, 2, 1), (32, 1, 64, 128, 16, 1, 2, 0), (8, 1, 256, 64, 56, 1, 1, 0), (4, 1, 3, 64, 224, 7, 2, 3),
    (32, 64, 64, 64, 32, 3, 1, 1),
]
threads = int(sys.argv[2]) if len(sys.argv) > 2 else os.cpu_count()
torch.set_num_threads(threads)
now = time.process_time if threads == 1 else time.perf_counter


def best(run):
    run()
    least, total, runs = 1e9, 0.0, 0
    while runs < 5 or total < 0.3:
        start = now()
        run()
        seconds = now() - start
        least, total, runs = min(least, seconds), total + seconds, runs + 1
    return least * 1e3


print("| n, groups, in→out, size, kernel, stride | forward ours / torch | data ours / torch | weight ours / torch |")
print("|---|---|---|---|")
for case in CASES:
    n, groups, cin, cout, size, kernel, stride, pad = case
    x = torch.rand(n, cin, size, size)
    w = torch.rand(cout, cin // groups, kernel, kernel)
    y = torch.nn.functional.conv2d(x, w, None, stride, pad, 1, groups)
    def grad(mask):
        return torch.ops.aten.convolution_backward(y, x, w, None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], groups, mask)
    theirs = [best(lambda: torch.nn.functional.conv2d(x, w, None, stride, pad, 1, groups)),
              best(lambda: grad([True, False, False])), best(lambda: grad([False, True, False]))]
    command = [sys.argv[1], str(threads), *map(str, case), "f32"]
    ours = [float(v) for v in subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()]
    cells = " | ".join(f"{a:.2f} / {b:.2f} ({b / a:.2f}×)" for a, b in zip(ours, theirs))
    print(f"| {n}, {groups}, {cin}→{cout}, {size}, {kernel}×{kernel}, {stride} | {cells} |", flush=True)
