"""Tests recordings that end out of order, on another thread, or because of an interruption."""

import subprocess
import sys
import threading
import unittest

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import torch  # noqa: E402
from rematch._in_torch import is_in_recorded_step  # noqa: E402
from rematch._library import LIBRARY  # noqa: E402
from rematch.selftest import Model  # noqa: E402

# Runs in a separate process, because using a freed listener would crash the process.
CHILD = """
import sys, unittest
sys.path.insert(0, sys.argv[1])
import open_recordings_test
open_recordings_test.run_in_child(sys.argv[2])
print("ran")
"""


class Steps:
    """A model with scopes. Its steps are recorded inside generators, so that a recording stays open while its generator
    is suspended."""

    def __init__(self):
        torch.manual_seed(0)
        self.model = Model()
        self.x = torch.randn(64, 32)
        trace = rematch.trace(self.model, lambda: self.model(self.x))
        self.checkpoint = rematch.Checkpoint(rematch.resolve(trace, "full"))
        rematch.scopes(self.model, self.checkpoint)

    def open_step(self):
        def generate():
            with rematch.recording(self.checkpoint):
                yield self.model(self.x)

        generator = generate()
        next(generator)
        return generator

    def num_recomputed(self, recorded):
        self.model.zero_grad(set_to_none=True)
        with rematch.watch() as figures:
            if recorded:
                with rematch.recording(self.checkpoint):
                    loss = self.model(self.x)
            else:
                loss = self.model(self.x)
            loss.backward()
        return sum(figures["ops"]["recompute"].values())

    def assert_sound(self):
        """Checks that no recording or scope is open, and that a plan affects only recorded steps."""
        assert not is_in_recorded_step()
        assert LIBRARY.rematch_is_in_scope() == 0
        assert self.num_recomputed(recorded=True) > 0
        assert self.num_recomputed(recorded=False) == 0


def close_in_another_order():
    steps = Steps()
    first, second, third = steps.open_step(), steps.open_step(), steps.open_step()
    second.close()
    first.close()
    assert steps.num_recomputed(recorded=False) > 0  # the third recording is still open
    third.close()
    steps.assert_sound()


def close_on_another_thread():
    steps = Steps()
    opened = steps.open_step()
    thread = threading.Thread(target=opened.close)
    thread.start()
    thread.join()
    steps.num_recomputed(recorded=True)  # this step frees what the other thread could not free
    steps.assert_sound()


def finish_on_another_thread():
    steps = Steps()
    opened = steps.open_step()
    errors = []

    def finish():
        try:
            next(opened)
        except rematch.RematchError as error:
            errors.append(str(error))
        steps.num_recomputed(recorded=True)

    thread = threading.Thread(target=finish)
    thread.start()
    thread.join()
    assert len(errors) == 1 and "left on a different thread" in errors[0], errors
    steps.num_recomputed(recorded=True)  # this step frees what the other thread could not free
    steps.assert_sound()


def interrupt_forward():
    steps = Steps()

    def interrupt(*_):
        raise KeyboardInterrupt

    handle = steps.model.layers[1].feed_forward[1].register_forward_hook(interrupt)
    for _ in range(3):
        try:
            with rematch.recording(steps.checkpoint):
                steps.model(steps.x)
        except KeyboardInterrupt:
            continue
        raise AssertionError("was not interrupted")
    handle.remove()
    steps.assert_sound()


def run_in_child(name):
    {each.__name__: each for each in (close_in_another_order, close_on_another_thread, finish_on_another_thread,
                                      interrupt_forward)}[name]()


class OpenRecordingsTest(unittest.TestCase):
    def run_child(self, name):
        folder = __file__.rpartition("/")[0]
        done = subprocess.run([sys.executable, "-W", "error::UserWarning", "-c", CHILD, folder, name], capture_output=True,
                              text=True, check=False)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "ran"), done.stderr)

    def test_recordings_that_end_in_a_different_order(self):
        self.run_child("close_in_another_order")

    def test_a_recording_that_is_closed_on_another_thread(self):
        self.run_child("close_on_another_thread")

    def test_a_recording_that_ends_on_another_thread(self):
        self.run_child("finish_on_another_thread")

    def test_a_forward_that_the_keyboard_interrupts(self):
        self.run_child("interrupt_forward")


if __name__ == "__main__":
    unittest.main()
