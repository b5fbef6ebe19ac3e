"""One side of a comparison: a process with torch that times what it is asked for, line by line.

    python worker.py cpu|npu

Reads {"suite": "ops" | "steps", "key": …, "seconds": …} from stdin and answers "@{…}" with the seconds of each call, or with
"error". Programs between us and the terminal may print other lines; ours begin with @.
"""
from __future__ import annotations

import json
import sys
import time


def answer(**fields) -> None:
    print("@" + json.dumps(fields), flush=True)


class Timer:
    def __init__(self, torch, device: str):
        self.synchronize = torch.npu.synchronize if device == "npu" else lambda: None

    def once(self, body, count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            body()
        self.synchronize()
        return (time.perf_counter() - start) / count

    def group(self, body, least: float) -> int:
        """How many calls last at least `least` seconds; they are timed together, with one synchronise. Warms up, too."""
        one = min(self.once(body, 1) for _ in range(3))
        return max(1, int(least / max(one, 1e-9)))

    def times(self, body, seconds: float, count: int) -> list[float]:
        """Seconds of a call."""
        end, out = time.perf_counter() + seconds, []
        while not out or time.perf_counter() < end:
            out.append(self.once(body, count))
        return out


def main() -> None:
    device = sys.argv[1]
    import torch

    if device == "npu":
        import torch_npu  # noqa: F401
    import ops
    import steps

    timer = Timer(torch, device)
    built: dict[tuple[str, str], tuple] = {}  # the call, and how many are timed together
    answer(torch=torch.__version__, threads=torch.get_num_threads())
    for line in sys.stdin:
        request = json.loads(line)
        suite, key = request["suite"], request["key"]
        try:
            if (suite, key) not in built:
                if suite == "steps":  # models stay: building them costs more than a round
                    body, least = steps.build(key, device), steps.LEAST.get(key, 0.0)
                else:  # one operator at a time stays
                    built.clear()
                    body, least = ops.CASES[int(key)].build(ops.On(device)), 0.01
                built[suite, key] = body, timer.group(body, least)
            body, count = built[suite, key]
            answer(times=timer.times(body, request["seconds"], count))
        except Exception as error:  # noqa: BLE001 - whatever a side cannot do is a row of the table, not the end of the run
            built.pop((suite, key), None)
            answer(error=f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}")


if __name__ == "__main__":
    main()
