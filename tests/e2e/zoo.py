"""Tiny random models of transformers, and ResNet-50 as torchvision builds it: what test_transformers.py compares.

Every comparison has three runs from one state: `truth` in double on the CPU, `cpu` in float32, and `npu`. The CPU's own distance
from the truth is the unit in which ours is measured.
"""
from __future__ import annotations

import copy

import torch
from torch import nn
from torch.nn import functional as F

VOCAB = 96


def _bert(tf, rand):
    config = tf.BertConfig(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                           max_position_embeddings=128, hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    tokens = rand.tokens(4, 20)
    lengths = torch.randint(8, 21, (4, 1), generator=rand.g)
    mask = (torch.arange(20)[None] < lengths).long()
    return tf.BertForMaskedLM(config), dict(input_ids=tokens, attention_mask=mask, labels=rand.tokens(4, 20).where(mask.bool(), torch.tensor(-100)))


def _gpt2(tf, rand):
    config = tf.GPT2Config(vocab_size=VOCAB, n_positions=128, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
                           bos_token_id=0, eos_token_id=0)
    tokens = rand.tokens(4, 24)
    return tf.GPT2LMHeadModel(config), dict(input_ids=tokens, labels=tokens)


def _llama(tf, rand):
    config = tf.LlamaConfig(vocab_size=VOCAB, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                            num_key_value_heads=2, max_position_embeddings=128)
    tokens = rand.tokens(4, 24)
    return tf.LlamaForCausalLM(config), dict(input_ids=tokens, labels=tokens)


def _t5(tf, rand, act="gated-gelu"):
    config = tf.T5Config(vocab_size=VOCAB, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=0, feed_forward_proj=act,
                         decoder_start_token_id=0)
    return tf.T5ForConditionalGeneration(config), dict(input_ids=rand.tokens(4, 18), labels=rand.tokens(4, 12))


def _vit(tf, rand):
    config = tf.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8,
                          hidden_dropout_prob=0, attention_probs_dropout_prob=0, num_labels=10)
    return tf.ViTForImageClassification(config), dict(pixel_values=torch.randn(4, 3, 32, 32, generator=rand.g),
                                                      labels=torch.randint(0, 10, (4,), generator=rand.g))


def _whisper(tf, rand):
    config = tf.WhisperConfig(vocab_size=VOCAB, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                              decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, num_mel_bins=16, max_source_positions=32,
                              max_target_positions=96, dropout=0, pad_token_id=1, bos_token_id=2, eos_token_id=2, decoder_start_token_id=3,
                              suppress_tokens=None, begin_suppress_tokens=None)
    return tf.WhisperForConditionalGeneration(config), dict(input_features=torch.randn(4, 16, 64, generator=rand.g), labels=rand.tokens(4, 12))


MODELS = {"bert": _bert, "gpt2": _gpt2, "llama": _llama, "t5": _t5, "vit": _vit, "whisper": _whisper,
          "t5-relu": lambda tf, rand: _t5(tf, rand, "relu")}
# Two that write: BERT as a decoder stands for encoders, which have no loop of their own.
WRITERS = {"gpt2", "llama", "t5", "t5-relu", "whisper", "bert"}


class Rand:
    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)

    def tokens(self, *shape):
        return torch.randint(4, VOCAB, shape, generator=self.g)


def build(name: str, seed: int):
    import transformers as tf
    torch.manual_seed(seed)
    model, batch = MODELS[name](tf, Rand(seed))
    # Trained models do not start at zero: biases and scales take part. T5 has no scale before its softmax: wide weights make it so
    # sharp that one rounding decides.
    with torch.no_grad():
        for p in model.parameters():
            p.add_((0.05 if name.startswith("t5") else 0.15) * torch.randn(p.shape))
    return model.train(), batch


def moved(batch: dict, device: str, dtype: torch.dtype) -> dict:
    return {k: v.to(device=device, dtype=dtype if v.is_floating_point() else v.dtype) for k, v in batch.items()}


def three(model: nn.Module):
    """The same model three times: name, model, device, type."""
    yield "truth", copy.deepcopy(model).double(), "cpu", torch.float64
    yield "cpu", copy.deepcopy(model), "cpu", torch.float32
    yield "npu", copy.deepcopy(model).to("npu:0"), "npu:0", torch.float32


def host(t: torch.Tensor) -> torch.Tensor:
    return t.detach().cpu().double()


def apart(results: dict) -> dict[str, list[float]]:
    """Of each named tensor: its length in the true run, the CPU's distance from it (that of the furthest run), ours."""
    others = [r for run, r in results.items() if run not in ("truth", "npu")]
    return {name: [t.norm().item(), max((r[name] - t).norm().item() for r in others), (results["npu"][name] - t).norm().item()]
            for name, t in results["truth"].items()}


def nearby(model: nn.Module, count: int):
    """The true run with parameters that are off by a rounding of float32. Where one rounding grows to be all of the error, the CPU's
    single run may be near the truth by luck; several are not."""
    for i in range(count):
        m = copy.deepcopy(model).double()
        with torch.no_grad():
            for p in m.parameters():
                p.mul_(1 + 2.0**-23 * (2 * torch.rand_like(p) - 1))
        yield f"near {i}", m, "cpu", torch.float64


def once(model, batch, near: int = 3) -> dict:
    """Forward and backward: loss, outputs and all gradients of the three runs."""
    results = {}
    for run, m, device, dtype in (*three(model), *nearby(model, near)):
        out = m(**moved(batch, device, dtype))
        out.loss.backward()
        results[run] = {"loss": host(out.loss), "logits": host(out.logits)} | {f"d {k}": host(p.grad) for k, p in m.named_parameters()
                                                                                if p.grad is not None}
    return apart(results)


def adamw(model):
    # The first step of Adam is the sign of each gradient, and a rounding turns the sign of one that is nearly zero, on the CPU as on
    # ours. An epsilon far above such gradients makes a small difference of them a small step.
    return torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-4)


def train(model, batch, steps: int = 20) -> dict[str, list[float]]:
    losses = {}
    for run, m, device, dtype in three(model):
        optimizer, inputs = adamw(m), moved(batch, device, dtype)
        losses[run] = []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = m(**inputs).loss
            loss.backward()
            optimizer.step()
            losses[run].append(loss.item())
    return losses


def walk(model, batch, steps: int = 20) -> list[dict[str, list[float]]]:
    """As `train`, but each step is done from the true run's parameters and moments: of the loss, the gradient and the step of
    AdamW the length, the CPU's distance and ours. For models in which a rounding grows from step to step."""
    runs = [(run, m, adamw(m), moved(batch, device, dtype)) for run, m, device, dtype in three(model)]
    _, true_model, true_optimizer, _ = runs[0]
    gone = []
    for _ in range(steps):
        for _, m, optimizer, _ in runs[1:]:
            m.load_state_dict(true_model.state_dict())
            optimizer.load_state_dict(copy.deepcopy(true_optimizer.state_dict()))
        results = {}
        for run, m, optimizer, inputs in runs:
            before = everything(m.parameters())
            optimizer.zero_grad()
            loss = m(**inputs).loss
            loss.backward()
            optimizer.step()
            results[run] = {"loss": host(loss), "gradient": everything(p.grad for p in m.parameters()), "step": everything(m.parameters()) - before}
        gone.append(apart(results))
    return gone


def everything(tensors) -> torch.Tensor:
    return torch.cat([host(t).flatten() for t in tensors])


def write(name: str, model, batch, seed: int, count: int = 64) -> list:
    """Greedy tokens of the CPU and of ours, and where a sequence parts from the CPU's, the CPU's two best logits there."""
    import transformers as tf
    if name == "bert":
        torch.manual_seed(seed)
        config = copy.deepcopy(model.config)
        config.is_decoder = True
        model = tf.BertLMHeadModel(config)
    given = {k: v for k, v in batch.items() if k in ("input_ids", "input_features")}
    model = model.eval()
    found = {}
    for device in ("cpu", "npu:0"):
        with torch.no_grad():
            out = copy.deepcopy(model).to(device).generate(
                **moved(given, device, torch.float32), do_sample=False, num_beams=1, min_new_tokens=count, max_new_tokens=count,
                return_dict_in_generate=True, output_logits=True)
        found[device] = out.sequences.cpu()[:, -count:], torch.stack([s.float().cpu() for s in out.logits], 1)
    (want, logits), (got, _) = found["cpu"], found["npu:0"]
    parts = []
    for row in range(want.shape[0]):
        differ = (want[row] != got[row]).nonzero().flatten().tolist()
        if differ:
            best = logits[row, differ[0]].topk(2).values
            parts.append([row, differ[0], (best[0] - best[1]).item()])
    return [list(got.shape), want.unique().numel(), parts]


class Bottleneck(nn.Module):
    def __init__(self, inside, width, stride, act):
        super().__init__()
        self.act = act
        out = 4 * width
        self.c1, self.b1 = nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width)
        self.c2, self.b2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.c3, self.b3 = nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out)
        self.down = nn.Sequential() if stride == 1 and inside == out else nn.Sequential(nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        h = self.act(self.b1(self.c1(x)))
        h = self.act(self.b2(self.c2(h)))
        return self.act(self.b3(self.c3(h)) + self.down(x))


class ResNet50(nn.Module):
    """The 50-layer network of torchvision: 3, 4, 6 and 3 bottlenecks. `smooth` has SiLU and average pooling instead of kinks."""

    def __init__(self, smooth: bool):
        super().__init__()
        act = F.silu if smooth else F.relu
        self.act = act
        self.stem, self.norm = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        self.pool = (nn.AvgPool2d if smooth else nn.MaxPool2d)(3, 2, 1)
        blocks, inside = [], 64
        for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for i in range(count):
                blocks.append(Bottleneck(inside, width, stride if i == 0 else 1, act))
                inside = 4 * width
        self.body, self.fc = nn.Sequential(*blocks), nn.Linear(2048, 1000)

    def forward(self, images, labels):
        h = self.body(self.pool(self.act(self.norm(self.stem(images)))))
        logits = self.fc(F.adaptive_avg_pool2d(h, 1).flatten(1))
        return Out(F.cross_entropy(logits, labels), logits)


class Out:
    def __init__(self, loss, logits):
        self.loss, self.logits = loss, logits


def resnet50(seed: int, smooth: bool):
    torch.manual_seed(seed)
    g = torch.Generator().manual_seed(seed)
    model = ResNet50(smooth).train()
    for m in model.modules():
        if isinstance(m, nn.Conv2d):
            nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
    return model, dict(images=torch.randn(4, 3, 96, 96, generator=g), labels=torch.randint(0, 1000, (4,), generator=g))
