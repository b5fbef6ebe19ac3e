"""Operators as torch and torch_npu reach them: layouts of the card, complex numbers, sparse tensors, experts and quantised products."""


def test_operators_through_torch(machine213):
    machine213.py("""
        import torch, torch_npu
        d = "npu:0"
        print("seed", torch.initial_seed())

        def near(what, got, want, bound=1e-5):
            got = got.cpu()
            assert got.shape == want.shape, f"{what}: {tuple(got.shape)} instead of {tuple(want.shape)}"
            off = (got.to(torch.complex128) - want.to(torch.complex128)).abs().max().item()
            assert off <= bound, f"{what}: off by {off}"

        # A weight in FRACTAL_NZ: what comes back is what went in, and products do not see the difference.
        torch.npu.config.allow_internal_format = True
        w, x = torch.randn(20, 40).half(), torch.randn(5, 40).half()
        held = torch_npu.npu_format_cast(w.to(d), 29)
        assert torch_npu.get_npu_format(held) == 29
        assert torch.equal(held.cpu(), w) and torch.equal(torch_npu.npu_format_cast(held, 2).cpu(), w)
        for got in (torch.nn.functional.linear(x.to(d), held), x.to(d) @ held.t(), torch.addmm(torch.zeros(20).half().to(d), x.to(d), held.t())):
            near("product in NZ", got, x.float() @ w.float().t(), 0.05)
        torch.npu.config.allow_internal_format = False

        a, b = torch.randn(6, 7, dtype=torch.complex64), torch.randn(7, 5, dtype=torch.complex64)
        near("complex product", a.to(d) @ b.to(d), a @ b, 1e-4)
        m = torch.randn(5, 5)
        values, vectors = torch.linalg.eig(m.to(d))
        near("eigenvectors", (m.to(torch.complex64).to(d) @ vectors).cpu(), (vectors * values).cpu(), 1e-3)

        window, signal = torch.hann_window(10), torch.randn(2, 100)
        near("stft", torch.stft(signal.to(d), 10, window=window.to(d), return_complex=True), torch.stft(signal, 10, window=window, return_complex=True), 1e-4)
        rows = torch.randint(0, 2, (9, 2))
        for got, want in zip(torch.unique_consecutive(rows.to(d), return_inverse=True, return_counts=True, dim=0),
                             torch.unique_consecutive(rows, return_inverse=True, return_counts=True, dim=0)):
            assert torch.equal(got.cpu(), want)
        i, v = torch.randint(0, 3, (2, 12)), torch.randn(12)
        near("coalesce", torch.sparse_coo_tensor(i.to(d), v.to(d), (3, 3)).coalesce().to_dense(), torch.sparse_coo_tensor(i, v, (3, 3)).to_dense())

        # Experts: what is sent out comes back weighted.
        x, scores = torch.randn(6, 16), torch.randn(6, 8)
        y, expert, row = torch_npu.npu_moe_gating_top_k_softmax(scores.to(d), None, 2)
        rows, places, sorted_experts = torch_npu.npu_moe_init_routing(x.to(d), row, expert, 6)
        counts = torch_npu.npu_moe_compute_expert_tokens(sorted_experts, 8).cpu()
        assert torch.equal(counts.long(), torch.bincount(expert.cpu().flatten(), minlength=8).cumsum(0))
        back = torch_npu.npu_moe_finalize_routing(rows, torch.zeros(6, 16).to(d), None, torch.zeros(8, 16).to(d), y, places, expert)
        near("routing", back, x * scores.softmax(-1).topk(2)[0].sum(1, keepdim=True))
        rows, places, counts, _ = torch_npu.npu_moe_init_routing_v2(x.to(d), expert, active_num=12, expert_num=8, expert_tokens_num_flag=True, expert_tokens_num_type=1,
                                                                    active_expert_range=[0, 8], quant_mode=-1, drop_pad_mode=0)
        order = expert.cpu().flatten().argsort(stable=True)
        assert torch.equal(rows.cpu(), x[order // 2]) and torch.equal(counts.cpu().long(), torch.bincount(expert.cpu().flatten(), minlength=8))

        x1, x2 = torch.randint(-128, 128, (4, 32), dtype=torch.int8), torch.randint(-128, 128, (32, 8), dtype=torch.int8)
        scale = torch.rand(8) * 1e-3
        want = x1.double() @ x2.double() * scale
        bound = want.abs().max().item() / 100
        near("product of bytes", torch_npu.npu_quant_matmul(x1.to(d), x2.to(d), scale.to(d), output_dtype=torch.bfloat16), want, bound)
        near("with packed scales", torch_npu.npu_quant_matmul(x1.to(d), x2.to(d), torch_npu.npu_trans_quant_param(scale.to(d)), output_dtype=torch.float16), want, bound)
        rows, scales = torch_npu.npu_dynamic_quant(x.half().to(d))
        near("bytes and scales", rows.float().cpu() * scales.cpu()[:, None], x, x.abs().max().item() / 100)
        print("all equal")
    """).ok().says("^all equal$")
