"""Trains a mixture of experts for many steps under one plan for two shapes, with autocast, gradient accumulation, and
an evaluation every 50 steps. Some batches are padded. Losses and final parameters must be bit-identical to those of a
run without a plan, and no step may leak memory. Runs 100 steps, or 1,000 steps if REMATCH_SEEDS is at least 3000, as in
scripts/test --deep."""

import contextlib
import gc
import os
import unittest
import warnings

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import torch  # noqa: E402

NUM_STEPS = 1000 if int(os.environ.get("REMATCH_SEEDS", "0")) >= 3000 else 100
STEPS_PER_EVALUATION = 50
MICRO_BATCHES = 2
BATCH, TOKENS, WIDTH, EXPERTS, LAYERS, VOCABULARY = 4, 12, 16, 4, 3, 32


class Experts(torch.nn.Module):
    """Experts of a layer. Each token goes to one expert. An expert without tokens runs no ops."""

    def __init__(self):
        super().__init__()
        self.router = torch.nn.Linear(WIDTH, EXPERTS)
        self.experts = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.Linear(WIDTH, 2 * WIDTH), torch.nn.SiLU(), torch.nn.Linear(2 * WIDTH, WIDTH))
            for _ in range(EXPERTS))

    def forward(self, x):
        tokens = x.reshape(-1, WIDTH)
        weight, chosen = self.router(tokens).softmax(-1).max(-1)
        result = torch.zeros_like(tokens)
        for index, expert in enumerate(self.experts):
            rows = (chosen == index).nonzero().squeeze(-1)
            if len(rows) > 0:
                result = result.index_add(0, rows, (expert(tokens[rows]) * weight[rows, None]).to(result.dtype))
        return result.reshape(x.shape)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.query, self.out = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.experts = Experts()
        self.drop = torch.nn.Dropout(0.1)

    def forward(self, x, padding):
        y = self.norm(x)
        scores = self.query(y) @ y.transpose(-1, -2)
        if padding is not None:
            scores = scores.masked_fill(padding[:, None, :], -1e4)
        x = x + self.drop(self.out(scores.softmax(-1).to(y.dtype) @ y))
        return x + self.experts(x)


class Mixture(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = torch.nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids, padding):
        with torch.autocast("cpu", torch.bfloat16):
            x = self.embed(ids)
            for layer in self.layers:
                x = layer(x, padding)
            logits = self.head(x)
        ignored = torch.full_like(ids, -100) if padding is None else ids.masked_fill(padding, -100)
        return torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), ids.flatten() if padding is None
                                                 else ignored.flatten())


def batch_of(number):
    """Returns a batch. About every third batch is padded."""
    generator = torch.Generator().manual_seed(number)
    ids = torch.randint(0, VOCABULARY, (BATCH, TOKENS), generator=generator)
    lengths = torch.randint(3, TOKENS, (BATCH, 1), generator=generator)
    return ids, torch.arange(TOKENS) >= lengths if number % 3 == 1 else None


def made():
    torch.manual_seed(0)
    return Mixture()


class Run:
    """A training run that the caller advances by single steps."""

    def __init__(self, checkpoint=None):
        self.model = made()
        self.checkpoint = checkpoint
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.generator_state = torch.get_rng_state()
        if checkpoint is not None:
            rematch.scopes(self.model, checkpoint)

    def recording(self):
        return contextlib.nullcontext() if self.checkpoint is None else rematch.recording(self.checkpoint)

    def step(self, number):
        """Runs a step. Returns its losses, and the losses of the evaluation that follows, if any."""
        torch.set_rng_state(self.generator_state)
        losses = []
        for micro_batch in range(MICRO_BATCHES):
            with self.recording():
                loss = self.model(*batch_of(number * MICRO_BATCHES + micro_batch)) / MICRO_BATCHES
            loss.backward()
            losses.append(loss.detach())
        self.optimizer.step()
        self.optimizer.zero_grad()
        if number % STEPS_PER_EVALUATION == STEPS_PER_EVALUATION - 1:
            self.model.eval()
            with torch.no_grad(), self.recording():
                losses.append(self.model(*batch_of(-number)))
            self.model.train()
        self.generator_state = torch.get_rng_state()
        return losses


class SoakTest(unittest.TestCase):
    def test_bits_and_bytes_of_a_long_run(self):
        model = made()
        traces = rematch.trace(model, [lambda: model(*batch_of(0)), lambda: model(*batch_of(1))])
        checkpoint = rematch.Checkpoint(rematch.resolve(traces, "save_mm"))
        plain, checkpointed = Run(), Run(checkpoint)
        held = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ignores warnings, because the routes of tokens decide which ops run
            for number in range(NUM_STEPS):
                expected, found = plain.step(number), checkpointed.step(number)
                self.assertTrue(all(map(torch.equal, expected, found)), f"a loss of step {number}")
                del expected, found
                gc.collect(0)
                held.append(rematch.allocated_bytes())
        for name, parameter in plain.model.named_parameters():
            self.assertTrue(torch.equal(parameter, checkpointed.model.get_parameter(name)), name)
        self.assertEqual(set(held[1:]), {held[1]})
        rows = checkpoint.report()
        self.assertEqual(sum(row["passes"] for row in rows), NUM_STEPS * MICRO_BATCHES * LAYERS)
        self.assertEqual({row["shape"] for row in rows}, {0, 1})


if __name__ == "__main__":
    unittest.main()
