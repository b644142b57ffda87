"""`python -m rematch.selftest` traces a small model, and runs plans under every schedule. Checks that results are
bit-identical to those without a plan, and that op counts and peaks are as predicted. Prints a line for each run. The
exit code is 0 if all runs pass."""

from __future__ import annotations

import sys

import rematch

rematch.count_memory()  # replaces allocators, so it must run before the first tensor exists

import torch  # noqa: E402

POLICIES = ("full", "save_mm", "nth_first(2)")
SCHEDULES = ("whole_region", "on_demand")


class Layer(torch.nn.Module):
    """A pre-norm feed-forward layer with dropout."""

    def __init__(self, dim: int):
        super().__init__()
        self.norm = torch.nn.LayerNorm(dim)
        self.feed_forward = torch.nn.Sequential(torch.nn.Linear(dim, 4 * dim), torch.nn.GELU(),
                                                torch.nn.Dropout(0.1), torch.nn.Linear(4 * dim, dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.feed_forward(self.norm(x))


class Model(torch.nn.Module):
    """A stack of four layers."""

    def __init__(self, dim: int = 32, num_layers: int = 4):
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer(dim) for _ in range(num_layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x.square().mean()


def main() -> int:
    torch.manual_seed(0)
    model = Model()
    x = torch.randn(256, 32)

    def step() -> torch.Tensor:
        return model(x)

    trace = rematch.trace(model, step)
    failures = 0
    for policy in POLICIES:
        plan = rematch.resolve(trace, policy)
        for schedule in SCHEDULES:
            found = rematch.check(model, step, rematch.Checkpoint(plan, schedule))
            predicted = rematch.predict(trace, plan, schedule)
            run = found["checkpointed"]
            peak = predicted["peak_bytes"] - predicted["before_bytes"]
            agrees = (found["bits_equal"] and run["executed_ops"]["recompute"] == predicted["recomputed_ops"]
                      and abs(run["peak_bytes"] - peak) <= peak * 1e-4)
            failures += not agrees
            print(f"{'ok' if agrees else 'FAILED'}: {policy} {schedule}: bits {'equal' if found['bits_equal'] else 'differ'}, "
                  f"{run['executed_ops']['recompute']} ops recomputed (predicted {predicted['recomputed_ops']}), "
                  f"peak {run['peak_bytes']} bytes (predicted {peak}; without a plan {found['plain']['peak_bytes']})")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
