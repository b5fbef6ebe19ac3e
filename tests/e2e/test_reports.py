"""Public bug reports of this field as tests: the right value, or the right refusal (numbers are those of the case list)."""
import pytest


def test_r022_eight_spawned_children_on_eight_chips(machine213):
    path = machine213.script("children.py", """
        import torch.multiprocessing as mp

        def child(rank):
            import torch, torch_npu
            torch.npu.set_device(rank)
            assert torch.ones(4, device=f"npu:{rank}").sum().item() == 4.0

        if __name__ == "__main__":
            mp.spawn(child, nprocs=8)
            print("all 4.0")
    """)
    machine213.run("python", path, cards=8, timeout=400).ok().says(r"^all 4\.0$")


def test_r023_shift_by_a_device_scalar(machine):
    machine.py("""
        import torch, torch_npu
        x = torch.tensor([255, 16], dtype=torch.int32).npu()
        print((x >> torch.tensor(4).npu()).tolist(), (x << torch.tensor(1).npu()).tolist())
    """).ok().says(r"^\[15, 1\] \[510, 32\]$")


def test_r031_grad_scaler_halves_and_skips(machine):
    machine.py("""
        import torch, torch_npu
        model = torch.nn.Linear(4, 4).npu()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("npu", init_scale=65536.0)
        before = model.weight.detach().clone()
        loss = model(torch.ones(2, 4, device="npu")).sum() * float("inf")
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        assert torch.equal(model.weight, before)
        print("scale", scaler.get_scale())
        opt.zero_grad()
        scaler.scale(model(torch.ones(2, 4, device="npu")).sum()).backward()
        scaler.step(opt)
        scaler.update()
        assert not torch.equal(model.weight, before)
    """).ok().says(r"^scale 32768\.0$")


def test_r037_expandable_segments(machine):
    machine.py("""
        import random, os, torch, torch_npu
        rng = random.Random(int(os.environ["ANYNPU_SEED"]))
        kept = []
        for k in range(60):
            n = rng.randint(1, 3 << 20)
            kept.append((k, n, torch.full((n,), float(k), device="npu")))
            if rng.random() < 0.4:
                kept.pop(rng.randrange(len(kept)))
            if rng.random() < 0.1:
                torch.npu.empty_cache()
        assert all(t.min().item() == k == t.max().item() for k, n, t in kept)
        print("whole", len(kept) > 0)
    """, env={"PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True"}).ok().says("^whole True$")


def test_r043_sdpa_masks(machine):
    machine.py("""
        import os, torch, torch_npu
        from torch.nn import functional as F
        torch.manual_seed(int(os.environ["ANYNPU_SEED"]))
        for shape in [(2, 4, 33, 16), (1, 2, 64, 64), (3, 1, 5, 8)]:
            q, k, v = (torch.randn(shape) for _ in range(3))
            mask = torch.rand(shape[0], 1, shape[2], shape[2]) > 0.4
            mask[..., 0] = True
            for m, causal in ((None, False), (None, True), (mask, False), (torch.randn(mask.shape), False)):
                leaves = [[t.clone().to(d).requires_grad_() for t in (q, k, v)] for d in ("cpu", "npu")]
                outs = [F.scaled_dot_product_attention(*l, attn_mask=None if m is None else m.to(l[0].device), is_causal=causal) for l in leaves]
                for o in outs:
                    (o * torch.arange(o.numel(), device=o.device).reshape(o.shape).sin()).sum().backward()
                torch.testing.assert_close(outs[1].cpu(), outs[0], rtol=2e-5, atol=2e-5)
                for a, b in zip(*leaves):
                    torch.testing.assert_close(b.grad.cpu(), a.grad, rtol=1e-4, atol=1e-4)
        print("equal")
    """).ok().says("^equal$")


def test_r046_conv3d(machine):
    machine.py("""
        import torch, torch_npu
        from torch.nn import functional as F
        x, w = torch.randn(1, 3, 8, 8, 8), torch.randn(4, 3, 3, 3, 3)
        y = F.conv3d(x.half().npu(), w.half().npu()).float().cpu()
        torch.testing.assert_close(y, F.conv3d(x.half().float(), w.half().float()), rtol=1e-2, atol=1e-2)
        print("equal")
    """).ok().says("^equal$")


def test_r076_copy_between_cards(machine):
    machine.py("""
        import torch, torch_npu
        x = torch.randn(1000, 33)
        y = x.npu(0).to("npu:1")
        assert y.device.index == 1 and torch.equal(y.cpu(), x)
        turned = x.npu(0).t().to("npu:1")
        assert torch.equal(turned.cpu(), x.t())
        gaps = torch.zeros(33, 2000, device="npu:1")[:, ::2]
        gaps.copy_(x.npu(0).t())
        assert torch.equal(gaps.cpu(), x.t())
        print("equal")
    """).ok().says("^equal$")


@pytest.mark.parametrize("soc,name,gib", [("910B4", "Ascend910B4", 32), ("910B1", "Ascend910B1", 64), ("910B4-1", "Ascend910B4-1", 64), ("310P3", "Ascend310P3", None)])
def test_r097_chip_type_by_profile(machine213, soc, name, gib):
    done = machine213.py("""
        import torch, torch_npu
        print("name", torch.npu.get_device_name(0), torch.npu.mem_get_info()[1] >> 30)
    """, options=("--soc", soc)).ok()
    done.says(rf"^name {name} {gib if gib else ''}")


def test_r011_plain_cpp_program(machine213):
    """A C++ program without Python: init, device, memory, copy, end."""
    source = machine213.script("plain.cc", """
        #include <acl/acl.h>
        #include <cstdio>
        #include <vector>
        int main() {
          if (aclInit(nullptr) != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS) return 1;
          std::vector<float> a(1000), b(1000);
          for (int i = 0; i < 1000; ++i) a[i] = i * 0.5f;
          void* d = nullptr;
          if (aclrtMalloc(&d, 4000, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) return 2;
          if (aclrtMemcpy(d, 4000, a.data(), 4000, ACL_MEMCPY_HOST_TO_DEVICE) != ACL_SUCCESS) return 3;
          if (aclrtMemcpy(b.data(), 4000, d, 4000, ACL_MEMCPY_DEVICE_TO_HOST) != ACL_SUCCESS) return 4;
          if (a != b) return 5;
          if (aclrtMemcpy(b.data(), 10, d, 4000, ACL_MEMCPY_DEVICE_TO_HOST) != 107000) return 6;
          std::puts(aclGetRecentErrMsg());
          aclrtFree(d);
          aclrtResetDevice(0);
          aclFinalize();
          std::puts("fine");
        }
    """)
    machine213.run("bash", "-c", f"g++ -std=c++17 -Wall -Werror -I$ASCEND_HOME_PATH/include {source} -L$ASCEND_HOME_PATH/lib64 -lascendcl -o plain && ./plain").ok().says(
        "^fine$", "destMax")


def test_swapped_memory_is_memory_of_the_host_that_operators_use(machine):
    machine.py("""
        import os, torch, torch_npu
        torch.manual_seed(int(os.environ["ANYNPU_SEED"]))
        torch.npu.set_device(0)
        before = torch.npu.memory_allocated()
        swapped = torch_npu.empty_with_swapped_memory([257, 33], dtype=torch.float32, device=torch.device("npu:0"))
        assert torch.npu.memory_allocated() == before, "the card holds it"
        x, y = torch.randn(257, 33), torch.randn(257, 33)
        swapped.copy_(x)
        assert torch.equal(swapped.cpu(), x)
        swapped.mul_(2.0)
        swapped += y.npu()
        assert torch.equal(swapped.cpu(), x * 2.0 + y)
        assert torch.equal((swapped > 0).cpu(), x * 2.0 + y > 0)
        swapped.fill_(0)
        weight = x.npu().requires_grad_()
        opt = torch.optim.SGD([weight], lr=0.5, momentum=0.9)
        opt.state[weight]["momentum_buffer"] = swapped
        judge = x.clone().requires_grad_()
        other = torch.optim.SGD([judge], lr=0.5, momentum=0.9)
        for _ in range(3):
            for w, o in ((weight, opt), (judge, other)):
                o.zero_grad()
                (w * w).sum().backward()
                o.step()
        assert torch.allclose(weight.detach().cpu(), judge.detach(), rtol=1e-6, atol=1e-6)
        assert torch.allclose(swapped.cpu(), other.state[judge]["momentum_buffer"], rtol=1e-6, atol=1e-6)
        for _ in range(20):  # given back and taken again
            block = torch_npu.empty_with_swapped_memory([1 << 20], dtype=torch.float16, device="npu:0")
            block.fill_(1.5)
            assert block.sum(dtype=torch.float32).item() == 1.5 * (1 << 20)
            del block
        print("swapped")
    """).ok().says(r"^swapped$")
