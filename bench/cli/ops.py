"""The operators of `anynpu bench ops`: what each row calls, how many bytes it must move and how many operations it does.

A case is made on a device by `build(on)`, which returns the call to be timed. Bytes are inputs read once and outputs written
once; operations count for products, convolutions and attention only (2 for each multiply-add).
"""
from __future__ import annotations

import math
from typing import Callable, NamedTuple, Optional

SIZES = {"f32": 4, "bf16": 2, "f16": 2, "i64": 8}


class Case(NamedTuple):
    name: str
    size: str
    build: Callable
    bytes: float
    flops: float = 0


class On:
    """One device with the helpers that cases use; values come from one seed, so every side computes the same."""

    def __init__(self, device: str):
        import torch

        self.torch, self.device = torch, device
        self.F = torch.nn.functional
        self.random = torch.Generator().manual_seed(7)
        self.dtypes = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "i64": torch.int64}

    def rand(self, *shape, dtype="f32", grad=False):
        x = self.torch.randn(*shape, generator=self.random).to(self.dtypes[dtype]).to(self.device)
        return x.requires_grad_(grad)

    def ints(self, most, *shape):
        return self.torch.randint(0, most, shape, generator=self.random).to(self.device)

    def backward(self, y, *inputs):
        """The gradient of y alone, as often as it is called."""
        g = self.torch.ones_like(y)
        return lambda: self.torch.autograd.grad(y, inputs, g, retain_graph=True)


CASES: list[Case] = []


def add(name: str, size: str, build: Callable, bytes: float, flops: float = 0) -> None:
    CASES.append(Case(name, size, build, bytes, flops))


def elementwise() -> None:
    unary = {
        "copy": lambda t, x, o: lambda: o.copy_(x), "relu": lambda t, x, o: lambda: t.relu(x),
        "exp": lambda t, x, o: lambda: t.exp(x, out=o), "tanh": lambda t, x, o: lambda: t.tanh(x, out=o),
        "erf": lambda t, x, o: lambda: t.erf(x, out=o), "sigmoid": lambda t, x, o: lambda: t.sigmoid(x, out=o),
        "sqrt": lambda t, x, o: lambda: t.sqrt(x, out=o), "gelu": lambda t, x, o: lambda: t.nn.functional.gelu(x),
        "silu": lambda t, x, o: lambda: t.nn.functional.silu(x), "mul by a number": lambda t, x, o: lambda: t.mul(x, 1.5, out=o),
    }
    binary = {"add": "add", "mul": "mul", "div": "div", "maximum": "maximum", "less than": "lt"}
    for n, label in ((1 << 16, "64Ki"), (1 << 22, "4Mi")):
        for name, body in unary.items():
            if n < 1 << 20 and name not in ("copy", "relu", "exp", "gelu"):
                continue
            for dtype in ("f32", "bf16", "f16") if name in ("copy", "relu", "exp", "gelu") and n >= 1 << 20 else ("f32",):
                def build(on, n=n, body=body, dtype=dtype):
                    x = on.rand(n, dtype=dtype).abs_()
                    return body(on.torch, x, on.torch.empty_like(x))
                add(name, f"{label} {dtype}", build, 2 * n * SIZES[dtype])
        for name, function in binary.items():
            if n < 1 << 20 and name not in ("add", "mul"):
                continue
            for dtype in ("f32", "bf16", "f16") if name in ("add", "mul") and n >= 1 << 20 else ("f32",):
                def build(on, n=n, function=function, dtype=dtype):
                    a, b = on.rand(n, dtype=dtype), on.rand(n, dtype=dtype)
                    return lambda f=getattr(on.torch, function): f(a, b)
                out = 1 if name == "less than" else SIZES[dtype]
                add(name, f"{label} {dtype}", build, n * (2 * SIZES[dtype] + out))
    n = 1 << 22

    def where(on):
        a, b = on.rand(n), on.rand(n)
        c = a > b
        return lambda: on.torch.where(c, a, b)
    add("where", "4Mi f32", where, n * 13)

    def cast(on, to):
        x = on.rand(n)
        return lambda: x.to(on.dtypes[to])
    add("cast to bf16", "4Mi f32", lambda on: cast(on, "bf16"), n * 6)
    add("cast to f16", "4Mi f32", lambda on: cast(on, "f16"), n * 6)

    def transpose(on):
        x = on.rand(2048, 2048).t()
        return lambda: x.contiguous()
    add("transpose", "2048x2048 f32", transpose, 2 * 4 * 2048 * 2048)

    def broadcast(on):
        x, row = on.rand(4096, 1024), on.rand(1024)
        return lambda: x + row
    add("add a row", "4096x1024 f32", broadcast, 2 * 4 * 4096 * 1024)


def reductions() -> None:
    rows, cols = 4096, 1024
    bodies = {
        "sum of all": lambda x: x.sum(), "sum over rows": lambda x: x.sum(0), "sum over columns": lambda x: x.sum(1),
        "mean over columns": lambda x: x.mean(1), "max of all": lambda x: x.max(), "amax over columns": lambda x: x.amax(1),
        "argmax over columns": lambda x: x.argmax(1), "var over columns": lambda x: x.var(1),
    }
    for name, body in bodies.items():
        def build(on, body=body):
            x = on.rand(rows, cols)
            return lambda: body(x)
        add(name, f"{rows}x{cols} f32", build, 4 * rows * cols)

    def cumsum(on):
        x = on.rand(rows, cols)
        return lambda: x.cumsum(1)
    add("cumsum", f"{rows}x{cols} f32", cumsum, 8 * rows * cols)


def norms() -> None:
    rows, cols = 4096, 1024
    for dtype in ("f32", "bf16"):
        def layer(on, backward=False, dtype=dtype):
            x, w, b = on.rand(rows, cols, dtype=dtype, grad=backward), on.rand(cols, dtype=dtype), on.rand(cols, dtype=dtype)
            body = lambda: on.F.layer_norm(x, (cols,), w, b)  # noqa: E731
            return on.backward(body(), x) if backward else body
        add("layer_norm", f"{rows}x{cols} {dtype}", layer, 2 * rows * cols * SIZES[dtype])
        add("layer_norm backward", f"{rows}x{cols} {dtype}", lambda on, f=layer: f(on, True), 3 * rows * cols * SIZES[dtype])

        def softmax(on, backward=False, dtype=dtype):
            x = on.rand(rows, cols, dtype=dtype, grad=backward)
            return on.backward(on.F.softmax(x, 1), x) if backward else lambda: on.F.softmax(x, 1)
        add("softmax", f"{rows}x{cols} {dtype}", softmax, 2 * rows * cols * SIZES[dtype])
        add("softmax backward", f"{rows}x{cols} {dtype}", lambda on, f=softmax: f(on, True), 3 * rows * cols * SIZES[dtype])

    def batch(on, backward=False):
        x, w, b = on.rand(32, 64, 32, 32, grad=backward), on.rand(64), on.rand(64)
        mean, var = on.torch.zeros(64, device=on.device), on.torch.ones(64, device=on.device)
        body = lambda: on.F.batch_norm(x, mean, var, w, b, training=True)  # noqa: E731
        return on.backward(body(), x) if backward else body
    n = 32 * 64 * 32 * 32
    add("batch_norm", "32x64x32x32 f32", batch, 8 * n)
    add("batch_norm backward", "32x64x32x32 f32", lambda on: batch(on, True), 12 * n)

    def group(on):
        x, w, b = on.rand(32, 64, 32, 32), on.rand(64), on.rand(64)
        return lambda: on.F.group_norm(x, 8, w, b)
    add("group_norm", "32x64x32x32 f32", group, 8 * n)


def products() -> None:
    def matmul(on, m, n, k, dtype):
        a, b = on.rand(m, k, dtype=dtype), on.rand(k, n, dtype=dtype)
        return lambda: a @ b
    shapes = [(s, s, s) for s in (64, 128, 256, 512, 1024, 2048)] + [(1, 1024, 1024), (16, 1024, 1024), (16, 4096, 4096)]
    for m, n, k in shapes:
        for dtype in ("f32", "bf16") if m in (128, 512, 1024) else ("f32",):
            add("matmul", f"{m}x{n}x{k} {dtype}", lambda on, a=(m, n, k, dtype): matmul(on, *a), (m * k + k * n + m * n) * SIZES[dtype], 2.0 * m * n * k)

    def linear(on):
        x, w, b = on.rand(1024, 256), on.rand(1024, 256), on.rand(1024)
        return lambda: on.F.linear(x, w, b)
    add("linear", "1024x256 to 1024 f32", linear, 4 * (2 * 1024 * 256 + 1024 * 1024), 2.0 * 1024 * 1024 * 256)

    def bmm(on):
        a, b = on.rand(64, 128, 64), on.rand(64, 64, 128)
        return lambda: on.torch.bmm(a, b)
    add("bmm", "64 of 128x128x64 f32", bmm, 4 * 64 * (2 * 128 * 64 + 128 * 128), 2.0 * 64 * 128 * 128 * 64)

    def attention(on, backward=False):
        q, k, v = (on.rand(8, 8, 128, 32, grad=backward) for _ in range(3))
        body = lambda: on.F.scaled_dot_product_attention(q, k, v, is_causal=True)  # noqa: E731
        return on.backward(body(), q, k, v) if backward else body
    flops = 2 * 2.0 * 64 * 128 * 128 * 32 / 2
    add("attention", "8x8x128x32 causal f32", attention, 16 * 64 * 128 * 32, flops)
    add("attention backward", "8x8x128x32 causal f32", lambda on: attention(on, True), 32 * 64 * 128 * 32, 2.5 * flops)


def images() -> None:
    def conv(on, n, c, size, out, kernel, stride, groups, backward):
        x = on.rand(n, c, size, size, grad=backward)
        w = on.rand(out, c // groups, kernel, kernel, grad=backward)
        body = lambda: on.F.conv2d(x, w, None, stride, kernel // 2, 1, groups)  # noqa: E731
        return on.backward(body(), x, w) if backward else body
    for n, c, size, out, kernel, stride, groups in ((32, 32, 32, 64, 3, 1, 1), (32, 128, 8, 128, 3, 1, 1), (8, 256, 28, 64, 1, 1, 1),
                                                    (4, 3, 224, 64, 7, 2, 1), (32, 64, 32, 64, 3, 1, 64)):
        side = math.ceil(size / stride)
        flops = 2.0 * n * out * side * side * (c // groups) * kernel * kernel
        moved = 4.0 * (n * c * size * size + out * (c // groups) * kernel * kernel + n * out * side * side)
        label = f"{n}x{c}x{size}x{size} to {out}, {kernel}x{kernel}" + (f" /{stride}" if stride > 1 else "") + (" depthwise" if groups > 1 else "")
        for backward in (False, True):
            add("conv2d" + " backward" * backward, label, lambda on, a=(n, c, size, out, kernel, stride, groups, backward): conv(on, *a),
                moved * (2 if backward else 1), flops * (2 if backward else 1))

    def pool(on, average):
        x = on.rand(32, 64, 32, 32)
        return (lambda: on.F.avg_pool2d(x, 2)) if average else (lambda: on.F.max_pool2d(x, 2))
    add("max_pool2d", "32x64x32x32 f32", lambda on: pool(on, False), 5 * 32 * 64 * 32 * 32)
    add("avg_pool2d", "32x64x32x32 f32", lambda on: pool(on, True), 5 * 32 * 64 * 32 * 32)


def lookups() -> None:
    words, dim, count = 32000, 512, 4096

    def embedding(on, backward=False):
        table, at = on.rand(words, dim, grad=backward), on.ints(words, count)
        return on.backward(on.F.embedding(at, table), table) if backward else lambda: on.F.embedding(at, table)
    add("embedding", f"{count} of {words}x{dim} f32", embedding, 8 * count * dim)
    add("embedding backward", f"{count} of {words}x{dim} f32", lambda on: embedding(on, True), 4 * dim * (count + words))

    def entropy(on, backward=False):
        x, y = on.rand(512, words, grad=backward), on.ints(words, 512)
        return on.backward(on.F.cross_entropy(x, y), x) if backward else lambda: on.F.cross_entropy(x, y)
    add("cross_entropy", f"512x{words} f32", entropy, 8 * 512 * words)
    add("cross_entropy backward", f"512x{words} f32", lambda on: entropy(on, True), 8 * 512 * words)

    def select(on):
        x, at = on.rand(words, dim), on.ints(words, count)
        return lambda: x.index_select(0, at)
    add("index_select", f"{count} of {words}x{dim} f32", select, 8 * count * dim)

    def gather(on):
        x, at = on.rand(4096, 1024), on.ints(1024, 4096, 256)
        return lambda: x.gather(1, at)
    add("gather", "4096x256 of 1024 f32", gather, 16 * 4096 * 256)

    def cat(on):
        a, b = on.rand(4096, 512), on.rand(4096, 512)
        return lambda: on.torch.cat((a, b), 1)
    add("cat", "2 of 4096x512 f32", cat, 16 * 4096 * 512)

    def sort(on):
        x = on.rand(64, 16384)
        return lambda: x.sort(1)
    add("sort", "64x16384 f32", sort, 64 * 16384 * 16)

    def topk(on):
        x = on.rand(64, 16384)
        return lambda: x.topk(50, 1)
    add("topk", "50 of 64x16384 f32", topk, 64 * 16384 * 4)


def training() -> None:
    n = 1 << 20

    def optimizer(on, make):
        # A model's mixture: a few large parameters and many small ones.
        parameters = [on.rand(*shape, grad=True) for shape in [(512, 512)] * 3 + [(256, 256)] * 4 + [(512,)] * 20]
        for p in parameters:
            p.grad = on.torch.ones_like(p)
        return make(on.torch.optim, parameters).step
    elements = 3 * 512 * 512 + 4 * 256 * 256 + 20 * 512
    add("AdamW step", "1.06M in 27 tensors f32", lambda on: optimizer(on, lambda o, p: o.AdamW(p, foreach=True)), 28 * elements)
    add("SGD step with momentum", "1.06M in 27 tensors f32", lambda on: optimizer(on, lambda o, p: o.SGD(p, 0.01, momentum=0.9, foreach=True)), 20 * elements)

    def fill(on, name):
        x = on.torch.empty(n, device=on.device)
        return getattr(x, name)
    for name in ("uniform_", "normal_"):
        add(name, "1Mi f32", lambda on, name=name: fill(on, name), 4 * n)

    def dropout(on):
        x = on.rand(n)
        return lambda: on.F.dropout(x, 0.1)
    add("dropout", "1Mi f32", dropout, 8 * n)

    def mse(on):
        x, y = on.rand(n), on.rand(n)
        return lambda: on.F.mse_loss(x, y)
    add("mse_loss", "1Mi f32", mse, 8 * n)


for family in (elementwise, reductions, norms, products, images, lookups, training):
    family()


def chosen(names: Optional[list[str]]) -> list[Case]:
    """The cases whose name is one of `names`, or all; a name that no case has is an error."""
    if not names:
        return list(CASES)
    known = {case.name for case in CASES}
    for name in names:
        if name not in known:
            raise ValueError(f"no operator {name!r} in the list; `anynpu bench ops --list` prints the names")
    return [case for case in CASES if case.name in names]
