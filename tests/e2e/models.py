"""Three small models that the training tests and the benchmark share: GPT-like, ResNet-like, MLP."""
from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.n1, self.n2, self.heads = nn.LayerNorm(dim), nn.LayerNorm(dim), heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.qkv(self.n1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c)
        x = x + self.proj(y)
        return x + self.mlp(self.n2(x))


class GPT(nn.Module):
    """Decoder-only transformer; forward gives the mean cross entropy of predicting the next token."""

    def __init__(self, vocab=512, dim=128, heads=4, layers=2, length=64):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(length, dim)
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab, bias=False)

    def forward(self, tokens):
        x, y = tokens[:, :-1], tokens[:, 1:]
        h = self.tok(x) + self.pos(torch.arange(x.shape[1], device=x.device))
        return F.cross_entropy(self.head(self.norm(self.blocks(h))).flatten(0, 1), y.flatten())

    @staticmethod
    def batch(seed, n=8, vocab=512, length=64):
        return (torch.randint(0, vocab, (n, length + 1), generator=torch.Generator().manual_seed(seed)),)


class Residual(nn.Module):
    def __init__(self, i, o, stride, act=F.relu):
        super().__init__()
        self.act = act
        self.c1, self.b1 = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o)
        self.c2, self.b2 = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
        self.short = nn.Sequential() if i == o and stride == 1 else nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        return self.act(self.b2(self.c2(self.act(self.b1(self.c1(x))))) + self.short(x))


class ResNet(nn.Module):
    """Small residual network with batch norm, max pooling and global average pooling.

    `smooth`: SiLU and average pooling in place of ReLU and max pooling, whose gradient jumps where two roundings fall on
    different sides of a kink."""

    def __init__(self, width=16, classes=10, smooth=False):
        super().__init__()
        act, pool = (nn.SiLU, nn.AvgPool2d) if smooth else (nn.ReLU, nn.MaxPool2d)
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), act(), pool(2))
        self.body = nn.Sequential(*[Residual(i, o, stride, F.silu if smooth else F.relu)
                                    for i, o, stride in ((width, width, 1), (width, 2 * width, 2), (2 * width, 4 * width, 2))])
        self.fc = nn.Linear(4 * width, classes)

    def forward(self, x, y):
        h = F.adaptive_avg_pool2d(self.body(self.stem(x)), 1).flatten(1)
        return F.cross_entropy(self.fc(h), y)

    @staticmethod
    def batch(seed, n=8, size=32):
        g = torch.Generator().manual_seed(seed)
        return torch.randn(n, 3, size, size, generator=g), torch.randint(0, 10, (n,), generator=g)


class MLP(nn.Module):
    def __init__(self, inside=64, hidden=128):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inside, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, x, y):
        return F.mse_loss(self.net(x), y)

    @staticmethod
    def batch(seed, n=32, inside=64):
        g = torch.Generator().manual_seed(seed)
        x = torch.randn(n, inside, generator=g)
        return x, x.sum(1, keepdim=True).sin()


def optimizer(model: nn.Module):
    if isinstance(model, ResNet):
        return torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
    return torch.optim.AdamW(model.parameters(), lr=1e-3)


class SmoothResNet(ResNet):
    def __init__(self):
        super().__init__(smooth=True)


MODELS = {"gpt": GPT, "resnet": ResNet, "smooth-resnet": SmoothResNet, "mlp": MLP}


def follow(name: str, device: str, steps: int, seed: int, batches: int = 4) -> list[dict[str, float]]:
    """Each step of a run in double on the CPU, done again in float32 on `device` from the same state: the distances of the
    loss and of the whole gradient (as a share of its length) from the double ones."""
    torch.manual_seed(seed)
    truth = MODELS[name]().double()
    model = MODELS[name]().to(device)
    opt = optimizer(truth)
    data = [MODELS[name].batch(seed + k) for k in range(batches)]
    gone = []
    for step in range(steps):
        model.load_state_dict(truth.state_dict())
        double = [t.double() if t.is_floating_point() else t for t in data[step % batches]]
        opt.zero_grad(), model.zero_grad()
        want, got = truth(*double), model(*(t.to(device) for t in data[step % batches]))
        want.backward(), got.backward()
        right = torch.cat([p.grad.flatten() for p in truth.parameters()])
        ours = torch.cat([p.grad.flatten().cpu().double() for p in model.parameters()])
        gone.append(dict(loss=abs(got.item() - want.item()), of=abs(want.item()), gradient=((ours - right).norm() / right.norm()).item()))
        opt.step()
    return gone


def train(name: str, device: str, steps: int, seed: int, dtype=torch.float32, autocast: bool = False, batches: int = 4) -> list[float]:
    """Losses of `steps` steps from one initial state made on the CPU; a few batches are used in turn."""
    torch.manual_seed(seed)
    model = MODELS[name]().to(device=device, dtype=dtype)
    opt = optimizer(model)
    data = [tuple(t.to(device=device, dtype=dtype if t.is_floating_point() else t.dtype) for t in MODELS[name].batch(seed + k))
            for k in range(batches)]
    losses = []
    for step in range(steps):
        opt.zero_grad()
        with torch.autocast(device_type=device.split(":")[0], dtype=torch.bfloat16, enabled=autocast):
            loss = model(*data[step % batches])
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses
