"""Layouts of the card (FRACTAL_NZ, NC1HWC0 …) through the C interface. What lies where is computed here element by element from the
published description of each layout."""
from __future__ import annotations

import itertools

import pytest
import torch

from aclnn_call import Failure, lib
from test_more_operators import agree, draw, seeded

NC1HWC0, FRACTAL_Z, NZ, NDC1HWC0, FRACTAL_Z_3D = 3, 4, 29, 32, 33
TYPES = [torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.int32, torch.uint8]


def up(n: int, size: int) -> int:
    return (n + size - 1) // size


def block(t) -> int:
    return 32 if t.itemsize == 1 else 16


def storage_shape(number: int, s: tuple, c0: int) -> list[int]:
    if number == NZ:
        return [*s[:-2], up(s[-1], c0), up(s[-2], 16), 16, c0]
    if number == NC1HWC0:
        return [s[0], up(s[1], c0), s[2], s[3], c0]
    if number == FRACTAL_Z:
        return [up(s[1], c0) * s[2] * s[3], up(s[0], 16), 16, c0]
    if number == NDC1HWC0:
        return [s[0], s[2], up(s[1], c0), s[3], s[4], c0]
    return [s[2] * up(s[1], c0) * s[3] * s[4], up(s[0], 16), 16, c0]


def place(number: int, at: tuple, s: tuple, c0: int) -> tuple:
    """Where element `at` lies in the storage."""
    if number == NZ:
        return (*at[:-2], at[-1] // c0, at[-2] // 16, at[-2] % 16, at[-1] % c0)
    n, c = at[:2]
    if number == NC1HWC0:
        return (n, c // c0, at[2], at[3], c % c0)
    if number == FRACTAL_Z:
        return ((c // c0 * s[2] + at[2]) * s[3] + at[3], n // 16, n % 16, c % c0)
    if number == NDC1HWC0:
        return (n, at[2], c // c0, at[3], at[4], c % c0)
    return (((at[2] * up(s[1], c0) + c // c0) * s[3] + at[3]) * s[4] + at[4], n // 16, n % 16, c % c0)


def packed(x: torch.Tensor, number: int) -> torch.Tensor:
    s, c0 = tuple(x.shape), block(x.dtype)
    out = torch.zeros(storage_shape(number, s, c0), dtype=x.dtype)
    for at in itertools.product(*map(range, s)):
        out[place(number, at, s, c0)] = x[at]
    return out


def card(storage: torch.Tensor, number: int, view: torch.Tensor) -> torch.Tensor:
    storage.card = (number, tuple(view.shape), tuple(view.stride()))
    return storage


def sizes(number: int, r) -> list[int]:
    if number == NZ:
        return [*[r.randint(1, 3) for _ in range(r.randint(0, 2))], r.randint(1, 40), r.randint(1, 70)]
    return [r.randint(1, 18), r.randint(1, 36), *[r.randint(1, 3) for _ in range(2 if number in (NC1HWC0, FRACTAL_Z) else 3)]]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("number", [NC1HWC0, FRACTAL_Z, NZ, NDC1HWC0, FRACTAL_Z_3D])
def test_there_and_back(number, dtype):
    for turn in range(2):
        r = seeded("format", number, dtype, turn)
        x = draw(sizes(number, r), dtype)
        want = packed(x, number)
        there = card(torch.full(want.shape, 3, dtype=dtype), number, x)
        lib("aclnnNpuFormatCast", srcTensor=x, dstTensor=there)
        assert torch.equal(there, want)
        back = torch.full_like(x, 5)
        lib("aclnnNpuFormatCast", srcTensor=there, dstTensor=back)
        assert torch.equal(back, x)


def test_between_two_layouts_and_of_a_transposed_source():
    r = seeded("two")
    x = draw((3, 20, 2, 4), torch.float16)
    first = card(packed(x, NC1HWC0), NC1HWC0, x)
    second = card(torch.zeros(storage_shape(FRACTAL_Z, tuple(x.shape), 16), dtype=x.dtype), FRACTAL_Z, x)
    lib("aclnnNpuFormatCast", srcTensor=first, dstTensor=second)
    assert torch.equal(second, packed(x, FRACTAL_Z))
    m = draw((r.randint(2, 30), r.randint(2, 30))).t()
    out = card(torch.zeros(storage_shape(NZ, tuple(m.shape), 16)), NZ, m.contiguous())
    lib("aclnnNpuFormatCast", srcTensor=m, dstTensor=out)
    assert torch.equal(out, packed(m.contiguous(), NZ))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("turned", [False, True])
def test_products_with_weights_in_nz(dtype, turned):
    for number in range(3):
        r = seeded("nz", dtype, turned, number)
        m, k, n, b = r.randint(1, 40), r.randint(2, 50), r.randint(2, 50), r.randint(1, 3)
        a, held = draw((m, k), dtype), draw((n, k) if turned else (k, n), dtype)
        w = held.t() if turned else held
        weight = card(packed(held, NZ), NZ, w)
        bias, out = draw((n,), dtype), torch.zeros(m, n, dtype=dtype)
        lib("aclnnMatmulWeightNz", self=a, mat2=weight, out=out, cubeMathType=0)
        agree("matmul", out, a.double() @ w.double(), k + 4)
        lib("aclnnAddmmWeightNz", self=bias, mat1=a, mat2=weight, beta=0.5, alpha=2, out=out, cubeMathType=0)
        agree("addmm", out, 0.5 * bias.double() + 2 * (a.double() @ w.double()), 2 * k + 8)
        a, held = draw((b, m, k), dtype), draw((b, n, k) if turned else (b, k, n), dtype)
        w = held.transpose(1, 2) if turned else held
        out = torch.zeros(b, m, n, dtype=dtype)
        lib("aclnnBatchMatMulWeightNz", self=a, mat2=card(packed(held, NZ), NZ, w), out=out, cubeMathType=0)
        agree("bmm", out, a.double() @ w.double(), k + 4)


def test_other_operators_refuse_layouts_by_name():
    x = draw((16, 16))
    with pytest.raises(Failure, match="self has the private format number 29"):
        lib("aclnnAbs", self=card(packed(x, NZ), NZ, x), out=torch.zeros(16, 16))
    with pytest.raises(Failure, match="storage .* which does not hold it"):
        lib("aclnnNpuFormatCast", srcTensor=x, dstTensor=card(torch.zeros(1, 1, 8, 16), NZ, x))
