"""Trains your own transformer within a memory budget. All results have the same bits as without checkpointing."""

import rematch

rematch.count_memory()  # only for the table that check() prints; leave this out when you train

import torch  # noqa: E402 - bytes are counted only if the import follows count_memory()
from torch import nn  # noqa: E402


class Layer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, num_heads=4, batch_first=True)
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.feed_forward(x)


class Model(nn.Module):
    """Keeps its identical layers in a list. rematch requires such a list and finds it automatically."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(width) for _ in range(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


torch.manual_seed(0)
model = Model(128)
batch = torch.randn(4, 128, 128)


def step() -> torch.Tensor:
    """Returns the loss of one step. loss_of() must use the same batch at each call; otherwise bits differ."""
    return model(batch).square().mean()


# Do this once: trace a step, measure its ops, search for plans, and take the fastest plan that
# fits. The budget counts parameters, gradients, the optimizer's state and activations.
checkpoint = rematch.auto(model, step, budget="30MiB")
print(rematch.check(model, step, checkpoint))

rematch.scopes(model, checkpoint)  # call once; tells the engine where each layer begins and ends
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for index in range(3):
    with rematch.recording(checkpoint):  # every forward pass needs this context
        loss = step()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {index}: loss {loss.item():.4f}")
