"""`anynpu check ops`: torch's own operator database (torch.testing, op_db) on the card, judged by torch's CPU."""
from __future__ import annotations

import argparse
import os
import pathlib
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import jobs  # noqa: E402
import report  # noqa: E402

DTYPES = ["float32", "float16", "bfloat16", "int64", "bool"]
MORE = ["complex64", "float64", "int32", "int16", "int8", "uint8"]  # when asked for


def options(words) -> argparse.Namespace:
    p = argparse.ArgumentParser("anynpu check ops", description=__doc__)
    p.add_argument("--only", action="append", metavar="NAME", help="operators with this name, which may hold * (nn.functional.*dropout*); repeatable")
    p.add_argument("--dtype", action="append", choices=DTYPES + MORE, help=f"repeatable; without it {', '.join(DTYPES)}")
    p.add_argument("--limit", type=int, default=0, metavar="N", help="at most N samples of an operator, drawn by the seed (0: all)")
    p.add_argument("--choose", type=int, default=0, metavar="N", help="a random choice of N operators")
    p.add_argument("--budget", type=float, default=0, metavar="SECONDS", help="start no operator after that time")
    p.add_argument("--processes", type=int, default=2, metavar="N")
    p.add_argument("--seconds", type=float, default=300, help="time limit of an operator and type")
    p.add_argument("--hang", type=float, default=120, metavar="SECONDS", help="a call that takes longer counts as hanging")
    p.add_argument("--seed", type=int, default=None)
    p.add_argument("--results", type=pathlib.Path, default=pathlib.Path("anynpu-check-ops"),
                   help="folder of the results; what stands there is not run again")
    p.add_argument("--fresh", action="store_true", help="forget earlier results")
    p.add_argument("--table", type=pathlib.Path, help="write the table of all results to this file (docs/reference/ops.md)")
    p.add_argument("--quiet", action="store_true", help="print no line for operators that pass")
    return p.parse_args(words)


def main() -> int:
    asked = options(sys.argv[1:])
    asked.results.mkdir(parents=True, exist_ok=True)
    store = jobs.Store(asked.results, fresh=asked.fresh)
    if asked.seed is None:
        asked.seed = store.seed or random.SystemRandom().randrange(1, 1 << 30)
    store.use_seed(asked.seed, asked.limit)
    print(f"seed {asked.seed}, results in {asked.results}", flush=True)
    jobs.run_all(asked, store, asked.dtype or DTYPES)
    summary = report.Summary(store.read())
    print(summary.text())
    if asked.table:
        asked.table.parent.mkdir(parents=True, exist_ok=True)
        asked.table.write_text(summary.table())
    return 1 if summary.ours_wrong() else 0


if __name__ == "__main__":
    sys.exit(main())
