"""`anynpu bench`: speed as ratios of one run. Started by the launcher, which says where it is; needs no torch itself.

Sides (software NPU, torch CPU, libraries that do nothing) are processes that live for the whole run and work in turn, a second
or less at a time, so that foreign load hits all of them. Every figure is the median of the rounds.
"""
from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import tempfile

import machine
import ops
import referees
import steps
from machine import Missing, note, say
from report import duration, geometric_mean, of_round, progress, ratio, table

PARTS = ("steps", "adds", "allreduce")
COPY_SIZES = [1 << 20, 1 << 25, 1 << 28]


def in_turn(sides: list, suite: str, key: str, rounds: int, seconds: float) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Figures of each side by round, and why a side has none."""
    figures: dict[str, list[float]] = {s.name: [] for s in sides}
    errors: dict[str, str] = {}
    for _ in range(rounds):
        for s in sides:
            if s.name in errors:
                continue
            answer = s.times(suite, key, seconds)
            if "error" in answer:
                errors[s.name] = answer["error"]
            else:
                figures[s.name].append(of_round(answer["times"]))
    return figures, errors


def bench_steps(options) -> bool:
    say("\n## Training steps and one small operator through torch\n")
    machine.torch_of(options.python, ["torch", "torch_npu"])
    with tempfile.TemporaryDirectory() as folder:
        null = None
        if "null" in options.sides:
            try:
                null = referees.null_library(options.python, folder)
            except Missing as why:
                note(f"left out: {why}")
        names = [s for s in options.sides if s != "null" or null is not None]
        ok = True
        for queue in options.queue:
            sides = [machine.side(s, options.python, options.launcher, queue, null) for s in names]
            try:
                ok = print_steps(options, sides, queue) and ok
            finally:
                for s in sides:
                    s.close()
    return ok


def print_steps(options, sides: list, queue: str) -> bool:
    say(f"TASK_QUEUE_ENABLE={queue}; torch {sides[0].facts['torch']}, {sides[0].facts['threads']} threads.\n")
    rows, ok, fp32 = [], True, None
    for work in steps.WORKS:
        progress(f"steps: {work}")
        figures, errors = in_turn(sides, "steps", work, options.rounds, options.seconds or 1.0)
        progress("")
        for name, why in errors.items():
            note(f"{work} on {name}: {why}")
            ok = False
        npu = figures.get("npu", [])
        compare = lambda other: f"{ratio(figures[other], npu):.2f}" if npu and figures.get(other) else "–"  # noqa: E731
        rows.append([work, *(duration(statistics.median(f) if f else None) for f in figures.values()), compare("cpu"),
                     f"{ratio(npu, figures['null']):.2f}" if npu and figures.get("null") else "–"])
        if work == "gpt":
            fp32 = npu
        elif work == "gpt bf16" and npu and fp32:
            half = statistics.median(npu) / statistics.median(fp32)
    say(table(["work", *(s.name for s in sides), "CPU ÷ NPU", "NPU ÷ null"], rows))
    if fp32 and rows:
        say(f"\nbf16 GPT step ÷ fp32 GPT step, both on the NPU: {half:.2f}")
    return ok


def bench_adds(options) -> bool:
    say("\n## Small aclnnAdd in C: 10,000 pairs of 64 float32, executed, one synchronise\n")
    rounds = [referees.small_adds(options.launcher) for _ in range(options.rounds)]
    say(table(["both phases of a pair", "best", "median"],
              [[name, duration(min(r[name][0] for r in rounds)), duration(statistics.median(r[name][1] for r in rounds))] for name in rounds[0]]))
    return True


def bench_all_reduce(options) -> bool:
    say("\n## All-reduce of float32 sums, 2 ranks, one call and one synchronise: best (median)\n")
    with tempfile.TemporaryDirectory() as folder:
        others = []
        for make in (lambda: referees.Bound(folder), lambda: referees.Mpi("openmpi", folder), lambda: referees.Mpi("mpich", folder)):
            try:
                others.append(make())
            except Missing as why:
                note(f"left out: {why}")
        ours: list[dict] = []
        theirs: dict[str, list[dict]] = {o.name: [] for o in others}
        for _ in range(max(2, options.rounds // 2)):
            progress("all-reduce")
            ours.append(referees.all_reduce(options.launcher))
            for o in list(others):
                try:
                    theirs[o.name].append(o.figures())
                except Missing as why:
                    note(f"left out: {why}")
                    others.remove(o)
                    theirs.pop(o.name)
        progress("")

    def cell(rounds: list[dict], size: int) -> str:
        found = [r[size] for r in rounds if size in r]
        if not found:
            return "–"
        middle = [f[1] for f in found if f[1] is not None]
        return duration(min(f[0] for f in found)) + (f" ({duration(statistics.median(middle))})" if middle else "")

    rows = []
    for size in sorted(ours[0]):
        mpi = [min(r[size][0] for r in rounds) for name, rounds in theirs.items() if name != "shm_bound" and all(size in r for r in rounds)]
        best = min(r[size][0] for r in ours)
        rows.append([f"{size >> 10} KiB" if size < 1 << 20 else f"{size >> 20} MiB", cell(ours, size), *(cell(r, size) for r in theirs.values()),
                     f"{min(mpi) / best:.1f}" if mpi else "–"])
    say(table(["bytes", "HCCL", *theirs, "better MPI ÷ HCCL"], rows))
    return True


def bench_hccl_torch(options) -> None:
    queue = options.queue[0]
    say(f"\n## all_reduce through torch.distributed, 2 ranks, with a synchronise, TASK_QUEUE_ENABLE={queue}: best (median)\n")
    with tempfile.TemporaryDirectory() as folder:
        sides = {"HCCL": ("hccl", None), "gloo": ("gloo", None)}
        try:
            sides["null"] = ("hccl", referees.null_library(options.python, folder))
        except Missing as why:
            note(f"left out: {why}")
        rounds: dict[str, list[dict]] = {name: [] for name in sides}
        for _ in range(max(2, options.rounds // 2)):
            for name, (backend, null) in sides.items():
                progress(f"all_reduce through torch: {name}")
                try:
                    rounds[name].append(referees.torch_all_reduce(backend, options.python, options.launcher, queue, null))
                except Missing as why:
                    note(f"no figure of {name}: {why}")
        progress("")
    if not rounds["HCCL"]:
        return
    at = lambda name, size, k: statistics.median(r[size][k] for r in rounds[name]) if rounds.get(name) else None  # noqa: E731
    rows = []
    for size in sorted(rounds["HCCL"][0]):
        hccl, gloo, null = (at(n, size, 1) for n in ("HCCL", "gloo", "null"))
        rows.append([f"{size >> 10} KiB" if size < 1 << 20 else f"{size >> 20} MiB",
                     *(f"{duration(at(n, size, 0))} ({duration(at(n, size, 1))})" if rounds[n] else "–" for n in sides),
                     f"{gloo / hccl:.1f}" if gloo else "–", duration(hccl - null) if null else "–"])
    say(table(["bytes", *sides, "gloo ÷ HCCL, median", "HCCL − null, median"], rows))


def size_text(size: int) -> str:
    return f"{size >> 10} KiB" if size < 1 << 20 else f"{size >> 20} MiB"


def bench_hccl_wire(options) -> None:
    say("\n## all_reduce through torch.distributed between two hosts (network namespaces, veth), with a synchronise: best (median)\n")
    try:
        wire = referees.Wire()
    except Missing as why:
        note(f"left out: {why}")
        return
    rounds: dict[str, list[dict]] = {"hccl": [], "gloo": []}
    try:
        for _ in range(max(2, options.rounds // 2)):
            for backend, found in rounds.items():
                progress(f"two hosts: {backend}")
                found.append(wire.all_reduce(backend, options.python, options.launcher))
    except Missing as why:
        note(f"left out: {why}")
        return
    finally:
        progress("")
        wire.close()
    middle = lambda name, size, k: statistics.median(r[size][k] for r in rounds[name])  # noqa: E731
    say(table(["bytes", "HCCL", "gloo", "gloo ÷ HCCL, median"],
              [[size_text(size), *(f"{duration(middle(n, size, 0))} ({duration(middle(n, size, 1))})" for n in rounds),
                f"{middle('gloo', size, 1) / middle('hccl', size, 1):.1f}"] for size in sorted(rounds["hccl"][0])]))


def bench_hccl_others(options) -> None:
    names = ("all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce", "all-to-all", "exchange")
    sizes = (4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20)
    for ranks in (2, 4):
        say(f"\n## Other collectives, {ranks} ranks, bytes of the larger buffer: best (median)\n")
        rows = []
        for name in names:
            progress(f"{name}, {ranks} ranks")
            found = referees.collective(options.launcher, name, ranks, sizes)
            rows.append([name, *(f"{duration(found[s][0])} ({duration(found[s][1])})" for s in sizes)])
        progress("")
        say(table(["collective", *map(size_text, sizes)], rows))


def bench_scale(options) -> bool:
    """The same work for each card, on ever more cards, each with the same number of cores."""
    machine.torch_of(options.python, ["torch", "torch_npu"])
    cores, all_cores = options.cores, len(os.sched_getaffinity(0))
    say(f"\n## Data-parallel training, {cores} core{'s' if cores > 1 else ''} for each card: samples a second of all cards (share of as many single cards)\n")
    rows, one = [], {}
    for cards in options.cards or [n for n in (1, 2, 4, 8) if n == 1 or n * cores <= 2 * all_cores]:
        progress(f"{cards} cards")
        rounds = [referees.scale(options.python, options.launcher, cards, cores, options.seconds or 5.0) for _ in range(options.rounds)]
        progress("")
        rates = {name: statistics.median(r[name] for r in rounds) for name in rounds[0]}
        one = one or {name: rate / cards for name, rate in rates.items()}
        more = cards * cores > all_cores
        rows.append([f"{cards}{', cores are shared' if more else ''}", *(f"{rate:.1f} ({100 * rate / (cards * one[name]):.0f} %)" for name, rate in rates.items())])
    say(table(["cards", *one], rows))
    return True


def bench_hccl(options) -> bool:
    """HCCL against its bounds and MPI, two and four ranks; cliffs; growth with ranks."""
    ok = True
    copies = machine.peaks(COPY_SIZES)["copy_gbs"]
    copy = copies[max(copies, key=int)] * 1e9
    for ranks in (2, 4):
        say(f"\n## HcclAllReduce of float32 sums, {ranks} ranks, one call and one synchronise: best (median)\n")
        with tempfile.TemporaryDirectory() as folder:
            makers = [lambda: referees.Mpi("openmpi", folder, ranks), lambda: referees.Mpi("mpich", folder, ranks)]
            others = []
            for make in makers[: 2 if ranks == 2 else 1] + ([lambda: referees.Bound(folder)] if ranks == 2 else []):
                try:
                    others.append(make())
                except Missing as why:
                    note(f"left out: {why}")
            ours, theirs = [], {o.name: [] for o in others}
            for _ in range(max(2, options.rounds // 2)):  # in turn
                progress(f"hccl, {ranks} ranks")
                ours.append(referees.all_reduce(options.launcher, ranks))
                for o in others:
                    theirs[o.name].append(o.figures())
            progress("")
        best = {size: min(r[size][0] for r in ours) for size in ours[0]}
        middle = {size: statistics.median(r[size][1] for r in ours) for size in ours[0]}
        rows, before = [], None
        for size in sorted(best):
            of = lambda name, k: min((r[size][k] for r in theirs.get(name, []) if size in r and r[size][k] is not None), default=None)  # noqa: E731
            mpi = [of(n, 0) for n in ("Open MPI", "MPICH") if of(n, 0)]
            mpi_middle = [of(n, 1) for n in ("Open MPI", "MPICH") if of(n, 1)]
            bound = of("shm_bound", 0)
            # Each rank's input is read once for every slice's owner and each output is written once.
            moved = 2 * ranks * size / copy
            # Time per doubling of the size, since sizes here grow by more than two.
            step = (best[size] / best[before]) ** (1 / math.log2(size / before)) if before else None
            rows.append([f"{size >> 10} KiB" if size < 1 << 20 else f"{size >> 20} MiB", f"{duration(best[size])} ({duration(middle[size])})",
                         *(duration(of(o.name, 0)) for o in others), f"{min(mpi) / best[size]:.1f}" if mpi else "–",
                         f"{min(mpi_middle) / middle[size]:.1f}" if mpi_middle else "–", f"{100 * bound / best[size]:.0f} %" if bound else "–",
                         f"{100 * moved / best[size]:.0f} %" if size >= 16 << 20 else "–",
                         f"{step:.2f}" if step else "–"])
            before = size
        say(table(["bytes", "HCCL", *(o.name for o in others), "better MPI ÷ HCCL, best", "median", "share of shm_bound", "of copying", "time at 2s ÷ at s"], rows))
    bench_hccl_torch(options)
    bench_hccl_wire(options)
    bench_hccl_others(options)
    say("\n## Growth with ranks: best (median)\n")
    sizes, rows = (4 << 10, 1 << 20, 16 << 20), []
    for ranks in (2, 3, 4, 8, 16):
        progress(f"hccl, {ranks} ranks")
        figures = referees.all_reduce(options.launcher, ranks)
        progress("")
        rows.append([str(ranks), *(f"{duration(figures[s][0])} ({duration(figures[s][1])})" for s in sizes)])
    say(table(["ranks", "4 KiB", "1 MiB", "16 MiB"], rows))
    return ok


def bench_ops(options) -> bool:
    if options.list:
        for name in dict.fromkeys(case.name for case in ops.CASES):
            say(name)
        return True
    cases = ops.chosen(options.only)
    machine.torch_of(options.python, ["torch", "torch_npu"])
    peaks = machine.peaks(COPY_SIZES)
    sides = [machine.side(s, options.python, options.launcher, options.queue[0]) for s in ("cpu", "npu")]
    say(f"\n{peaks['threads']} threads: {peaks['gflops']:.0f} GFLOP/s of float32 multiply-adds in registers; copies (STREAM, bytes read and written) "
        + ", ".join(f"{int(size) >> 20} MiB {gbs:.0f} GB/s" for size, gbs in peaks["copy_gbs"].items()) + ".\n")
    rows, records, failed = [], [], []
    try:
        for case in cases:
            progress(f"{case.name} {case.size}")
            figures, errors = in_turn(sides, "ops", str(ops.CASES.index(case)), options.rounds, options.seconds or 0.15)
            record = {"op": case.name, "size": case.size, "errors": errors}
            if errors:
                failed.append(f"{case.name} {case.size}: " + "; ".join(f"{side}: {why}" for side, why in errors.items()))
            else:
                record.update(measures(case, figures, peaks))
                rows.append([case.name, case.size, duration(record["npu_s"]), duration(record["cpu_s"]), f"{record['ratio']:.2f}", record["share_text"]])
            records.append(record)
    finally:
        progress("")
        for s in sides:
            s.close()
    say(table(["operator", "size", "NPU", "torch CPU", "CPU ÷ NPU", "share of the peak"], rows))
    good = [r for r in records if "ratio" in r]
    if good:
        worst = min(good, key=lambda r: r["ratio"])
        say(f"\nGeometric mean of CPU ÷ NPU over {len(good)} rows: {geometric_mean(r['ratio'] for r in good):.2f}; "
            f"worst: {worst['ratio']:.2f} ({worst['op']} {worst['size']}); below 0.9: {sum(r['ratio'] < 0.9 for r in good)}.")
    for line in failed:
        note(f"no figure: {line}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"machine": machine.description(), "peaks": peaks, "rows": records}, file, indent=1)
    return not failed


def measures(case, figures: dict[str, list[float]], peaks: dict) -> dict:
    npu, cpu = statistics.median(figures["npu"]), statistics.median(figures["cpu"])
    out = {"npu_s": npu, "cpu_s": cpu, "ratio": ratio(figures["cpu"], figures["npu"])}
    if case.flops:
        share, peak, text = case.flops / npu / 1e9, peaks["gflops"], "GFLOP/s"
    else:
        size = min(peaks["copy_gbs"], key=lambda s: abs(int(s).bit_length() - int(case.bytes).bit_length()))
        share, peak, text = case.bytes / npu / 1e9, peaks["copy_gbs"][size], "GB/s"
    return {**out, "share": share / peak, "share_text": f"{100 * share / peak:.0f} % ({share:.3g} {text})"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="anynpu bench", description="Speed as ratios of one run; nothing is asserted.")
    parser.add_argument("what", nargs="*", metavar="WHAT", help="steps, adds, allreduce (all three without a word), hccl, scale or ops")
    parser.add_argument("--launcher", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--python", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=5, help="how often the sides take turns (5)")
    parser.add_argument("--seconds", type=float, help="of one side's turn (1 for steps, 0.15 for operators)")
    parser.add_argument("--queue", nargs="+", choices=["0", "1", "2"], help="TASK_QUEUE_ENABLE (as anynpu run sets it)")
    parser.add_argument("--sides", nargs="+", choices=["cpu", "npu", "null"], default=["cpu", "npu", "null"], help="who takes part in steps")
    parser.add_argument("--only", action="append", metavar="NAME", help="ops: rows with this name; may be repeated")
    parser.add_argument("--list", action="store_true", help="ops: print the names")
    parser.add_argument("--cores", type=int, default=1, help="scale: cores of each card (1)")
    parser.add_argument("--cards", type=int, nargs="+", help="scale: numbers of cards (1 2 4 8 as far as the cores go)")
    parser.add_argument("--json", metavar="FILE", help="ops: write the figures there too")
    options = parser.parse_args()
    if options.rounds < 1 or (options.seconds is not None and options.seconds <= 0):
        parser.error("--rounds and --seconds must be positive")
    if options.cores < 1 or min(options.cards or [1]) < 1:
        parser.error("--cores and --cards must be positive")
    for word in options.what:
        if word not in (*PARTS, "hccl", "scale", "ops"):
            parser.error(f"{word!r} is none of {', '.join(PARTS)}, hccl, scale and ops")
    if "ops" in options.what and len(options.what) > 1:
        parser.error("ops is a run of its own")
    try:
        if options.only:
            ops.chosen(options.only)
    except ValueError as why:
        parser.error(str(why))
    options.queue = options.queue or [machine.default_queue(options.launcher)]
    if not options.list:
        say(f"# {machine.description()}")
    ok = True
    runs = {"steps": bench_steps, "adds": bench_adds, "allreduce": bench_all_reduce, "hccl": bench_hccl, "scale": bench_scale, "ops": bench_ops}
    for part in options.what or PARTS:
        try:
            ok = runs[part](options) and ok
        except Missing as why:
            note(f"anynpu bench {part}: {why}")
            ok = False
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
