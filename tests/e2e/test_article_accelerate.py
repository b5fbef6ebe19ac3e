"""The Accelerate article, command by command, with its outputs."""
import re

TRAIN = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
    from accelerate import Accelerator


    def build():
        x = torch.linspace(-1.0, 1.0, 64).unsqueeze(1)
        y = 2 * x + 1 + 0.05 * torch.randn_like(x)
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = nn.Linear(1, 1)
        return loader, model, torch.optim.SGD(model.parameters(), lr=0.1)


    def main():
        accelerator = Accelerator()
        loader, model, optim = build()
        model, optim, loader = accelerator.prepare(model, optim, loader)
        loss_fn = nn.MSELoss()
        for step, (xb, yb) in enumerate(loader):
            loss = loss_fn(model(xb), yb)
            accelerator.backward(loss)
            optim.step()
            optim.zero_grad()
            if step == 2:
                break
        accelerator.print(f"device={accelerator.device.type} final_loss={loss.item():.4f}")
        weights = torch.cat([p.detach().flatten() for p in model.parameters()]).unsqueeze(0)
        everyone = accelerator.gather(weights)
        accelerator.print(f"ranks={len(everyone)} equal={bool((everyone == everyone[0]).all())}")


    if __name__ == "__main__":
        main()
"""


def test_visible_devices(machine):
    machine.run("python", "-c", "import torch, torch_npu; print('torch=', torch.__version__); print('torch_npu=', torch_npu.__version__); "
                "print('is_available:', torch.npu.is_available()); print('count:', torch.npu.device_count())").ok().says(
        r"^is_available: True$", r"^count: 2$")


def test_accelerate_env(machine):
    machine.run("accelerate", "env", env={"ASCEND_RT_VISIBLE_DEVICES": "0,1"}).ok().says(
        r"PyTorch accelerator: NPU", r"CANN version: 9\.1\.0")


def launch(machine, precision):
    path = machine.script("train_npu.py", TRAIN)
    done = machine.run("accelerate", "launch", "--num_processes", "2", "--mixed_precision", precision, path,
                       env={"ASCEND_RT_VISIBLE_DEVICES": "0,1"}).ok()
    done.says(r"^device=npu final_loss=\d+\.\d+$", r"^ranks=2 equal=True$")
    assert float(re.search(r"final_loss=([\d.]+)", done.out).group(1)) < 10, done.tail()
    assert len(re.findall("final_loss", done.out)) == 1


def test_launch_fp32(machine):
    launch(machine, "no")


def test_launch_bf16(machine):
    launch(machine, "bf16")


def test_single_card(machine):
    path = machine.script("single.py", TRAIN)
    machine.run("python", path).ok().says(r"^device=npu final_loss=\d+\.\d+$")


def test_prepare(machine):
    machine.py("""
        import torch
        from torch import nn
        from accelerate import Accelerator
        accelerator = Accelerator()
        prepared = accelerator.prepare(nn.Linear(1, 1))
        x = torch.tensor([[0.5]], device=accelerator.device)
        y = prepared(x)
        print(f'device={y.device.type}')
        print(f'shape={list(y.shape)}')
    """).ok().says(r"^device=npu$", r"^shape=\[1, 1\]$")


def test_gather_for_metrics(machine):
    path = machine.script("gather_npu.py", """
        import torch
        from accelerate import Accelerator
        accelerator = Accelerator()
        x = torch.tensor([1, 2, 3], device=accelerator.device)
        (gathered,) = accelerator.gather_for_metrics((x,))
        accelerator.print(f'world={accelerator.num_processes}')
        accelerator.print(f'device={gathered.device.type}')
        accelerator.print(f'gathered={gathered.tolist()}')
    """)
    machine.run("accelerate", "launch", "--num_processes", "2", path, env={"ASCEND_RT_VISIBLE_DEVICES": "0,1"}).ok().says(
        r"^world=2$", r"^device=npu$", r"^gathered=\[1, 2, 3, 1, 2, 3\]$")


def test_init_empty_weights(machine):
    machine.py("""
        from transformers import LlamaConfig, LlamaForCausalLM
        from accelerate import init_empty_weights
        config = LlamaConfig(vocab_size=32, hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=1,
                             max_position_embeddings=64)
        with init_empty_weights():
            model = LlamaForCausalLM(config)
        print(f'empty_model_params={sum(p.numel() for p in model.state_dict().values())}')
        print(f'device={next(model.parameters()).device}')
    """).ok().says(r"^empty_model_params=\d+$", r"^device=meta$")


def test_dispatch_over_two_cards_equals_cpu(machine):
    """The 20-layer Llama of the article over npu:0 and npu:1 gives the CPU's logits within 2e-4."""
    machine.py("""
        import gc, os, torch
        from transformers import LlamaConfig, LlamaForCausalLM
        from accelerate import init_empty_weights, load_checkpoint_and_dispatch
        torch.manual_seed(int(os.environ["ANYNPU_SEED"]))
        config = LlamaConfig(vocab_size=32000, hidden_size=512, intermediate_size=1024, num_hidden_layers=20, num_attention_heads=8,
                             max_position_embeddings=64)
        with init_empty_weights():
            model = LlamaForCausalLM(config)
        model.to_empty(device='cpu')
        with torch.no_grad():
            for p in model.parameters():
                p.data = torch.randn(p.shape, device='cpu', dtype=p.dtype) * 0.02
        model.save_pretrained('ckpt', safe_serialization=True)
        del model
        gc.collect()
        device_map = {'model.embed_tokens': 'npu:0'}
        device_map.update({f'model.layers.{i}': 'npu:0' for i in range(10)})
        device_map.update({f'model.layers.{i}': 'npu:1' for i in range(10, 20)})
        device_map.update({'model.norm': 'npu:1', 'lm_head': 'npu:1'})
        with init_empty_weights():
            skeleton = LlamaForCausalLM(config)
        loaded = load_checkpoint_and_dispatch(skeleton, checkpoint='ckpt', device_map=device_map,
                                              no_split_module_classes=['LlamaDecoderLayer'])
        print(f'first_layer_device={loaded.model.layers[0].self_attn.q_proj.weight.device}')
        print(f'last_layer_device={loaded.model.layers[-1].self_attn.q_proj.weight.device}')
        x = torch.tensor([[1, 2, 3]], device=loaded.device)
        with torch.no_grad():
            out = loaded(input_ids=x).logits
        print(f'out_device={out.device.type}')
        print(f'out_shape={list(out.shape)}')
        cpu = LlamaForCausalLM.from_pretrained('ckpt')
        with torch.no_grad():
            want = cpu(input_ids=x.cpu()).logits
        print('difference', (out.cpu() - want).abs().max().item())
        assert (out.cpu() - want).abs().max() < 2e-4
    """, timeout=400).ok().says(r"^first_layer_device=npu:0$", r"^last_layer_device=npu:1$", r"^out_device=npu$", r"^out_shape=\[1, 3, 32000\]$")
