"""A Llama built from torch's own modules, for scripts/compare_with_pytorch --package."""

import torch

# dim, layers, batch, tokens, dropout. The ops of "dispatch-bound" are so small that dispatch takes most of the time.
MODELS = {"dispatch-bound": (16, 8, 1, 4, 0), "dim 128": (128, 4, 4, 128, 0), "dropout": (16, 8, 1, 4, 0.1)}
NUM_HEADS = 2
VOCABULARY = 64


class Attention(torch.nn.Module):
    def __init__(self, dim, tokens):
        super().__init__()
        self.query, self.key, self.value, self.output = (torch.nn.Linear(dim, dim, bias=False) for _ in range(4))
        angle = torch.outer(torch.arange(tokens), 1e4 ** -torch.arange(0, 1, 2 * NUM_HEADS / dim)).repeat(1, 2)
        self.register_buffer("cosine", angle.cos())
        self.register_buffer("sine", angle.sin())

    def rotated(self, x_BHTD):
        low, high = x_BHTD.chunk(2, -1)
        return x_BHTD * self.cosine + torch.cat((-high, low), -1) * self.sine

    def mix(self, q_BHTD, k_BHTD, v_BHTD):
        return torch.nn.functional.scaled_dot_product_attention(q_BHTD, k_BHTD, v_BHTD, is_causal=True)

    def forward(self, x_BTC):
        q_BHTD, k_BHTD, v_BHTD = (project(x_BTC).unflatten(-1, (NUM_HEADS, -1)).transpose(1, 2)
                                  for project in (self.query, self.key, self.value))
        mixed_BHTD = self.mix(self.rotated(q_BHTD), self.rotated(k_BHTD), v_BHTD)
        return self.output(mixed_BHTD.transpose(1, 2).flatten(2))


class FeedForward(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gate, self.up = (torch.nn.Linear(dim, 2 * dim, bias=False) for _ in range(2))
        self.down = torch.nn.Linear(2 * dim, dim, bias=False)

    def forward(self, x_BTC):
        return self.down(torch.nn.functional.silu(self.gate(x_BTC)) * self.up(x_BTC))


class Layer(torch.nn.Module):
    def __init__(self, dim, tokens, dropout):
        super().__init__()
        self.attention_norm, self.feed_forward_norm = torch.nn.RMSNorm(dim), torch.nn.RMSNorm(dim)
        self.attention, self.feed_forward = Attention(dim, tokens), FeedForward(dim)
        self.dropout = torch.nn.Dropout(dropout) if dropout else torch.nn.Identity()

    def forward(self, x_BTC):
        x_BTC = x_BTC + self.dropout(self.attention(self.attention_norm(x_BTC)))
        return x_BTC + self.dropout(self.feed_forward(self.feed_forward_norm(x_BTC)))


class Llama(torch.nn.Module):
    def __init__(self, dim, num_layers, tokens, dropout):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, dim)
        self.layers = torch.nn.ModuleList(Layer(dim, tokens, dropout) for _ in range(num_layers))
        self.norm, self.head = torch.nn.RMSNorm(dim), torch.nn.Linear(dim, VOCABULARY, bias=False)

    def forward(self, ids_BT):
        x_BTC = self.embedding(ids_BT)
        for layer in self.layers:
            x_BTC = layer(x_BTC)
        return torch.nn.functional.cross_entropy(self.head(self.norm(x_BTC)).flatten(0, 1), ids_BT.flatten())


def make(name):
    """Returns the model and a batch of token ids, the same in every process."""
    dim, num_layers, batch, tokens, dropout = MODELS[name]
    torch.manual_seed(0)
    return Llama(dim, num_layers, tokens, dropout), torch.randint(0, VOCABULARY, (batch, tokens))
