"""Matrix products, convolutions, pooling and resizing through the C ABI, with torch in float64 on the CPU as judge.

Shapes, layouts, types and numbers are drawn at run time; ANYNPU_SEED repeats a run. Products of n terms may be off by n + 3
roundings of f32 of the sum of magnitudes, and one rounding of the result's type.
"""
from __future__ import annotations

import os
import random

os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")

import pytest  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

driver = pytest.importorskip("driver")

SEED = int(os.environ.get("ANYNPU_SEED", random.randrange(1 << 31)))
print(f"test_products: ANYNPU_SEED={SEED}")
OPERATORS = {op["name"]: op for op in driver.operators()}
HALF = [torch.float16, torch.bfloat16]
FLOATS = [torch.float32, torch.float32, *HALF]
CASES = range(int(os.environ.get("ANYNPU_CASES", "25")))


def layout(rng: random.Random, t: torch.Tensor) -> torch.Tensor:
    """The same values in another layout."""
    how = rng.choice(["plain", "plain", "permuted", "sliced", "odd ones"])
    if how == "permuted" and t.dim() > 1:
        order = list(range(t.dim()))
        rng.shuffle(order)
        return t.permute(order).contiguous().permute([order.index(d) for d in range(t.dim())])
    if how == "sliced" and t.dim():
        view = torch.zeros([2 * s + 1 for s in t.shape], dtype=t.dtype)[tuple(slice(1, 2 * s + 1, 2) for s in t.shape)]
        return view.copy_(t)
    if how == "odd ones" and t.numel():  # the stride of a size of 1 says nothing and may be anything
        return driver.with_odd_ones(rng, t)
    return t.clone()


def draw(rng: random.Random, g: torch.Generator, dtype: torch.dtype, *shape: int) -> torch.Tensor:
    return layout(rng, torch.randn(shape, generator=g).to(dtype))


def call(name: str, **values: object) -> dict[str, torch.Tensor]:
    """Runs the operator; the tensors among `values` that it may write come back by name."""
    op = OPERATORS[name]
    made = driver.Call(op)
    try:
        for param in op["params"]:
            made.add(param, values[param["name"]])
        made.run()
        results = {}
        for param in op["params"]:
            placed = made.placed.get(param["name"])
            if param.get("role", "in") == "in" or placed is None:
                continue
            results[param["name"]] = placed.fetch()
            placed.untouched_gaps()
        return results
    finally:
        made.close()


def near(got: torch.Tensor, want: torch.Tensor, magnitude: torch.Tensor, terms: int) -> None:
    eps = torch.finfo(got.dtype).eps
    smallest = torch.finfo(got.dtype).smallest_normal * eps
    bound = want.abs() * eps * 0.51 + magnitude * (2.0**-23 * (terms + 3)) + smallest
    off = (got.double() - want).abs()
    worst = (off - bound).argmax() if off.numel() else 0
    assert bool((off <= bound).all()), f"{got.flatten()[worst]} for {want.flatten()[worst]}, bound {bound.flatten()[worst]}"


@pytest.fixture(params=CASES)
def rng(request) -> random.Random:
    return random.Random(f"{SEED} {request.node.name}")


def generator(rng: random.Random) -> torch.Generator:
    return torch.Generator().manual_seed(rng.randrange(1 << 31))


def test_matmul(rng):
    g, size = generator(rng), lambda: rng.choice([1, 2, 3, 7, 16, 33, 65])
    m, n, k = size(), size(), rng.choice([0, 1, 5, 64, 257])
    batch = [size() % 5 + 1 for _ in range(rng.randrange(3))]
    left = rng.choice([[k], [m, k], [*batch, m, k], [*[s if rng.random() < 0.5 else 1 for s in batch], m, k]])
    right = rng.choice([[k], [k, n], [*batch, k, n]])
    ta, tb = rng.choice(FLOATS), rng.choice(FLOATS)
    if rng.random() < 0.7:
        tb = ta
    a, b = draw(rng, g, ta, *left), draw(rng, g, tb, *right)
    want = torch.matmul(a.double(), b.double())
    out = draw(rng, g, torch.promote_types(ta, tb), *want.shape)
    got = call("aclnnMatmul", self=a, mat2=b, out=out, cubeMathType=rng.randrange(4))["out"]
    near(got, want, torch.matmul(a.double().abs(), b.double().abs()), k)


@pytest.mark.parametrize("name", ["aclnnAddmm", "aclnnInplaceAddmm", "aclnnBaddbmm", "aclnnAddbmm", "aclnnAddmv"])
def test_add_product(name, rng):
    g, size = generator(rng), lambda: rng.choice([1, 2, 3, 9, 17, 40])
    m, n, k, x = size(), size(), rng.choice([0, 1, 30, 400]), rng.choice([1, 2, 5])
    dtype = rng.choice(FLOATS)
    shapes = {"aclnnBaddbmm": ([x, m, k], [x, k, n], [x, m, n]), "aclnnAddbmm": ([x, m, k], [x, k, n], [m, n]),
              "aclnnAddmv": ([m, k], [k], [m])}.get(name, ([m, k], [k, n], [m, n]))
    a, b = draw(rng, g, dtype, *shapes[0]), draw(rng, g, dtype, *shapes[1])
    shape = shapes[2]
    if name != "aclnnInplaceAddmm":
        shape = [s if rng.random() < 0.6 else 1 for s in shape][rng.randrange(2) if len(shape) > 1 else 0:]
    self = draw(rng, g, dtype, *shape)
    beta, alpha = rng.choice([0, 1, 0.5, 2.0]), rng.choice([1, 1, 0.5, 3])
    if beta == 0:
        self.fill_(float("nan"))  # is not read
    product = lambda p, q: torch.einsum("bij,bjk->ik", p, q) if name == "aclnnAddbmm" else torch.matmul(p, q)  # noqa: E731
    addend = beta * self.double() if beta else torch.zeros(())
    want = addend + alpha * product(a.double(), b.double())
    magnitude = addend.abs() + alpha * product(a.double().abs(), b.double().abs())
    names = {"aclnnAddmv": ("mat", "vec"), "aclnnBaddbmm": ("batch1", "batch2"), "aclnnAddbmm": ("batch1", "batch2")}.get(
        name, ("mat1", "mat2"))
    values = {names[0]: a, names[1]: b, "beta": beta, "alpha": alpha, "cubeMathType": 0}
    if name == "aclnnInplaceAddmm":
        got = call(name, selfRef=self, **values)["selfRef"]
    else:
        got = call(name, self=self, out=draw(rng, g, dtype, *shapes[2]), **values)["out"]
    near(got, want.expand(got.shape), magnitude.expand(got.shape), k * x)


def test_wrong_products_name_the_parameter():
    f = torch.zeros
    for name, values, words in [
        ("aclnnMm", dict(self=f(2, 3), mat2=f(4, 5), out=f(2, 5), cubeMathType=0), ["self", "mat2", "[2, 3]", "[4, 5]"]),
        ("aclnnMm", dict(self=f(2, 3), mat2=f(3, 5), out=f(5, 2), cubeMathType=0), ["out", "[5, 2]", "[2, 5]"]),
        ("aclnnMm", dict(self=f(1, 2, 3), mat2=f(3, 5), out=f(2, 5), cubeMathType=0), ["self", "3"]),
        ("aclnnAddmm", dict(self=f(7), mat1=f(2, 3), mat2=f(3, 5), beta=1, alpha=1, out=f(2, 5), cubeMathType=0), ["self", "[7]"]),
        ("aclnnMatmul", dict(self=f(2, 3), mat2=f(3, 5, dtype=torch.int32), out=f(2, 5), cubeMathType=0), ["mat2", "int32"]),
    ]:
        with pytest.raises(driver.CallFailed) as failed:
            call(name, **values)
        assert failed.value.code == 161002 and all(w in failed.value.text for w in words), failed.value.text


def convolution(rng, g):
    spatial = rng.choice([1, 2, 2, 3])
    transposed, groups = rng.random() < 0.3, rng.choice([1, 1, 1, 2, 5])
    cin, cout = groups * rng.choice([1, 2, 7]), groups * rng.choice([1, 3, 20])
    kernel = [rng.choice([1, 2, 3, 5]) for _ in range(spatial)]
    stride = [rng.choice([1, 1, 2, 3]) for _ in range(spatial)]
    padding = [rng.randrange(k) for k in kernel]
    dilation = [rng.choice([1, 1, 2]) for _ in range(spatial)]
    size = [d * (k - 1) + 1 + rng.randrange(12 if spatial < 3 else 4) for k, d in zip(kernel, dilation)]
    extra = [rng.randrange(max(s, d)) if transposed else 0 for s, d in zip(stride, dilation)]
    dtype = rng.choice(FLOATS)
    x = draw(rng, g, dtype, rng.choice([1, 2, 3]), cin, *size)
    w = draw(rng, g, dtype, *((cin, cout // groups) if transposed else (cout, cin // groups)), *kernel)
    numbers = dict(stride=stride, padding=padding, dilation=dilation, transposed=transposed, outputPadding=extra, groups=groups)
    return x, w, draw(rng, g, dtype, cout), numbers


def test_convolution(rng):
    g = generator(rng)
    x, w, bias, n = convolution(rng, g)
    bias = bias if rng.random() < 0.6 else None
    judge = lambda a, b, c: torch.ops.aten.convolution(a, b, c, *n.values())  # noqa: E731
    wide = lambda t: None if t is None else t.double()  # noqa: E731
    try:
        want = judge(wide(x), wide(w), wide(bias))
    except RuntimeError as refused:
        pytest.skip(f"torch refuses: {refused}")
    magnitude = judge(x.double().abs(), w.double().abs(), None if bias is None else bias.double().abs())
    out = draw(rng, g, x.dtype, *want.shape)
    got = call("aclnnConvolution", input=x, weight=w, bias=bias, output=out, cubeMathType=0, **n)["output"]
    near(got, want, magnitude, w.numel())


def test_convolution_backward(rng):
    g = generator(rng)
    x, w, bias, n = convolution(rng, g)
    try:
        y = torch.ops.aten.convolution(x.double(), w.double(), None, *n.values())
    except RuntimeError as refused:
        pytest.skip(f"torch refuses: {refused}")
    dy = draw(rng, g, x.dtype, *y.shape)
    mask = [rng.random() < 0.8 for _ in range(3)]
    judge = lambda a, b, c: torch.ops.aten.convolution_backward(a, b, c, [bias.numel()], *n.values(), [True] * 3)  # noqa: E731
    want = judge(dy.double(), x.double(), w.double())
    magnitude = judge(dy.double().abs(), x.double().abs(), w.double().abs())
    outs = [draw(rng, g, x.dtype, *t.shape) for t in (x, w, bias)]
    if rng.random() < 0.5:
        outs = [o if m else None for o, m in zip(outs, mask)]
    got = call("aclnnConvolutionBackward", gradOutput=dy, input=x, weight=w, biasSizes=[bias.numel()], outputMask=mask, cubeMathType=0,
               gradInput=outs[0], gradWeight=outs[1], gradBias=outs[2], **n)
    for name, wanted, value, size, before in zip(("gradInput", "gradWeight", "gradBias"), mask, want, magnitude, outs):
        if wanted:
            near(got[name], value, size, max(dy.numel(), w.numel()))
        elif before is not None:
            assert torch.equal(got[name], before), f"{name} was not asked for and was written"


def test_depthwise(rng):
    g = generator(rng)
    c, dtype = rng.choice([1, 3, 8]), rng.choice(FLOATS)
    x, w = draw(rng, g, dtype, 2, c, 9, 11), draw(rng, g, dtype, 2 * c, 1, 3, 2)
    judge = lambda a, b: F.conv2d(a, b, None, 2, 1, 1, c)  # noqa: E731
    want = judge(x.double(), w.double())
    got = call("aclnnConvDepthwise2d", self=x, weight=w, kernelSize=[3, 2], bias=None, stride=[2, 2], padding=[1, 1], dilation=[1, 1],
               out=draw(rng, g, dtype, *want.shape), cubeMathType=0)["out"]
    near(got, want, judge(x.double().abs(), w.double().abs()), 6)


def pooling(rng, g):
    kernel = [rng.choice([1, 2, 3]) for _ in range(2)]
    stride = rng.choice([[], [1, 1], [2, 2], [3, 1]])
    padding = [rng.randrange(k // 2 + 1) for k in kernel]
    shape = [2, 3, rng.randrange(5, 14), rng.randrange(5, 14)][rng.randrange(2):]
    x = draw(rng, g, rng.choice(FLOATS), *shape)
    return x, kernel, stride, padding, rng.random() < 0.4


def mask_for(out: torch.Tensor, kernel: list[int]) -> torch.Tensor:
    h, w = out.shape[-2:]
    return torch.zeros((*out.shape[:-2], kernel[0] * kernel[1], (-(-h * w // 16) + 1) * 32), dtype=torch.int8)


@pytest.mark.parametrize("form", ["WithMask", "WithIndices"])
def test_max_pool(form, rng):
    g = generator(rng)
    x, kernel, stride, padding, ceil_mode = pooling(rng, g)
    dilation = rng.choice([[1, 1], [1, 1], [2, 1]])
    if rng.random() < 0.2:
        x[..., 1, 2] = float("nan")
    n = dict(kernelSize=kernel, stride=stride, padding=padding, dilation=dilation, ceilMode=ceil_mode)
    want, indices = F.max_pool2d_with_indices(x.double(), kernel, stride or None, padding, dilation, ceil_mode)
    memory = mask_for(want, kernel) if form == "WithMask" else torch.zeros(want.shape, dtype=rng.choice([torch.int32, torch.int64]))
    got = call(f"aclnnMaxPool2d{form}", self=x, out=draw(rng, g, x.dtype, *want.shape), indices=memory, **n)
    assert torch.equal(got["out"].double().nan_to_num(7), want.nan_to_num(7))
    if form == "WithIndices":
        assert torch.equal(got["indices"].long(), indices)
    dy = draw(rng, g, x.dtype, *want.shape)
    back = lambda t: torch.ops.aten.max_pool2d_with_indices_backward(  # noqa: E731
        t, x.double(), kernel, stride or kernel, padding, dilation, ceil_mode, indices)
    dx = call(f"aclnnMaxPool2d{form}Backward", gradOutput=dy, self=x, indices=got["indices"], gradInput=draw(rng, g, x.dtype, *x.shape),
              **n)["gradInput"]
    near(dx, back(dy.double()), back(dy.double().abs()), 9)


def test_avg_pool(rng):
    g = generator(rng)
    x, kernel, stride, padding, ceil_mode = pooling(rng, g)
    include, divisor = rng.random() < 0.5, rng.choice([0, 0, 3])
    judge = lambda t: F.avg_pool2d(t, kernel, stride or None, padding, ceil_mode, include, divisor or None)  # noqa: E731
    want = judge(x.double())
    got = call("aclnnAvgPool2d", self=x, kernelSize=kernel, strides=stride, paddings=padding, ceilMode=ceil_mode, countIncludePad=include,
               divisorOverride=divisor, cubeMathType=0, out=draw(rng, g, x.dtype, *want.shape))["out"]
    near(got, want, judge(x.double().abs()), 9)
    dy = draw(rng, g, x.dtype, *want.shape)
    back = lambda t: torch.ops.aten.avg_pool2d_backward(  # noqa: E731
        t, x.double(), kernel, stride or kernel, padding, ceil_mode, include, divisor or None)
    dx = call("aclnnAvgPool2dBackward", gradOutput=dy, self=x, kernelSize=kernel, stride=stride, padding=padding, ceilMode=ceil_mode,
              countIncludePad=include, divisorOverride=divisor, cubeMathType=0, gradInput=draw(rng, g, x.dtype, *x.shape))["gradInput"]
    near(dx, back(dy.double()), back(dy.double().abs()), 9)


def test_adaptive_pool(rng):
    g = generator(rng)
    x = draw(rng, g, rng.choice(FLOATS), *[2, 3, rng.randrange(1, 14), rng.randrange(1, 14)][rng.randrange(2):])
    size = [rng.choice([1, 2, 5, 7]), rng.choice([1, 3, 6])]
    want = F.adaptive_avg_pool2d(x.double(), size)
    got = call("aclnnAdaptiveAvgPool2d", self=x, outputSize=size, out=draw(rng, g, x.dtype, *want.shape))["out"]
    near(got, want, F.adaptive_avg_pool2d(x.double().abs(), size), x.shape[-1] * x.shape[-2])
    dy = draw(rng, g, x.dtype, *want.shape)
    back = lambda t: torch.ops.aten._adaptive_avg_pool2d_backward(t, x.double())  # noqa: E731
    dx = call("aclnnAdaptiveAvgPool2dBackward", gradOutput=dy, self=x, out=draw(rng, g, x.dtype, *x.shape))["out"]
    near(dx, back(dy.double()), back(dy.double().abs()), 64)
    want, indices = F.adaptive_max_pool2d_with_indices(x.double(), size)
    got = call("aclnnAdaptiveMaxPool2d", self=x, outputSize=size, outputOut=draw(rng, g, x.dtype, *want.shape),
               indicesOut=torch.zeros(want.shape, dtype=torch.int64))
    assert torch.equal(got["outputOut"].double(), want) and torch.equal(got["indicesOut"], indices)
    back = lambda t: torch.ops.aten.adaptive_max_pool2d_backward(t, x.double(), indices)  # noqa: E731
    dx = call("aclnnAdaptiveMaxPool2dBackward", gradOutput=dy, self=x, indices=indices.contiguous(), gradInput=draw(rng, g, x.dtype, *x.shape))["gradInput"]
    near(dx, back(dy.double()), back(dy.double().abs()), 64)


@pytest.mark.parametrize("form", ["Nearest2d", "Nearest2dV2", "NearestExact2d", "Bilinear2d"])
def test_upsample(form, rng):
    g = generator(rng)
    x = draw(rng, g, rng.choice(FLOATS), 2, 3, rng.randrange(1, 9), rng.randrange(1, 9))
    given = rng.random() < 0.5 and form != "Nearest2d"
    scale = (rng.choice([2.0, 1.5, 0.7]), rng.choice([2.0, 3.0, 1.3])) if given else (0.0, 0.0)
    size = [max(1, int(x.shape[2] * scale[0])), max(1, int(x.shape[3] * scale[1]))] if given else [rng.randrange(1, 17), rng.randrange(1, 17)]
    align = rng.random() < 0.5
    aten = torch.ops.aten
    corners = [align] if form == "Bilinear2d" else []
    scales = [s or None for s in scale]
    ahead, back = {"NearestExact2d": (aten._upsample_nearest_exact2d, aten._upsample_nearest_exact2d_backward),
                   "Bilinear2d": (aten.upsample_bilinear2d, aten.upsample_bilinear2d_backward)}.get(
        form, (aten.upsample_nearest2d, aten.upsample_nearest2d_backward))
    want = ahead(x.float(), size, *corners, *scales).double()
    values = dict(outputSize=size, out=draw(rng, g, x.dtype, *want.shape))
    if form == "Bilinear2d":
        values["alignCorners"] = align
    if form != "Nearest2d":
        values.update(scalesH=scale[0], scalesW=scale[1])
    got = call(f"aclnnUpsample{form}", self=x, **values)["out"]
    terms = 40 if form == "Bilinear2d" else 0  # weights are differences of f32 positions
    near(got, want, ahead(x.float().abs(), size, *corners, *scales).double() + terms / 40, terms)
    name = f"aclnnUpsample{form.removesuffix('V2')}Backward"
    dy = draw(rng, g, x.dtype, *want.shape)
    grad = lambda t: back(t.float(), size, list(x.shape), *corners, *scales).double()  # noqa: E731
    result = next(p["name"] for p in OPERATORS[name]["params"] if p.get("role", "in") != "in")
    source = OPERATORS[name]["params"][0]["name"]
    values = {source: dy, "outputSize": size, "inputSize": list(x.shape), "scalesH": scale[0], "scalesW": scale[1],
              result: draw(rng, g, x.dtype, *x.shape)}
    if form == "Bilinear2d":
        values["alignCorners"] = align
    dx = call(name, **values)[result]
    near(dx, grad(dy), grad(dy.abs()) + 1, 64 + terms)
