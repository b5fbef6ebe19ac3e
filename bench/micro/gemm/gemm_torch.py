"""The shapes of gemm.shapes through torch on the CPU, in the output form of gemm_bench."""
import os
import sys
import time

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # the judge is torch alone

import torch  # noqa: E402

dtype = {"torch": torch.float32, "torch-bf16": torch.bfloat16}[sys.argv[1]]
if len(sys.argv) > 3:
    torch.set_num_threads(int(sys.argv[3]))
now = time.process_time if torch.get_num_threads() == 1 else time.perf_counter  # as gemm_bench
for line in open(sys.argv[2]):
    line = line.strip()
    if not line or line.startswith("#"):
        continue
    *numbers, op = line.split()
    batch, m, n, k = map(int, numbers)
    a = torch.rand(batch, k, m).mT if op[0] == "T" else torch.rand(batch, m, k)
    b = torch.rand(batch, n, k).mT if op[1] == "T" else torch.rand(batch, k, n)
    a, b = a.to(dtype), b.to(dtype)
    if batch == 1:
        a, b = a[0], b[0]
    c = torch.matmul(a, b)
    best, total, runs = 1e9, 0.0, 0
    while runs < 5 or total < 0.3:
        start = now()
        torch.matmul(a, b, out=c)
        seconds = now() - start
        best, total, runs = min(best, seconds), total + seconds, runs + 1
    print(f"{line}\t{2.0 * batch * m * n * k / best * 1e-9:.1f}", flush=True)
