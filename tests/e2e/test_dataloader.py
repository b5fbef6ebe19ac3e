"""DataLoader workers beside a card: fork, spawn and forkserver, pinned memory, non_blocking copies."""
import pytest


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_training_with_workers(machine213, method):
    path = machine213.script("loader.py", f"""
        import torch, torch_npu
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        def main():
            torch.manual_seed(1)
            x = torch.randn(256, 8)
            y = x.sum(1, keepdim=True)
            loader = DataLoader(TensorDataset(x, y), batch_size=32, num_workers=2, prefetch_factor=4, pin_memory=True, persistent_workers=True,
                                multiprocessing_context={method!r})
            model = nn.Linear(8, 1).npu()
            twin = nn.Linear(8, 1)
            twin.load_state_dict({{k: v.cpu() for k, v in model.state_dict().items()}})
            opt, opt2 = (torch.optim.SGD(m.parameters(), lr=0.05) for m in (model, twin))
            for epoch in range(2):
                for a, b in loader:
                    assert a.is_pinned()
                    for m, o, dev in ((model, opt, "npu"), (twin, opt2, "cpu")):
                        o.zero_grad()
                        nn.functional.mse_loss(m(a.to(dev, non_blocking=True)), b.to(dev, non_blocking=True)).backward()
                        o.step()
            torch.testing.assert_close(model.weight.cpu(), twin.weight, rtol=1e-4, atol=1e-5)
            print("trained")

        if __name__ == "__main__":
            main()
    """)
    machine213.run("python", path, timeout=300).ok().says("^trained$")


CHILD = """
    import multiprocessing, os, sys
    import torch, torch_npu

    def child(*words):
        try:
            torch.ones(2, device="npu").sum().item()
        except RuntimeError as e:
            os._exit(0 if all(word in str(e) for word in words) else print(str(e), flush=True) or 3)
        os._exit(4)

    torch.ones(2, device="npu").sum().item()
    {start}
    print("told", torch.ones(3, device="npu").sum().item())
"""


def test_child_of_multiprocessing_gets_torch_npus_own_error(machine213):
    machine213.py(CHILD.format(start="""
    p = multiprocessing.get_context("fork").Process(target=child, args=("Cannot re-initialize NPU in forked subprocess",))
    p.start()
    p.join()
    assert p.exitcode == 0, p.exitcode
    """.strip())).ok().says(r"^told 3\.0$")


def test_child_of_a_bare_fork_is_told_by_us(machine213):
    """torch_npu learns of a fork only through multiprocessing; below it our text names the fork: that of memory where each tensor is an
    allocation (--strict), that of what the parent holds otherwise. The parent goes on."""
    machine213.py(CHILD.format(start="""
    pid = os.fork()
    if pid == 0:
        child("AnyNPU", "fork")
    assert os.waitpid(pid, 0)[1] == 0
    """.strip())).ok().says(r"^told 3\.0$")
