"""Tests steps whose ops differ from those of the step for which the plan was made. Results must be bit-identical to
those without a plan, there must be exactly one warning, and no memory may leak. The steps run on a GPU if there is
one."""

import gc
import json
import os
import pickle
import unittest
import warnings

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made
# cuBLAS gives repeatable bits only with a workspace of this size.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch  # noqa: E402
from rematch.selftest import Model  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
NUM_STEPS = 12
NUM_LEAK_STEPS = 50
SCHEDULES = ("whole_region", "on_demand")
POLICIES = ("full", "save_mm", "segments(2)", "nth_first(2)")


class Layer(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.query, self.out = torch.nn.Linear(width, width), torch.nn.Linear(width, width)
        self.drop = torch.nn.Dropout(0.1)

    def forward(self, x, mask, scale):
        scores = self.query(self.norm(x)) @ x.transpose(-1, -2)
        if mask is not None:
            scores = scores.masked_fill(mask, -1e4)
        y = self.drop(self.out(scores.softmax(-1) @ x))
        if scale is not None:
            y = y * scale.exp()
        return x + y


class Steps(torch.nn.Module):
    """A model that runs different ops in each step: step i is of kind `kinds[i % len(kinds)]`. Plans are made for steps
    of the first kind."""

    def __init__(self, kinds, num_layers=4, width=16):
        super().__init__()
        self.kinds = kinds
        self.layers = torch.nn.ModuleList(Layer(width) for _ in range(num_layers))
        self.register_buffer("mask", torch.arange(64).reshape(1, 8, 8).remainder(5).eq(0))

    def forward(self, x, index):
        kind = self.kinds[index % len(self.kinds)]
        mask = self.mask if "mask" in kind else None
        scale = x if "scale" in kind else None
        order = kind.get("order", range(len(self.layers)))
        with torch.autocast(DEVICE, torch.bfloat16, enabled="autocast" in kind):
            for layer in order:
                x = self.layers[layer](x, mask, scale)
        return x.float().square().mean()


PLAIN = {}
KINDS = {
    "padded batches": [PLAIN, {"mask": True}, {"mask": True}, PLAIN],
    "a plan of padded batches": [{"mask": True}, PLAIN],
    "an argument that is None at first": [PLAIN, {"scale": True}],
    "autocast after float32": [PLAIN, {"autocast": True}],
    "float32 after autocast": [{"autocast": True}, PLAIN],
    "layers left out": [PLAIN, {"order": [0, 2, 3]}, {"order": [1, 2]}, {"order": [3]}, {"order": [0, 1, 2]}],
    "layers run twice": [PLAIN, {"order": [0, 0, 1, 2, 3, 3]}, {"order": [0, 1, 2, 3, 0, 1, 2, 3]}],
    "layers in a different order": [PLAIN, {"order": [3, 2, 1, 0]}, {"order": [1, 0, 3, 2]}],
    "all of it": [PLAIN, {"mask": True, "autocast": True}, {"order": [1, 3], "scale": True}],
}


def batches(seed=1):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(2, 8, 16, generator=generator).to(DEVICE) for _ in range(NUM_STEPS)]


def made(kinds):
    torch.manual_seed(0)
    return Steps(kinds).to(DEVICE)


def train(model, checkpoint, steps):
    """Returns losses and gradients of all steps."""
    torch.manual_seed(3)
    found = []
    for index, x in enumerate(steps):
        with rematch.recording(checkpoint) if checkpoint else warnings.catch_warnings():
            loss = model(x, index)
        loss.backward()
        found += [loss.detach()] + [None if p.grad is None else p.grad.clone() for p in model.parameters()]
        model.zero_grad(set_to_none=True)
    return found


def are_equal(a, b):
    return len(a) == len(b) and all(x is y if x is None or y is None else torch.equal(x, y) for x, y in zip(a, b, strict=True))


def plan_of(kinds, policy):
    model = made(kinds)
    return rematch.resolve(rematch.trace(model, lambda: model(batches()[0], 0)), policy)


class FollowTest(unittest.TestCase):
    def test_bits_of_steps_that_vary(self):
        for name, kinds in KINDS.items():
            expected = train(made(kinds), None, batches())
            for policy in POLICIES:
                plan = plan_of(kinds, policy)
                for schedule in SCHEDULES:
                    with self.subTest(kinds=name, policy=policy, schedule=schedule):
                        checkpoint = rematch.Checkpoint(plan, schedule)
                        model = made(kinds)
                        with rematch.scopes(model, checkpoint), warnings.catch_warnings():
                            warnings.simplefilter("ignore")
                            self.assertTrue(are_equal(expected, train(model, checkpoint, batches())))

    def test_the_plan_of_another_model(self):
        kinds = KINDS["all of it"]
        other = torch.nn.Module()
        other.layers = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.GELU()) for _ in range(4))
        other.to(DEVICE)

        def step():
            x = batches()[0]
            for layer in other.layers:
                x = layer(x)
            return x.mean()

        checkpoint = rematch.Checkpoint(rematch.resolve(rematch.trace(other, step), "save_mm"))
        expected = train(made(kinds), None, batches())
        model = made(kinds)
        with rematch.scopes(model, checkpoint), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertTrue(are_equal(expected, train(model, checkpoint, batches())))
        self.assertGreater(sum(row["left"] for row in checkpoint.report()), 0)

    def test_leaving_the_plan_is_reported_once_and_counted(self):
        kinds = KINDS["padded batches"]
        checkpoint = rematch.Checkpoint(plan_of(kinds, "full"))
        model = made(kinds)
        with rematch.scopes(model, checkpoint), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            train(model, checkpoint, batches())
        self.assertEqual(len(caught), 1, [str(each.message) for each in caught])
        message = str(caught[0].message)
        self.assertRegex(message, r"^rematch: region layers\.0 left its plan: op \d+: the plan expects aten::_softmax, the model "
                                  r"ran aten::masked_fill.*trace it as well")
        self.assertNotIn("\n", message)
        (row,) = checkpoint.report()
        self.assertEqual((row["passes"], row["left"], row["missing_ops"]), (NUM_STEPS * 4, NUM_STEPS // 2 * 4, 0))
        self.assertEqual(row["extra_ops"] % row["left"], 0)
        self.assertEqual(row["kept_beyond_plan_bytes"], 0)
        self.assertIn(f"| 0 | {NUM_STEPS * 4} | {NUM_STEPS // 2 * 4} |", str(checkpoint.report()))

    def test_a_step_on_its_plan_reports_nothing(self):
        checkpoint = rematch.Checkpoint(plan_of([PLAIN], "full"))
        self.assertEqual(checkpoint.report(), [])
        model = made([PLAIN])
        with rematch.scopes(model, checkpoint), warnings.catch_warnings():
            warnings.simplefilter("error")
            train(model, checkpoint, batches())
        self.assertEqual([(row["left"], row["first_difference"]) for row in checkpoint.report()], [(0, "")])

    def test_refuse(self):
        kinds = KINDS["padded batches"]
        checkpoint = rematch.Checkpoint(plan_of(kinds, "full"), on_mismatch="refuse")
        model = made(kinds)
        with rematch.scopes(model, checkpoint), self.assertRaisesRegex(rematch.RematchError, r"layers\.0, op \d+: the plan expects"):
            train(model, checkpoint, batches())
        self.assertEqual(pickle.loads(pickle.dumps(checkpoint)).on_mismatch, "refuse")
        with self.assertRaisesRegex(ValueError, "on_mismatch is 'ignore'; allowed: 'follow'"):
            rematch.Checkpoint(checkpoint.plan, on_mismatch="ignore")

    def test_check_proves_counts_and_refuses(self):
        kinds = KINDS["padded batches"]
        checkpoint = rematch.Checkpoint(plan_of(kinds, "full"))
        model = made(kinds)
        with self.assertRaisesRegex(rematch.RematchError, "the plan expects"):
            rematch.check(model, lambda: model(batches()[0], 1), checkpoint)

    def test_memory_does_not_grow(self):
        kinds = KINDS["all of it"]
        checkpoint = rematch.Checkpoint(plan_of(kinds, "save_mm"))
        model = made(kinds)
        with rematch.scopes(model, checkpoint), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            train(model, checkpoint, batches()[:4])
            gc.collect()
            before = rematch.allocated_bytes()
            for _ in range(NUM_LEAK_STEPS // 4 + 1):
                train(model, checkpoint, batches()[:4])
            gc.collect()
            self.assertEqual(rematch.allocated_bytes(), before)

    def test_the_peak_is_at_most_that_of_full_plus_what_is_kept(self):
        kinds = KINDS["padded batches"]

        def peak(model, index, around):
            torch.manual_seed(0)
            with rematch.watch(model) as figures:
                with around:
                    loss = model(batches()[0], index)
                loss.backward()
            model.zero_grad(set_to_none=True)
            return max(figures["peak_bytes"].values()) - figures["before_bytes"]

        own = [kinds[1]]
        full = rematch.Checkpoint(plan_of(own, "full"))
        model = made(own)
        with rematch.scopes(model, full):
            peak(model, 0, rematch.recording(full))
            limit = peak(model, 0, rematch.recording(full))
        for policy in ("full", "save_mm"):
            with self.subTest(policy=policy):
                checkpoint = rematch.Checkpoint(plan_of(kinds, policy))
                kept = sum(op["bytes"] for region in checkpoint.plan["regions"]
                           for op in checkpoint.plan["types"][region["type"]]["ops"] if op["treatment"] == "save")
                model = made(kinds)
                with rematch.scopes(model, checkpoint), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    peak(model, 1, rematch.recording(checkpoint))
                    self.assertLessEqual(peak(model, 1, rematch.recording(checkpoint)), limit + kept)


class LateLibraryTest(unittest.TestCase):
    def test_an_op_that_is_registered_after_the_checkpoint_is_planned(self):
        """A plan may name an op of a library that was not imported when the plan was loaded."""
        model, x = Model(), torch.randn(8, 32)
        plan = rematch.resolve(rematch.trace(model, lambda: model(x)), "save_mm")
        text = json.dumps(plan)
        self.assertIn('"aten::gelu"', text)
        checkpoint = rematch.Checkpoint(json.loads(text.replace('"aten::gelu"', '"rematch_follow_late::gelu"')))

        @torch.library.custom_op("rematch_follow_late::gelu", mutates_args=())
        def gelu(x: torch.Tensor) -> torch.Tensor:
            return x.tanh()

        gelu.register_autograd(lambda ctx, gradient: gradient * ctx.saved_tensors[0],
                               setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output))
        for layer in model.layers:
            layer.feed_forward[1].forward = gelu
        with warnings.catch_warnings(), rematch.scopes(model, checkpoint):
            warnings.simplefilter("error")
            for _ in range(2):
                with rematch.recording(checkpoint):
                    loss = model(x)
                loss.backward()
        self.assertEqual([(row["passes"], row["left"]) for row in checkpoint.report()], [(8, 0)])


if __name__ == "__main__":
    unittest.main()
