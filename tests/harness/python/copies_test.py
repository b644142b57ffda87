"""Tests copies of checkpoints, of models that hold a checkpoint, and of models with scopes. Copies are made by copy,
deepcopy, pickle, torch.save and spawn."""

import copy
import io
import multiprocessing
import pickle
import subprocess
import sys
import unittest

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import torch  # noqa: E402
from rematch.selftest import Model  # noqa: E402

# Runs in a separate process, because freeing a handle twice would crash the process.
COPY_AND_DROP = """
import copy, gc, pickle, sys
import rematch, torch
from rematch.selftest import Model

model, x = Model(), torch.randn(8, 32)
checkpoint = rematch.Checkpoint(rematch.resolve(rematch.trace(model, lambda: model(x)), "full"))

class Holder:
    pass

def as_attribute(kind, duplicate):
    holder = model if kind is Model else Holder()
    holder.checkpoint = checkpoint
    return duplicate(holder)

def pickled(value):
    return pickle.loads(pickle.dumps(value))

for duplicate in (copy.copy, copy.deepcopy, pickled):
    for kind in (rematch.Checkpoint, Holder, Model):
        copied = duplicate(checkpoint) if kind is rematch.Checkpoint else as_attribute(kind, duplicate)
        del copied
        gc.collect()
copied = copy.deepcopy(model)
del model.checkpoint, checkpoint
gc.collect()
with rematch.scopes(model, copied.checkpoint), rematch.recording(copied.checkpoint):
    loss = model(x)
loss.backward()
print("ran")
"""


def loss_and_gradients(model, x):
    model.zero_grad(set_to_none=True)
    torch.manual_seed(1)
    loss = model(x)
    loss.backward()
    return [loss.detach(), *(parameter.grad.clone() for parameter in model.parameters())]


def recorded_step(model, checkpoint, x):
    """Runs a step with the checkpoint. Returns the number of recomputed ops, the loss and the gradients."""
    model.zero_grad(set_to_none=True)
    torch.manual_seed(1)
    with rematch.watch() as figures:
        with rematch.recording(checkpoint):
            loss = model(x)
        loss.backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    return sum(figures["ops"]["recompute"].values()), [loss.detach(), *gradients]


def train_in_child(model, checkpoint, x, answers):
    num_recomputed, found = recorded_step(model, checkpoint, x)
    answers.put((num_recomputed, [value.tolist() for value in found]))


def through_pickle(value):
    return pickle.loads(pickle.dumps(value))


def through_torch_save(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


class CopiesTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.model = Model()
        self.x = torch.randn(256, 32)
        self.trace = rematch.trace(self.model, lambda: self.model(self.x))
        self.checkpoint = rematch.Checkpoint(rematch.resolve(self.trace, "full"))
        self.num_recomputed = rematch.predict(self.trace, self.checkpoint.plan)["recomputed_ops"]
        self.expected = loss_and_gradients(self.model, self.x)
        self.model.zero_grad(set_to_none=True)

    def assert_runs(self, model, checkpoint):
        num_recomputed, found = recorded_step(model, checkpoint, self.x)
        self.assertEqual(num_recomputed, self.num_recomputed)
        for want, have in zip(self.expected, found, strict=True):
            self.assertTrue(torch.equal(want, have))

    def test_destroyed_copies_free_a_handle_once(self):
        done = subprocess.run([sys.executable, "-c", COPY_AND_DROP], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "ran"), done.stderr)

    def test_a_copied_checkpoint_runs(self):
        for duplicate in (copy.copy, copy.deepcopy, through_pickle, through_torch_save):
            with self.subTest(duplicate=duplicate.__name__), rematch.scopes(self.model):
                copied = duplicate(self.checkpoint)
                self.assertEqual((copied.plan, copied.schedule), (self.checkpoint.plan, self.checkpoint.schedule))
                self.assert_runs(self.model, copied)

    def test_a_searched_checkpoint_keeps_its_front(self):
        searched = rematch.SearchedCheckpoint({"points": []}, self.checkpoint.plan, "whole_region")
        copied = through_pickle(searched)
        self.assertEqual((copied.front, copied.schedule), ({"points": []}, "whole_region"))

    def test_a_copied_model_with_scopes_trains_with_the_plan(self):
        self.model.checkpoint = self.checkpoint
        self.model.block_scopes = rematch.scopes(self.model, self.checkpoint)
        for duplicate in (copy.deepcopy, through_pickle, through_torch_save):
            with self.subTest(duplicate=duplicate.__name__):
                copied = duplicate(self.model)
                self.assert_runs(copied, copied.checkpoint)
                self.assert_runs(self.model, self.checkpoint)
                copied.block_scopes.remove()
                self.assertEqual([name for name, module in copied.named_modules() if module._forward_pre_hooks], [])
                self.assert_runs(self.model, self.checkpoint)

    def test_scopes_of_a_copy_can_be_removed(self):
        scopes = rematch.scopes(self.model)
        copied = copy.deepcopy(self.model)
        called = []
        copied.layers[0].register_forward_pre_hook(lambda *_: called.append("before"))
        copied.layers[0].register_forward_hook(lambda *_: called.append("after"))
        with self.assertRaisesRegex(ValueError, "layers.0 has scopes already; call rematch.remove_scopes"):
            rematch.scopes(copied, self.checkpoint)
        rematch.remove_scopes(copied)
        with rematch.scopes(copied, self.checkpoint):
            self.assert_runs(copied, self.checkpoint)
        self.assertEqual(called, ["before", "after"])
        self.assert_runs(self.model, self.checkpoint)
        rematch.remove_scopes(self.model)
        scopes.remove()  # has no effect, because the scopes were already removed

    def test_a_copy_made_while_the_model_runs(self):
        copies = []

        def copy_once(*_):
            if not copies:
                copies.append(copy.deepcopy(self.model))

        self.model.layers[1].norm.register_forward_hook(copy_once)
        with rematch.scopes(self.model), torch.no_grad():
            self.model(self.x)
        rematch.remove_scopes(copies[0])
        with rematch.scopes(copies[0]):
            self.assert_runs(copies[0], self.checkpoint)

    def test_state_dict_of_a_model_with_scopes(self):
        names = list(self.model.state_dict())
        with rematch.scopes(self.model):
            self.assertEqual(list(self.model.state_dict()), names)
            Model().load_state_dict(self.model.state_dict())

    def test_a_spawned_process_trains_a_model_with_scopes(self):
        context = multiprocessing.get_context("spawn")
        answers = context.Queue()
        with rematch.scopes(self.model, self.checkpoint):
            process = context.Process(target=train_in_child, args=(self.model, self.checkpoint, self.x, answers))
            process.start()
            num_recomputed, found = answers.get(timeout=120)
            process.join()
        self.assertEqual((process.exitcode, num_recomputed), (0, self.num_recomputed))
        for want, have in zip(self.expected, found, strict=True):
            self.assertTrue(torch.equal(want, torch.tensor(have)))


class UninitializedTest(unittest.TestCase):
    def test_a_checkpoint_without_init(self):
        class Mine(rematch.Checkpoint):
            def __init__(self):
                pass

        with self.assertRaisesRegex(TypeError, "this Mine was not initialized; call super"), rematch.recording(Mine()):
            self.fail("a checkpoint without a plan was recorded")


if __name__ == "__main__":
    unittest.main()
