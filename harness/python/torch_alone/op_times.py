"""Measures the times of a traced step's ops on the model's device, for a file of schema rematch.profile/1.2."""

import hashlib
import statistics
import time

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from torch_alone.model_file import Refused
from torch_alone.op_facts import is_of_the_mode

PASSES = ("forward", "backward")


class Clock:
    """A clock: the CPU's clock, or CUDA events on a GPU's stream, whose times are read after the step."""

    def __init__(self, device_type):
        self.is_cuda = device_type == "cuda"

    def now(self):
        if not self.is_cuda:
            return time.perf_counter_ns()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, start, end):
        """Returns the nanoseconds between two results of now(). Call wait() first."""
        return int(start.elapsed_time(end) * 1e6) if self.is_cuda else end - start

    def wait(self):
        if self.is_cuda:
            torch.cuda.synchronize()


class OpTimer(TorchDispatchMode):
    """Records the times before and after every op of a step."""

    def __init__(self, clock):
        super().__init__()
        self.pass_name = "forward"
        self._clock, self._is_off = clock, False
        self._times = {name: [] for name in PASSES}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        is_backward = self.pass_name == "backward"
        if self._is_off or func.namespace == "prim" or (is_backward and is_of_the_mode(func)):
            return func(*args, **kwargs)
        start = self._clock.now()
        result = func(*args, **kwargs)
        self._times[self.pass_name].append((start, self._clock.now()))
        return result

    def alias(self, tensor):
        """A saved-tensor hook that calls detach without timing it. Autograd detaches an output that it saves only under
        a dispatch mode."""
        self._is_off = True
        try:
            return tensor.detach()
        finally:
            self._is_off = False

    def nanoseconds(self, pass_name):
        return [self._clock.between(start, end) for start, end in self._times[pass_name]]


def measure_profile(model, step, trace, num_steps, optimizer=None):
    """Returns medians over `num_steps` steps: the time of every op, and the time of the whole step, measured without
    OpTimer. With an optimizer, also measures its update, which changes the parameters."""
    device = next(model.parameters()).device.type
    clock = Clock(device)
    _watched_step(model, step, clock)  # a warm-up, because the first step fills caches and compiles kernels
    watched = [_watched_step(model, step, clock) for _ in range(num_steps)]
    whole = [_whole_step(model, step, clock, optimizer) for _ in range(num_steps)]
    times = {name: [int(statistics.median(samples)) for samples in zip(*(sample[name] for sample in watched))]
             for name in PASSES}
    names = {"forward": [op["name"] for op in trace["types"][0]["ops"]],
             "backward": [event["op"] for event in trace["backward_types"][0] if "op" in event]}
    for name in PASSES:
        if len(times[name]) != len(names[name]):
            raise Refused(f"the {name} pass ran {len(times[name])} ops, and {len(names[name])} when the trace was recorded: "
                          "every step must run the same ops")
    between = {name: max(0, int(statistics.median(sample[name] for sample in whole)) - sum(times[name]))
               for name in PASSES}
    return {"schema": "rematch.profile/1.2", "model": trace["model"], "dimensions": trace["dimensions"],
            "dtype": trace["dtype"], "ops_sha256": _sha256(names["forward"] + names["backward"]), "device": device,
            **_card_and_determinism(device), "source": "measured", "num_steps": num_steps,
            "optimizer_ns": int(statistics.median(sample["optimizer"] for sample in whole)),
            "forward_between_ops_ns": between["forward"], "backward_between_ops_ns": between["backward"],
            "forward": _in_one_piece(times["forward"]), "backward": _in_one_piece(times["backward"])}


# The name of the attention kernel is left out, because torch chooses the kernel for each op and does not report it.
def _card_and_determinism(device):
    if device != "cuda":
        return {}
    return {"card": torch.cuda.get_device_name(), "repeatable_bits": torch.are_deterministic_algorithms_enabled()}


def _watched_step(model, step, clock):
    model.zero_grad(set_to_none=True)
    with OpTimer(clock) as timer:
        with torch.autograd.graph.saved_tensors_hooks(timer.alias, timer.alias):
            loss = step()
        timer.pass_name = "backward"
        loss.backward()
    clock.wait()
    return {name: timer.nanoseconds(name) for name in PASSES}


def _whole_step(model, step, clock, optimizer):
    model.zero_grad(set_to_none=True)
    clock.wait()
    times = [clock.now()]
    loss = step()
    times.append(clock.now())
    loss.backward()
    times.append(clock.now())
    if optimizer is not None:
        optimizer.step()
    times.append(clock.now())
    clock.wait()
    return {name: clock.between(start, end)
            for name, start, end in zip((*PASSES, "optimizer"), times, times[1:])}


def _sha256(names):
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def _in_one_piece(times):
    return {"types": [{"times_ns": times, "temporary_bytes": None}], "spans": [0]}
