"""Every operator of the library, tested from its definition: samples from its rules, torch on the CPU as judge.

  pytest tests/conformance/generated.py -k aclnnAdd
  ANYNPU_SEED=7 ANYNPU_CASES=50 pytest tests/conformance/generated.py     # another seed, more samples

Positive: shapes × types × layouts (contiguous, permuted, strided with offset, expanded); values with NaN, infinities and
extremes; guard bytes around every tensor; inputs stay as they were. Negative: null where a value is needed, each rule broken:
the call must fail and name the parameter.
"""
from __future__ import annotations

import math
import os
import random
import zlib

os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")

import ctypes as C  # noqa: E402

import pytest  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import driver  # noqa: E402
import rules  # noqa: E402
import rules_families  # noqa: E402

SEED = int(os.environ.get("ANYNPU_SEED", random.randrange(1 << 31)))
CASES = int(os.environ.get("ANYNPU_CASES", "12"))
TRIES = 40 + 4 * CASES  # some samples are such that torch refuses to judge
print(f"generated conformance tests: ANYNPU_SEED={SEED}")
torch.set_num_threads(1)
OPERATORS = {op["name"]: op for op in driver.operators()}
# The others have tests written by hand; test_every_operator.py sees that they ran.
GENERATED = [name for name, op in OPERATORS.items() if not rules_families.elsewhere(op)]


class Skip(Exception):
    """The judge has no answer for this sample (torch refuses the types)."""


class Case:
    def __init__(self, op: dict, number: int):
        self.op, self.rng = op, random.Random(f"{SEED} {op['name']} {number}")
        self.torch_rng = torch.Generator().manual_seed(zlib.crc32(f"{SEED} {op['name']} {number}".encode()))
        self.shapes: dict[str, tuple] = {}
        self.dtypes: dict[str, torch.dtype] = {}
        self.lists: set[str] = set()
        self.values: dict[str, object] = {}
        self.params = {p["name"]: p for p in op["params"]}

    def kind(self, name: str) -> str:
        return self.params[name]["kind"]

    def __str__(self) -> str:
        def show(v):
            if isinstance(v, torch.Tensor):
                return f"tensor({list(v.shape)}, {v.dtype}, strides={v.stride()}, offset={v.storage_offset()})"
            return f"[{', '.join(show(x) for x in v)}]" if isinstance(v, list) else repr(v)

        return f"{self.op['name']}({', '.join(f'{k}={show(v)}' for k, v in self.values.items())})  # ANYNPU_SEED={SEED}"


def contents(case: Case, shape: tuple, dtype: torch.dtype, name: str) -> torch.Tensor:
    """Dense values of a type: ordinary ones, and now and then the special ones."""
    g, rng = case.torch_rng, case.rng
    if dtype == torch.bool:
        t = torch.randint(0, 2, shape, generator=g).bool()
    elif dtype.is_floating_point:
        t = torch.randn(shape, generator=g, dtype=torch.float64) * rng.choice([1, 1, 3, 10])
        ordinary = case.op["tolerance"] == "accumulated" or any(d.is_complex for d in case.dtypes.values())
        if rng.random() < 0.3 and t.numel() and not ordinary:
            special = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0, -1.0, 100.0, 1e-30, 60000.0], dtype=torch.float64)
            where = torch.rand(shape, generator=g) < 0.2
            t = torch.where(where, special[torch.randint(0, len(special), shape, generator=g)], t)
        t = t.to(dtype)
    elif dtype.is_complex:
        t = torch.complex(torch.randn(shape, generator=g, dtype=torch.float64), torch.randn(shape, generator=g, dtype=torch.float64)).to(dtype)
    else:
        low = 0 if not dtype.is_signed else -20
        t = torch.randint(low, 21, shape, generator=g).to(dtype)
        if rng.random() < 0.2 and t.numel() and case.op["kernel"] not in rules.DOMAIN:
            t.view(-1)[0] = torch.iinfo(dtype).max
            t.view(-1)[-1] = torch.iinfo(dtype).min
    slots = case.op["slots"]
    fix = rules.DOMAIN.get(case.op["kernel"], {}).get(slots.index(name) if name in slots else None) or rules.DOMAIN.get(case.op["name"], {}).get(name)
    return fix(t) if fix is not None else t


def laid_out(case: Case, dense: torch.Tensor, may_expand: bool) -> torch.Tensor:
    """The same values under another layout; the storage is larger than the view in most of them."""
    rng, rank = case.rng, dense.dim()
    how = rng.choice(["plain", "plain", "permuted", "sliced", "offset", "expanded", "odd ones"])
    if how == "permuted" and rank >= 2:
        order = list(range(rank))
        rng.shuffle(order)
        back = [order.index(d) for d in range(rank)]
        return dense.permute(order).contiguous().permute(back)
    if how == "sliced" and rank >= 1:
        big = torch.zeros([2 * s + 1 for s in dense.shape], dtype=dense.dtype)
        view = big[tuple(slice(1, 2 * s + 1, 2) for s in dense.shape)]
        view.copy_(dense)
        return view
    if how == "offset":
        storage = torch.zeros(dense.numel() + 5, dtype=dense.dtype)
        view = storage[3:3 + dense.numel()].view(dense.shape)
        view.copy_(dense)
        return view
    if how == "odd ones" and dense.numel():
        return driver.with_odd_ones(rng, dense)
    if how == "expanded" and may_expand and rank >= 1 and dense.numel():
        dim = rng.randrange(rank)
        return dense.narrow(dim, 0, 1).clone().expand(dense.shape)
    return dense.clone()


def written_types(case: Case) -> list:
    """Types of tensors written in place: a number must not promote beyond them."""
    return [case.dtypes[p["name"]] for p in case.op["params"] if p["role"] == "inout" and p["name"] in case.dtypes]


def holds(dtype: torch.dtype, number: object) -> bool:
    kind = torch.bool if isinstance(number, bool) else torch.int64 if isinstance(number, int) else torch.float32
    return torch.can_cast(kind, dtype)


def default_value(case: Case, param: dict) -> object:
    rng, kind, name = case.rng, param["kind"], param["name"]
    # All representable in every float type, so that no judge rounds a number that the library keeps.
    if name in case.op["samples"]:
        good = list(eval(case.op["samples"][name], {"torch": torch, **case.values}))
        if not good:
            raise Skip(f"no sample for {name}")
        held = [v for v in good if not isinstance(v, (int, float)) or all(holds(t, v) for t in written_types(case))]
        return rng.choice(held or good)
    if kind in ("scalar", "scalarlist"):
        whole = any(not t.is_floating_point and not t.is_complex for t in case.dtypes.values())
        numbers = [2, 3, 1, True] if whole else [2, 0.5, 1.75, 1]
        numbers = [v for v in numbers if all(holds(t, v) for t in written_types(case))] or [1]
        pick = lambda: rng.choice(numbers)  # noqa: E731
        return pick() if kind == "scalar" else [pick() for _ in range(case.list_length)]
    return {"bool": lambda: rng.random() < 0.5, "float": lambda: rng.choice([0.5, 2.0]), "double": lambda: rng.choice([0.5, 2.0]),
            "dtype": lambda: torch.float32, "string": lambda: "", "intarray": lambda: [], "boolarray": lambda: []}.get(kind, lambda: 1)()


def build(op: dict, number: int) -> Case:
    """A case with its inputs; outputs are added from what the judge says."""
    case = Case(op, number)
    case.list_length = case.rng.choice([1, 2, 5])
    for rule in op["rules"]:
        rules.SAMPLERS[rule["rule"]](case, rule)
    list_shapes = [case.rng.choice(rules.SHAPES) for _ in range(case.list_length)]
    list_type = rules.BY_NAME[case.rng.choice([t for t in (op["types"] or ["float32", "float16", "bfloat16"]) if t in rules.BY_NAME and "complex" not in t and t != "bool"])]
    if op["family"] == "foreach":
        for p in op["params"]:
            if p["kind"] in ("tensorlist", "tensor"):
                case.dtypes[p["name"]] = list_type
    slots = op["slots"]
    for p in op["params"]:
        name = p["name"]
        if name in case.values or p["role"] == "out":
            continue
        position = slots.index(name) if name in slots else -1
        if p["kind"] == "tensor" and name in op["samples"]:
            case.values[name] = case.rng.choice(eval(op["samples"][name], {"torch": torch, **case.values})).clone()
        elif p["kind"] == "tensor":
            if name not in case.shapes and op["family"] == "" and any(q["role"] == "out" for q in op["params"]):
                raise Skip(f"no rule gives {name} a shape")
            shape = case.shapes.get(name, () if op["family"] == "foreach" else case.rng.choice(rules.SHAPES))
            if op["family"] == "foreach" and name == "scalars":
                shape = (case.list_length,)
            dtype = case.dtypes.get(name) or case.rng.choice([torch.float32, torch.float16, torch.bfloat16])
            if op["family"] == "masked_fill" and name == "value":
                dtype = case.dtypes.setdefault("selfRef", torch.float32)
            if op["kernel"] == "Where" and position == 0:
                dtype = torch.bool
            case.dtypes[name] = dtype
            case.values[name] = laid_out(case, contents(case, shape, dtype, name), p["role"] == "in")
            if op["family"] == "foreach":  # device numbers stay ordinary
                case.values[name] = (torch.rand(shape, generator=case.torch_rng) + 0.5).to(dtype if dtype.is_floating_point else torch.float32) if dtype.is_floating_point else torch.ones(shape, dtype=dtype) * 2
        elif p["kind"] == "tensorlist":
            case.values[name] = [laid_out(case, contents(case, s, case.dtypes.get(name, list_type), name), p["role"] == "in") for s in list_shapes]
    for p in op["params"]:
        if p["name"] not in case.values and p["role"] != "out":
            case.values[p["name"]] = default_value(case, p)
    return case


def maximum(a, b):
    return torch.maximum(a, b if isinstance(b, torch.Tensor) else torch.tensor(b, dtype=a.dtype))


def minimum(a, b):
    return torch.minimum(a, b if isinstance(b, torch.Tensor) else torch.tensor(b, dtype=a.dtype))


def amp_unscale(grads, found, scale):
    grads = [g.clone() for g in grads]
    bad = any(not bool(torch.isfinite(g).all()) for g in grads)
    out = [(g.float() * scale.item()).to(g.dtype) if g.dtype != torch.float64 else g * scale.item() for g in grads]
    return [out, torch.full_like(found, 1.0) if bad else found]


def amp_update(scale, tracker, found, growth, backoff, interval):
    single, tracker = scale.clone().float().view(1), tracker.clone().view(1)
    torch._amp_update_scale_(single, tracker, found.float().view(1), growth, backoff, interval)
    return single.to(scale.dtype), tracker


def prelu_backward(grad, x, weight):
    x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
    return torch.autograd.grad(F.prelu(x, weight), (x, weight), grad)


WIDE = {torch.float32: torch.float64, torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.complex64: torch.complex128}


def wide(t):
    """A tensor or a type in double precision, others as they are."""
    if isinstance(t, torch.Tensor):
        return t.to(WIDE.get(t.dtype, t.dtype)).clone()
    return WIDE.get(t, t) if isinstance(t, torch.dtype) else t


def as_list(v) -> list:
    return list(v) if isinstance(v, (list, tuple)) else [v]


def each(v, f):
    return [f(x) for x in v] if isinstance(v, list) else f(v)


def precisely(case: Case, names: dict, result: torch.dtype) -> object:
    """The same expression on the same values in double precision: torch's own sums and roundings in low precision are no measure."""
    # Where a type is given the input is rounded to it first, and integers alone become float32; that is torch's meaning and no matter
    # of precision.
    into = names.get("dtype") if isinstance(names.get("dtype"), torch.dtype) else None
    if into is None and result == torch.float32 and not any(t.is_floating_point or t.is_complex for t in case.dtypes.values()):
        into = torch.float32

    def widened(v):
        # Complex numbers lose their imaginary parts on the way, but for norms, which are real by themselves.
        real = isinstance(v, torch.Tensor) and (not v.is_complex() or "norm" not in case.op["like"] or (into is not None and into.is_complex))
        return wide(v.to(into) if into in EPS and real else v)

    names = {k: each(v, widened) for k, v in names.items()}
    torch.set_default_dtype(torch.float64)  # whole numbers become this
    try:
        return eval(case.op["like"].replace(".float()", ".double()"), names | {"dtype_of": lambda name: wide(case.dtypes[name])})
    finally:
        torch.set_default_dtype(torch.float32)


def judge(case: Case) -> list:
    """What torch says, one entry for each written parameter (None: any value)."""
    names = {}
    for k, v in case.values.items():
        names[k] = v.clone() if isinstance(v, torch.Tensor) else [t.clone() for t in v] if isinstance(v, list) and v and isinstance(v[0], torch.Tensor) else v
    if "lambda" in names:
        names["lambda_"] = names.pop("lambda")
    out_type = case.rng.choice([torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.float64])
    allowed = [rules.BY_NAME[t] for r in case.op["rules"] if r["rule"] == "dtype_in" for t in r["types"] if t in rules.BY_NAME]
    if allowed and out_type not in allowed:
        out_type = case.rng.choice(allowed)
    names |= {"torch": torch, "F": F, "maximum": maximum, "minimum": minimum, "amp_unscale": amp_unscale, "amp_update": amp_update, "prelu_backward": prelu_backward,
              "dtype_of": lambda name: case.dtypes.setdefault(name, out_type)}
    if "[a.to(b.dtype)" in case.op["like"]:
        names["out"] = [torch.empty(t.shape, dtype=case.rng.choice(list(rules.BY_NAME.values())) if not t.dtype.is_complex else t.dtype) for t in names["x"]]
    untouched = {k: each(v, lambda t: t.clone() if isinstance(t, torch.Tensor) else t) for k, v in names.items()}
    try:
        answer = eval(case.op["like"], names)
    except (RuntimeError, NotImplementedError, TypeError, ValueError, NameError, IndexError) as error:
        raise Skip(str(error)) from error
    result = next((t.dtype for t in as_list(answer) if isinstance(t, torch.Tensor)), None)
    if case.op["tolerance"] != "exact" and result in EPS:
        for own, true in zip(as_list(answer), as_list(precisely(case, untouched, result)), strict=True):
            if isinstance(own, torch.Tensor) and own.dtype in EPS and own.dtype != torch.float64:
                assert own.shape == true.shape and true.dtype in (torch.float64, torch.complex128), f"{true.dtype} for {own.dtype}\n{case}"
                own.precise = true
    written = [p for p in case.op["params"] if p["role"] != "in"]
    answers = [answer] if len(written) == 1 else list(answer)
    for p, want in zip(written, answers):
        for w, held in zip(as_list(want), as_list(case.values.get(p["name"]))):
            if isinstance(w, torch.Tensor) and w.dtype not in driver.ACL:
                raise Skip(f"{w.dtype} is no type here")
            if isinstance(w, torch.Tensor) and isinstance(held, torch.Tensor) and w.dtype != torch.bool and not torch.can_cast(w.dtype, held.dtype):
                raise Skip("the result does not fit in place")
    return answers


EPS = {torch.float32: 2.0**-23, torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7, torch.float64: 2.0**-52,
       torch.complex64: 2.0**-23, torch.complex128: 2.0**-52}
# The rounding model: numbers are computed in float32 (float64 for float64), and the result is rounded once to its type. UNITS are the
# roundings that a kernel of a kind may add up, each 2^-23 (2^-52) of the result and of the terms it is made of.
UNITS = {"exact": 0, "rounded": 4, "ulp": 16, "accumulated": 64}


def terms_of(case: Case, result: torch.Tensor) -> float:
    """How large the terms are that make up a result: they may cancel where something is added."""
    def largest(t) -> float:
        t = t[t.isfinite()].abs().double() if t.is_floating_point() or t.is_complex() else t.double().abs()
        return float(t.max()) if t.numel() else 0.0

    inputs = [largest(t) for v in case.values.values() for t in as_list(v) if isinstance(t, torch.Tensor)]
    size = max(1.0, min(largest(result), 1e4))
    if case.op["kernel"] in ("Add", "Sub", "Rsub", "Addcmul", "Addcdiv", "Lerp", "AddRelu"):
        return size + max(inputs + [1.0]) ** 2
    if case.op["tolerance"] == "accumulated" or case.op["kernel"].endswith(("Grad", "GradResult")):
        return size + max(inputs + [1.0])
    return size


def compare(case: Case, name: str, got: torch.Tensor, want: torch.Tensor) -> None:
    """`want` is torch's answer in the result's type; want.precise, where there is one, the answer in double precision."""
    assert got.shape == want.shape, f"{name}: shape {tuple(got.shape)} instead of {tuple(want.shape)}\n{case}"
    if got.numel() == 0:
        return
    true = getattr(want, "precise", want)
    rounded = true.to(got.dtype)
    same = (got == rounded) | (got.isnan() & rounded.isnan()) if got.dtype in EPS else got == rounded
    units = UNITS[case.op["tolerance"]]
    double = got.dtype in (torch.float64, torch.complex128)  # all else is summed in double and rounds once
    if "prod(" in case.op["like"] or (double and case.op["tolerance"] == "accumulated"):  # roundings add up as a random walk does
        terms = max(t.numel() for v in case.values.values() for t in as_list(v) if isinstance(t, torch.Tensor))
        units = max(units, 8 * math.sqrt(terms))
    if got.dtype.is_complex:  # a product and a quotient round each part more than once
        units = max(units, 8)
    if got.dtype in EPS and units:
        if true is not want:  # float32 arithmetic may overflow on the way, in torch as here
            same |= ~want.isfinite() & ((got == want) | (got.isnan() & want.isnan()))
        calculation = 2.0**-52 if got.dtype in (torch.float64, torch.complex128) else 2.0**-23
        high = torch.complex128 if got.dtype.is_complex else torch.float64
        a, b = got.to(high), true.to(high)
        allowed = units * calculation * (b.abs() + terms_of(case, b))
        if got.dtype in (torch.float16, torch.bfloat16):  # one rounding on store, to a subnormal too; it may go over the edge
            info = torch.finfo(got.dtype)
            allowed = allowed + EPS[got.dtype] / 2 * b.abs().clamp_min(info.smallest_normal)
            same |= (b.abs() >= 0.99 * info.max) & (a.abs() >= 0.99 * info.max) & (a.sign() == b.sign())
        same |= (a - b).abs() <= allowed
    if bool(same.all()):
        return
    at = tuple(int(i) for i in (~same).nonzero()[0])
    raise AssertionError(f"{name}{list(at)} is {got[at].item()!r}, not {true[at].item()!r} (torch: {want[at].item()!r}); {int((~same).sum())} of {got.numel()} differ\n{case}")


def finish(case: Case, wanted: list) -> list[tuple[str, object]]:
    """Adds the outputs the judge implies; returns (parameter, expected)."""
    written = [p for p in case.op["params"] if p["role"] != "in"]
    checks = []
    for p, want in zip(written, wanted):
        name = p["name"]
        if p["role"] == "out":
            if want is None:
                case.values[name] = None if p["maybe"] else torch.zeros(1)
                continue
            if isinstance(want, (list, tuple)):
                case.values[name] = [laid_out(case, torch.full(w.shape, 1, dtype=w.dtype), False) for w in want]
            else:
                case.values[name] = laid_out(case, torch.full(want.shape, 1, dtype=want.dtype), False)
        if want is not None:
            checks.append((name, want))
    return checks


def execute(case: Case) -> driver.Call:
    call = driver.Call(case.op)
    for p in case.op["params"]:
        call.add(p, case.values[p["name"]])
    return call


@pytest.mark.parametrize("name", GENERATED)
def test_agrees_with_torch(name: str) -> None:
    op, done, reasons = OPERATORS[name], 0, []
    for number in range(TRIES):
        if done == CASES:
            break
        try:
            case = build(op, number)
            wanted = judge(case)
        except Skip as skip:
            reasons.append(str(skip))
            continue
        checks = finish(case, wanted)
        call = execute(case)
        try:
            try:
                call.run()
            except driver.CallFailed as failure:
                raise AssertionError(f"{failure}\n{case}") from failure
            for param, want in checks:
                for i, (placed, w) in enumerate(zip(as_list(call.placed[param]), as_list(want))):
                    compare(case, param if not isinstance(call.placed[param], list) else f"{param}[{i}]", placed.fetch(), w)
                    placed.untouched_gaps()
            for p in op["params"]:
                if p["role"] == "in" and p["name"] in call.placed:
                    for placed in as_list(call.placed[p["name"]]):
                        assert placed.unchanged(), f"{p['name']} was changed\n{case}"
        finally:
            call.close()
        done += 1
    assert done, f"no sample of {TRIES} could be judged: {set(reasons)}"


def refused(case: Case, code: int, mention: list[str], what: str) -> None:
    call = execute(case)
    try:
        call.run()
    except driver.CallFailed as failure:
        assert failure.code == code, f"{what}: code {failure.code} instead of {code}: {failure.text}\n{case}"
        assert case.op["name"] in failure.text, failure.text
        assert any(m in failure.text for m in mention), f"{what}: {failure.text!r} names none of {mention}\n{case}"
        for forbidden in ("EL0004", "Failed to allocate", "reason=["):
            assert forbidden not in failure.text
        return
    finally:
        call.close()
    raise AssertionError(f"{what}: the call was accepted\n{case}")


def good_case(op: dict) -> Case:
    reasons = set()
    for number in range(200):
        try:
            case = build(op, 1000 + number)
            if any(isinstance(v, torch.Tensor) and v.numel() == 0 for v in case.values.values()):
                continue
            finish(case, judge(case))
            return case
        except Skip as skip:
            reasons.add(str(skip))
    raise AssertionError(f"no good sample to break: {reasons}")


def can_be_null(op: dict) -> list[dict]:
    return [p for p in op["params"] if not p["maybe"] and p["kind"] in ("tensor", "scalar", "intarray", "string")]


def breakable(op: dict) -> list[dict]:
    return [rule for rule in op["rules"] if rule["rule"] in rules.VIOLATORS]


def break_nulls(op: dict, good) -> None:
    for p in can_be_null(op):
        case = good()
        case.values[p["name"]] = None
        refused(case, 161001, [p["name"]], f"{p['name']} is null")


def break_rules(op: dict, good) -> None:
    for rule in breakable(op):
        case = good()
        if any(case.values.get(p) is None and case.params[p]["maybe"] for p in rule["params"]):
            continue
        mention = rules.VIOLATORS[rule["rule"]](case, rule)
        if mention is not None:
            refused(case, 161002, mention, f"rule {rule['rule']}{rule['params']}")


@pytest.mark.parametrize("name", [n for n in GENERATED if can_be_null(OPERATORS[n])])
def test_refuses_null(name: str) -> None:
    break_nulls(OPERATORS[name], lambda: good_case(OPERATORS[name]))


@pytest.mark.parametrize("name", [n for n in GENERATED if breakable(OPERATORS[n])])
def test_refuses_broken_rules(name: str) -> None:
    break_rules(OPERATORS[name], lambda: good_case(OPERATORS[name]))


@pytest.mark.parametrize("name", [n for n in ("aclnnAdd", "aclnnExp", "aclnnInplaceCopy") if n in OPERATORS])
def test_refuses_dead_handles(name: str) -> None:
    op = OPERATORS[name]
    param = next(p for p in op["params"] if p["kind"] == "tensor" and p["role"] == "in")
    case = good_case(op)
    case.values[param["name"]] = C.c_void_p(0x1234560)
    refused(case, 161002, [param["name"]], "a foreign pointer")
    call = execute(good_case(op))
    word = call.words[op["params"].index(param)]
    assert driver.backend().base.aclDestroyTensor(word) == 0
    call.cleanup = [c for c in call.cleanup if c[1] != word.value]
    with pytest.raises(driver.CallFailed) as failure:
        call.run()
    assert failure.value.code == 161002 and param["name"] in failure.value.text
    call.close()
