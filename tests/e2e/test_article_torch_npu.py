"""The torch_npu article: its checks, and a CUDA script that only gained `transfer_to_npu`."""


def test_first_program(machine):
    machine.py("""
        import torch
        import torch_npu

        print(torch.npu.is_available())
        x = torch.randn(100, 100).npu()
        y = torch.randn(100, 100).npu()
        z = torch.matmul(x, y)
        print(z.cpu().shape)
        print(torch.npu.get_device_name(0))
        want = x.cpu().double() @ y.cpu().double()
        assert (z.cpu().double() - want).abs().max() < 1e-4
    """).ok().says(r"^True$", r"^torch\.Size\(\[100, 100\]\)$", r"^Ascend910B4$")


def test_environment_checks_of_the_article(machine):
    machine.run("bash", "-c", 'ls $ASCEND_TOOLKIT_HOME && echo "home=$ASCEND_TOOLKIT_HOME"').ok().says(r"^home=/.+", r"lib64", r"set_env\.sh")


def test_cuda_script_trains_after_transfer_to_npu(machine):
    done = machine.py("""
        import torch
        import torch_npu
        from torch_npu.contrib import transfer_to_npu

        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.randn(64, 8).to("cuda")
        y = (x.sum(1, keepdim=True) * 0.3).cuda()
        assert torch.cuda.is_available() and torch.cuda.device_count() == 2
        first = last = None
        for _ in range(30):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            first = first if first is not None else loss.item()
            last = loss.item()
        print("device", next(model.parameters()).device.type, "falls", last < 0.5 * first)
    """)
    done.ok().says(r"^device npu falls True$")


def test_printing_a_tensor(machine):
    machine.py("""
        import torch, torch_npu
        x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
        assert repr(x.npu()) == repr(x)[:-1] + ", device='npu:0')", repr(x.npu())
        for t in [torch.tensor([1.5, float('inf'), float('nan'), -2e-7]), torch.arange(2000) % 7, torch.tensor(3), torch.zeros(0, 3),
                  torch.tensor([True, False]), torch.randn(3).bfloat16(), torch.randn(3).half()]:
            a, b = repr(t), repr(t.npu())
            assert b.replace(", device='npu:0'", "").replace("\\n       ", "") == a.replace("\\n       ", ""), (a, b)
        print("same")
    """).ok().says("^same$")
