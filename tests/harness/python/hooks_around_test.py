"""Tests steps in which the program uses saved-tensor hooks of its own, around the recorded step or inside it. Loss and
gradients must equal those of a step without a plan. The peak must be as predicted, and at most as high as with
torch.utils.checkpoint."""

import contextlib
import gc
import os
import pathlib
import subprocess
import sys
import textwrap
import unittest
import warnings

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import torch  # noqa: E402
import torch.utils.checkpoint  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
NUM_LEAK_STEPS = 50
SCHEDULES = ("whole_region", "on_demand")
POLICIES = ("full", "save_mm")
saved_tensors_hooks = torch.autograd.graph.saved_tensors_hooks


class Layer(torch.nn.Module):
    """A layer that also saves transposed and sliced tensors, whose layout hooks may change."""

    hooks_inside = staticmethod(contextlib.nullcontext)

    def __init__(self, width=16):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        x = x + self.out((q @ k.transpose(-1, -2)).softmax(-1) @ v)
        with self.hooks_inside():
            return x + self.down(torch.nn.functional.gelu(self.up(x)))


class Model(torch.nn.Module):
    def __init__(self, layer=Layer):
        super().__init__()
        self.layers = torch.nn.ModuleList(layer() for _ in range(4))
        self.head = torch.nn.Linear(16, 16)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x).square().mean()


class Offloader:
    """Imitates a trainer's offloader: stores each tensor that autograd saves, and gives autograd a number instead. In
    backward, autograd asks for each tensor once, by its number. Afterwards, the store must be empty."""

    def __init__(self):
        self.held = {}
        self.num_packed = 0

    def pack(self, tensor):
        self.num_packed += 1
        self.held[self.num_packed] = tensor.contiguous().numpy().copy(), tensor.requires_grad
        return self.num_packed

    def unpack(self, number):
        return torch.from_numpy(self.held.pop(number)[0]).clone()

    def around(self):
        return saved_tensors_hooks(self.pack, self.unpack)


def logging_hooks(seen):
    def log(tensor):
        seen.append(tensor.shape)
        return tensor

    return saved_tensors_hooks(log, lambda tensor: tensor)


def logging_detached_hooks():
    return saved_tensors_hooks(lambda tensor: tensor.detach(), lambda tensor: tensor)


def rounding_hooks():
    """Returns hooks that store tensors in bfloat16, so float32 tensors lose half of their bits."""
    return saved_tensors_hooks(lambda tensor: (tensor.dtype, tensor.to(torch.bfloat16)), lambda held: held[1].to(held[0]))


HOOKS = {
    "save_on_cpu": torch.autograd.graph.save_on_cpu,
    "an offloader": lambda: Offloader().around(),
    "a logger": lambda: logging_hooks([]),
    "a logger that detaches": logging_detached_hooks,
    "hooks in hooks": lambda: _stacked(torch.autograd.graph.save_on_cpu(), logging_hooks([])),
}


@contextlib.contextmanager
def _stacked(outer, inner):
    with outer, inner:
        yield


def made(layer=Layer):
    torch.manual_seed(0)
    return Model(layer)


def results_of(model, loss):
    found = [loss.detach(), *(parameter.grad.clone() for parameter in model.parameters())]
    model.zero_grad(set_to_none=True)
    return found


def equal(found, expected):
    return all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


class HooksAroundTest(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("error")
        self.addCleanup(warnings.resetwarnings)
        self.model = made()
        self.x = torch.randn(2, 8, 16)
        self.trace = rematch.trace(self.model, lambda: self.model(self.x))

    def step(self, around, checkpoint=None, model=None):
        model = model or self.model
        with around(), rematch.recording(checkpoint) if checkpoint else contextlib.nullcontext():
            loss = model(self.x)
        loss.backward()
        return results_of(model, loss)

    def rise(self, around, checkpoint=None):
        gc.collect()
        with rematch.watch(self.model) as figures:
            self.step(around, checkpoint)
        return max(peak for peak in figures["peak_bytes"].values() if peak is not None) - figures["before_bytes"]

    def test_every_step_has_equal_bits(self):
        for name, around in HOOKS.items():
            expected = self.step(around)
            for policy in POLICIES:
                for schedule in SCHEDULES:
                    with self.subTest(hooks=name, policy=policy, schedule=schedule):
                        checkpoint = rematch.Checkpoint(rematch.resolve(self.trace, policy), schedule)
                        with rematch.scopes(self.model, checkpoint):
                            for _ in range(3):
                                self.assertTrue(equal(self.step(around, checkpoint), expected))

    def test_the_peak_equals_that_of_the_plan(self):
        def checkpointed():
            for layer in self.model.layers:
                forward = type(layer).forward.__get__(layer)
                layer.forward = lambda x, forward=forward: torch.utils.checkpoint.checkpoint(forward, x, use_reentrant=False)

        self.x = torch.randn(8, 32, 16)  # so large that the peak is in the layers, not in the gradients
        for name, around in HOOKS.items():
            with self.subTest(hooks=name):
                checkpoint = rematch.Checkpoint(rematch.resolve(self.trace, "full"))
                with rematch.scopes(self.model, checkpoint):
                    self.step(around, checkpoint)  # the first step also tests whether hooks change bits
                    found = self.rise(around, checkpoint)
                checkpointed()
                bar = self.rise(around)
                for layer in self.model.layers:
                    del layer.forward
                self.assertLessEqual(found, bar)
                if name != "an offloader":  # an offloader's memory is not counted
                    self.assertLess(found, 0.8 * self.rise(around))

    def test_no_bytes_remain(self):
        for name, around in HOOKS.items():
            with self.subTest(hooks=name):
                checkpoint = rematch.Checkpoint(rematch.resolve(self.trace, "save_mm"))
                with rematch.scopes(self.model, checkpoint):
                    self.step(around, checkpoint)
                    gc.collect()
                    before = rematch.allocated_bytes()
                    for _ in range(NUM_LEAK_STEPS):
                        self.step(around, checkpoint)
                    gc.collect()
                    self.assertLessEqual(rematch.allocated_bytes(), before)

    def test_an_offloader_is_emptied_and_packs_what_the_plan_keeps(self):
        checkpoint = rematch.Checkpoint(rematch.resolve(self.trace, "full"))
        without = Offloader()
        self.step(without.around)
        with rematch.scopes(self.model, checkpoint):
            self.step(Offloader().around, checkpoint)
            offloader = Offloader()
            self.step(offloader.around, checkpoint)
        self.assertEqual(offloader.held, {})
        self.assertGreaterEqual(offloader.num_packed, len(self.model.layers))
        self.assertLess(offloader.num_packed, without.num_packed / 2)

    def test_two_backward_passes(self):
        def step(checkpoint=None):
            with torch.autograd.graph.save_on_cpu(), rematch.recording(checkpoint) if checkpoint else contextlib.nullcontext():
                loss = self.model(self.x)
            loss.backward(retain_graph=True)
            loss.backward()
            return results_of(self.model, loss)

        expected = step()
        for policy in POLICIES:
            checkpoint = rematch.Checkpoint(rematch.resolve(self.trace, policy))
            with rematch.scopes(self.model, checkpoint):
                for _ in range(3):
                    self.assertTrue(equal(step(checkpoint), expected))

    def test_hooks_inside_a_layer(self):
        for name, inside in {**HOOKS, "rounding": rounding_hooks}.items():
            with self.subTest(hooks=name):
                model = made(type("Hooked", (Layer,), {"hooks_inside": staticmethod(inside)}))
                expected = self.step(contextlib.nullcontext, model=model)
                checkpoint = rematch.Checkpoint(rematch.resolve(self.trace, "save_mm"))
                with rematch.scopes(model, checkpoint):
                    for _ in range(3):
                        self.assertTrue(equal(self.step(contextlib.nullcontext, checkpoint, model), expected))

    def test_a_checkpoint_inside_a_layer(self):
        class Checkpointed(Layer):
            def forward(self, x):
                return x + torch.utils.checkpoint.checkpoint(super().forward, x, use_reentrant=self.use_reentrant)

        self.x.requires_grad_()  # a reentrant checkpoint needs this gradient
        checkpoint = rematch.Checkpoint(rematch.resolve(self.trace, "save_mm"))
        for use_reentrant in (False, True):
            with self.subTest(use_reentrant=use_reentrant), warnings.catch_warnings():
                # Ignores two warnings: the layer does not follow its plan, and the checkpoint inside it warns too.
                warnings.simplefilter("ignore")
                Checkpointed.use_reentrant = use_reentrant
                model = made(Checkpointed)
                expected = self.step(contextlib.nullcontext, model=model)
                with rematch.scopes(model, checkpoint):
                    for _ in range(3):
                        self.assertTrue(equal(self.step(contextlib.nullcontext, checkpoint, model), expected))

    def test_hooks_that_are_disabled_are_refused_before_the_first_op(self):
        checkpoint = rematch.Checkpoint(rematch.resolve(self.trace, "full"))
        with self.assertRaisesRegex(rematch.RematchError, "begins where saved-tensor hooks are disabled"), \
                torch.autograd.graph.disable_saved_tensors_hooks("none here"), rematch.recording(checkpoint):
            self.fail("the step began")


class HooksThatDecideTest(unittest.TestCase):
    """Tests hooks that cannot be combined with a plan. There must be one warning per process."""

    SCRIPT = """
        import sys, torch, hooks_around_test as here, rematch
        model, x = here.made(), torch.randn(2, 8, 16)
        checkpoint = rematch.Checkpoint(rematch.resolve(rematch.trace(model, lambda: model(x)), "full"))
        rematch.scopes(model, checkpoint)

        def step(is_recorded):
            around = rematch.recording(checkpoint) if is_recorded else here.contextlib.nullcontext()
            if sys.argv[1] == "rounding":
                with here.rounding_hooks(), around:
                    loss = model(x)
            else:
                with around:
                    loss = torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False)
            loss.backward()
            return here.results_of(model, loss)

        expected = step(False)
        assert all(here.equal(step(True), expected) for _ in range(3))
        """

    def test_bits_and_one_warning(self):
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, sys.path)])}
        for what in ("rounding", "checkpoint"):
            with self.subTest(what=what):
                found = subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(self.SCRIPT), what], text=True,
                                       capture_output=True, check=False, env=environment)
                self.assertEqual((found.returncode, found.stderr.count("runs inside torch.utils.checkpoint, or inside")), (0, 1),
                                 found.stderr)


if __name__ == "__main__":
    unittest.main()
