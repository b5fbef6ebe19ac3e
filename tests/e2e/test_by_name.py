"""Operators that torch_npu reaches by type name (aclopCompileAndExecute): values as torch on the CPU has them."""


def test_single_operators(machine213):
    machine213.py("""
        import torch, torch_npu
        torch.manual_seed(int(torch.randint(1 << 30, ()).item()))
        x = torch.randn(4, 6)
        d = x.npu()

        def same(what, got, want):
            got = got.cpu()
            assert got.shape == want.shape and torch.allclose(got.double(), want.double(), atol=1e-6), f"{what}: {got} instead of {want}"

        same("transpose", torch_npu.npu_transpose(d, [1, 0]), x.t())
        same("broadcast", torch_npu.npu_broadcast(d[:1].contiguous(), (3, 6)), x[:1].expand(3, 6))
        same("slice", torch_npu.npu_slice(d, [1, 2], [2, 3]), x[1:3, 2:5])
        same("indexing", torch_npu.npu_indexing(d, [0, 1], [4, 6], [2, 3]), x[0:4:2, 1:6:3])
        same("stride copy", torch_npu.npu_stride_copy(d, (2, 2), (1, 2), 0), x.as_strided((2, 2), (1, 2), 0))
        same("confusion transpose", torch_npu.npu_confusion_transpose(d, (1, 0), (3, 8), True), x.t().reshape(3, 8))
        same("mish", torch_npu.npu_mish(d), torch.nn.functional.mish(x))
        same("pad", torch_npu.npu_pad(d, (1, 2, 0, 1)), torch.nn.functional.pad(x, (0, 1, 1, 2)))
        values, indices = torch_npu.npu_max(d, 1)
        same("max", values, x.max(1).values)
        same("max's indices", indices, x.max(1).indices)
        same("ge", torch.ge(torch.tensor(0.25), d), torch.ge(torch.tensor(0.25), x))
        whole = torch.tensor([1, -2, 3])
        same("ceil of whole numbers", torch.ceil(whole.npu()), whole)
        boxes, scores = torch.tensor([[0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30], [0, 0, 2, 2.0]]), torch.tensor([0.9, 0.8, 0.7, 0.1])
        chosen, count = torch_npu.npu_nms_v4(boxes.npu(), scores.npu(), 3, torch.tensor(0.5).npu(), torch.tensor(0.2).npu(), pad_to_max_output_size=True)
        same("boxes that do not overlap", chosen, torch.tensor([0, 2, 0]))
        same("their number", count.view(()), torch.tensor(2))
        mask = torch.rand(1, 1, 32, 32) < 0.3
        scores = torch.randn(2, 3, 32, 32).half()
        got = torch_npu.npu_scaled_masked_softmax(scores.npu(), mask.npu(), 0.5, False).cpu()
        assert torch.allclose(got.float(), (scores.float() * 0.5).masked_fill(mask, -10000.0).softmax(-1), atol=2e-3), "masked softmax"
        same("view copy", torch_npu.npu_view_copy(torch.zeros(6, 4).npu(), d.t(), True), x.t())
        print("equal")
    """).ok().says("^equal$")


def test_recurrent_networks(machine213):
    """One layer with biases goes through aclnn, everything else by type name."""
    machine213.py("""
        import copy, torch, torch_npu
        for kind in ("LSTM", "GRU"):
            for options in ({}, {"num_layers": 2}, {"bidirectional": True}, {"bias": False}, {"batch_first": True}):
                net = getattr(torch.nn, kind)(6, 5, **options)
                on_card, x = copy.deepcopy(net).npu(), torch.randn(3, 4, 6)
                a, b = x.clone().requires_grad_(), x.npu().requires_grad_()
                want, got = net(a)[0], on_card(b)[0]
                assert torch.allclose(got.cpu(), want, atol=1e-5), (kind, options)
                want.pow(2).sum().backward()
                got.pow(2).sum().backward()
                assert torch.allclose(b.grad.cpu(), a.grad, atol=1e-5), (kind, options)
                for p, q in zip(net.parameters(), on_card.parameters()):
                    assert torch.allclose(q.grad.cpu(), p.grad, atol=1e-4), (kind, options)
        print("equal")
    """).ok().says("^equal$")


def test_unknown_operator_is_named(machine213):
    machine213.py("""
        import torch, torch_npu
        try:
            torch_npu.npu_anchor_response_flags(torch.rand(2, 4).npu(), [60, 60], [2, 2], 9)
            torch.npu.synchronize()
        except RuntimeError as error:
            assert "AnchorResponseFlags" in str(error) or "Cast" in str(error), error
            print("named")
    """).ok().says("^named$")
