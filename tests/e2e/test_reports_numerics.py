"""Public bug reports about values (numbers are those of the case list): each fault's whole kind, with the right value computed beside it.

One process for all of them: what fails is named by its report. R032 is tests/e2e/test_mixed_precision.py's saturation mode.
"""
import json

from built import find_program
from conftest import SEED

VALUES = '''
    import ctypes, math, os, sys, traceback
    import torch, torch_npu
    from torch.nn import functional as F
    seed = int(os.environ["ANYNPU_SEED"])
    g = torch.Generator().manual_seed(seed)
    wrong, sections = [], []

    def report(section):
        try:
            section()
        except Exception:
            wrong.append(section.__name__ + ": " + traceback.format_exc())
        sections.append(section.__name__)

    def away(got, want):
        """Distance as a share of the length."""
        got, want = got.detach().cpu().double(), want.detach().double()
        return ((got - want).norm() / want.norm()).item()

    @report
    def r023():
        for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
            info = torch.iinfo(dtype)
            x = torch.randint(info.min, info.max, (5, 7), generator=g, dtype=torch.int64).to(dtype)
            for s in (torch.randint(0, info.bits, (), generator=g), torch.randint(0, info.bits, (7,), generator=g)):
                s = s.to(dtype)
                for op in (torch.bitwise_right_shift, torch.bitwise_left_shift):
                    assert torch.equal(op(x.npu(), s.npu()).cpu(), op(x, s)), (op.__name__, dtype, s)

    @report
    def r025():
        # A status without a text helps nobody: shapes and types that a copy does not take are told with both values.
        nn, acl = ctypes.CDLL("libnnopbase.so"), ctypes.CDLL("libascendcl.so")
        opapi = ctypes.CDLL("libopapi.so")
        nn.aclCreateTensor.restype, acl.aclGetRecentErrMsg.restype = ctypes.c_void_p, ctypes.c_char_p
        memory = torch.zeros(64).npu()

        def tensor(shape, dtype):
            dims = (ctypes.c_int64 * len(shape))(*shape)
            strides = (ctypes.c_int64 * len(shape))(*[math.prod(shape[i + 1:]) for i in range(len(shape))])
            return ctypes.c_void_p(nn.aclCreateTensor(dims, ctypes.c_uint64(len(shape)), dtype, strides, ctypes.c_int64(0), 2, dims, ctypes.c_uint64(len(shape)),
                                                      ctypes.c_void_p(memory.data_ptr())))

        size, executor = ctypes.c_uint64(), ctypes.c_void_p()
        for to, source, words in ((((2, 3), 0), ((4, 3), 0), (b"[2, 3]", b"[4, 3]")), (((2, 3), 0), ((2, 3), 34), (b"34",))):
            acl.aclGetRecentErrMsg()
            code = opapi.aclnnInplaceCopyGetWorkspaceSize(tensor(*to), tensor(*source), ctypes.byref(size), ctypes.byref(executor))
            text = acl.aclGetRecentErrMsg() or b""
            assert code in (161002, 561103) and b"aclnnInplaceCopy" in text and b"src" in text and all(w in text for w in words), (code, text)

    @report
    def r026():
        # y[:, from:from + n] += x @ weights[index]: small whole numbers are exact in bfloat16, so are their sums in float32.
        whole = lambda *shape: torch.randint(-2, 3, shape, generator=g)
        x, weights, y, index = whole(6, 16), whole(4, 16, 24), whole(6, 64), torch.randint(0, 4, (6,), generator=g)
        want = y.clone()
        want[:, 8:32] += torch.einsum("bi,bio->bo", x, weights[index])
        b = lambda t: t.to(torch.bfloat16).npu()
        got = b(y)
        got[:, 8:32] += torch.bmm(b(x)[:, None], b(weights)[index.npu()])[:, 0]
        assert torch.equal(got.cpu().long(), want)

    @report
    def r034():
        # How often a scale of 2^24 must be halved until no half gradient overflows, counted on the CPU and by the scaler.
        for c in (torch.rand(32, generator=g) * 10 ** (4 * torch.rand((), generator=g) - 2) + 0.01).half(), torch.full((32,), 1.5).half():
            scale, skips = 2.0**24, 0
            while True:
                weight = torch.zeros(32, requires_grad=True)
                ((weight.half() * c).float().sum() * scale).backward()
                if weight.grad.isfinite().all():
                    break
                scale, skips = scale / 2, skips + 1
            weight = torch.zeros(32, device="npu", requires_grad=True)
            optimizer, scaler, seen = torch.optim.SGD([weight], lr=1.0), torch.amp.GradScaler("npu", init_scale=2.0**24), 0
            while True:
                optimizer.zero_grad()
                scaler.scale((weight.half() * c.npu()).float().sum()).backward()
                scaler.step(optimizer)
                scaler.update()
                if weight.detach().any():
                    break
                seen += 1
                assert seen < 40
            assert seen == skips and scaler.get_scale() == scale, (seen, skips, scaler.get_scale(), scale)

    def attended(q, k, v, causal):
        """Float64, [batch, heads, rows, columns]; as many query heads as there are for each key head."""
        k, v = (t.repeat_interleave(q.shape[1] // k.shape[1], 1) for t in (k, v))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if causal:
            scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), float("-inf"))
        return scores.softmax(-1) @ v

    @report
    def r041():
        triangle = torch.ones(2048, 2048).triu(1).bool().npu()
        n, kv, s, d = 8, 2, 37, 32
        options = dict(scale=1 / math.sqrt(d))
        for causal in (False, True):
            mask = dict(atten_mask=triangle, sparse_mode=2) if causal else {}
            q, k, v = (torch.randn(3, h, s, d, generator=g).half() for h in (n, kv, kv))
            want = attended(q.double(), k.double(), v.double(), causal)
            for layout, order in (("BNSD", (0, 1, 2, 3)), ("BSND", (0, 2, 1, 3))):
                got = torch_npu.npu_fusion_attention(*(t.permute(order).contiguous().npu() for t in (q, k, v)), n, layout, **options, **mask)[0]
                assert away(got.permute(order), want) < 1e-3, (layout, causal, away(got.permute(order), want))
            lengths = torch.randint(1, s, (3,), generator=g).tolist()
            ends = torch.tensor(lengths).cumsum(0).tolist()
            rows = [[t[i, :, :length].transpose(0, 1) for i, length in enumerate(lengths)] for t in (q, k, v)]
            got = torch_npu.npu_fusion_attention(*(torch.cat(r).npu() for r in rows), n, "TND", **options, **mask, actual_seq_qlen=ends, actual_seq_kvlen=ends)[0]
            want = torch.cat([attended(*(t[i:i + 1, :, :length].double() for t in (q, k, v)), causal)[0].transpose(0, 1) for i, length in enumerate(lengths)])
            assert away(got, want) < 1e-3, ("TND", causal, away(got, want))

    @report
    def r044():
        # torch's True shows, the card's True hides: a redirect with the wrong sense gives other values, not an error.
        q, k, v = (torch.randn(2, 3, 9, 16, generator=g) for _ in range(3))
        shown = torch.rand(2, 1, 9, 9, generator=g) < 0.5
        shown[..., 0] = True
        scores = q.double() @ k.double().mT / 4
        for mask in (shown, torch.ones_like(shown)):
            want = scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v.double()
            got = F.scaled_dot_product_attention(q.npu(), k.npu(), v.npu(), attn_mask=mask.npu())
            hidden = torch_npu.npu_fusion_attention(q.npu(), k.npu(), v.npu(), 3, "BNSD", scale=0.25, atten_mask=(~mask).npu())[0]
            assert away(got, want) < 1e-5 and away(hidden, want) < 1e-5
        inverted = scores.masked_fill(shown, float("-inf"))[..., 1:, :].softmax(-1).nan_to_num(0.0) @ v.double()
        assert away(F.scaled_dot_product_attention(q.npu(), k.npu(), v.npu(), attn_mask=shown.npu())[..., 1:, :], inverted) > 0.1
        nothing = F.scaled_dot_product_attention(q.npu(), k.npu(), v.npu(), attn_mask=torch.zeros_like(shown).npu())
        assert torch.equal(nothing.cpu(), torch.zeros_like(q))

    @report
    def r047():
        for causal in (False, True):
            q, k, v = (torch.randn(2, 4, 65, 96, generator=g).bfloat16() for _ in range(3))
            dy = torch.randn(2, 4, 65, 96, generator=g).bfloat16()
            leaves = [t.double().requires_grad_() for t in (q, k, v)]
            want = torch.autograd.grad(attended(*leaves, causal), leaves, dy.double())
            mine = [t.npu().requires_grad_() for t in (q, k, v)]
            F.scaled_dot_product_attention(*mine, is_causal=causal).backward(dy.npu())
            for name, a, b in zip("qkv", mine, want):
                assert away(a.grad, b) < 1e-2, (name, causal, away(a.grad, b))
            again = [t.npu().requires_grad_() for t in (q, k, v)]
            F.scaled_dot_product_attention(*again, is_causal=causal).backward(dy.npu())
            assert all(torch.equal(a.grad, b.grad) for a, b in zip(mine, again)), "the same call gives the same bits"

    @report
    def r077():
        torch.manual_seed(seed)
        encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0, batch_first=True), 4, enable_nested_tensor=False)
        x = torch.randn(4, 24, 64, generator=g)
        want = encoder(x).flatten(1)
        got = encoder.half().npu()(x.half().npu()).float().cpu().flatten(1)
        assert F.cosine_similarity(got, want).min() > 0.9999, F.cosine_similarity(got, want)

    @report
    def r067():
        # Last, since the failure is the stream's: an index that is the size itself writes nothing and is named.
        size = 8
        guarded = torch.zeros(3, size, 4)
        held = guarded.npu()
        index = torch.tensor([[1], [size]])
        try:
            torch_npu.npu_scatter_nd_update_(held[1], index.npu(), torch.ones(2, 4).npu())
            torch.npu.synchronize()
            raise AssertionError("no error")
        except RuntimeError as error:
            text = str(error)
            assert "ScatterNdUpdate" in text and str(size) in text, text
        outside = held.cpu()
        assert not outside[0].any() and not outside[2].any()

    print("WRONG", wrong)
    print("SECTIONS", *sections)
    sys.exit(bool(wrong))
'''
ALL = "r023 r025 r026 r034 r041 r044 r047 r077 r067"


def test_values_that_users_reported(machine):
    machine.py(VALUES, cards=1).ok().says(f"^SECTIONS {ALL}$")


def test_r061_a_trace_is_whole_when_the_process_stops_early(machine213):
    """One product, then the end without any closing: the file parses and holds it once."""
    path = machine213.script("stops.py", """
        import os, torch, torch_npu
        x = torch.ones(4, 4).npu()
        torch.mm(x, x)
        torch.npu.synchronize()
        os._exit(0)
    """)
    out = machine213.tmp / "trace.json"
    machine213.run(find_program(), "trace", "--chrome", str(out), "--", machine213.python, path).ok()
    events = json.loads(out.read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    products = [e for e in events if e.get("name") in ("aclnnMm", "aclnnMatmul")]
    assert len(products) == 1, f"seed {SEED}: {events}"


def test_r062_double_rotary_frequencies(machine213):
    """As they are on the software card; refused as a 910B refuses them in its mode (tests/e2e/test_parity.py has the mode whole)."""
    path = machine213.script("rotary.py", """
        import os, torch, torch_npu
        g = torch.Generator().manual_seed(int(os.environ["ANYNPU_SEED"]))
        at, theta = torch.rand(16, generator=g, dtype=torch.float64) * 100, 10000.0 ** (-torch.arange(8, dtype=torch.float64) / 8)
        angles = at[:, None].npu() @ theta[None].npu()
        want = torch.outer(at, theta)
        assert torch.equal(angles.cpu(), want) and angles.dtype == torch.float64
        assert torch.allclose(angles.cos().cpu(), want.cos(), rtol=0, atol=1e-14)
        print("doubles")
    """)
    machine213.run(machine213.python, path).ok().says("^doubles$")
    done = machine213.run(machine213.python, path, options=("--parity",))
    assert done.code != 0 and "doubles" not in done.out and "not implemented for DT_DOUBLE" in done.err, done.tail()
