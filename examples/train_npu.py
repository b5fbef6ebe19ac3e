"""The smallest training of the Accelerate guide: a line is learned from 64 noisy points, in three steps.

anynpu run -n 2 -- accelerate launch --num_processes 2 --mixed_precision bf16 examples/train_npu.py
"""
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def build():
    x = torch.linspace(-1.0, 1.0, 64).unsqueeze(1)
    y = 2 * x + 1 + 0.05 * torch.randn_like(x)
    model = nn.Linear(1, 1)
    return DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True), model, torch.optim.SGD(model.parameters(), lr=0.1)


def main():
    accelerator = Accelerator()
    loader, model, optimizer = build()
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    loss_fn = nn.MSELoss()
    for step, (x, y) in enumerate(loader):
        loss = loss_fn(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        if step == 2:
            break
    accelerator.print(f"device={accelerator.device.type} final_loss={loss.item():.4f}")


if __name__ == "__main__":
    main()
