"""Measures the ops that a step executes and its peak memory. If the step uses selective checkpointing, the dispatch
mode of this module must be entered before the modes of selective checkpointing."""

import ctypes
import hashlib
import time
from collections import Counter

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from torch_alone.op_facts import IN_PLACE, MOST_USES, aten, in_backward_without_mode, op_name, tensors_in
from torch_alone.recorder import InLinear
from torch_alone.step_tables import BytesBorn

# Ops that do not belong to the model: under a mode, saving a tensor dispatches an additional detach, and
# torch.utils.checkpoint allocates a tensor for the generator's state.
NOT_COUNTED = ("aten::detach", "aten::empty.memory_format")


class StepWatch(TorchDispatchMode):
    """Counts executed ops by name, and the peak bytes of tensors that ops made. Runs the in-place ops that autograd
    would run without a dispatch mode, so that memory use is the same."""

    def __init__(self):
        super().__init__()
        self.executed, self.peak_bytes = Counter(), 0
        self.in_linear = InLinear()
        self._born = BytesBorn()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func.namespace == "prim":
            return func(*args, **kwargs)
        if func is aten.add.Tensor and self.in_linear.depth and args[0]._use_count() <= MOST_USES:
            func = IN_PLACE[func]
        elif func in IN_PLACE:
            func = in_backward_without_mode(func, args)
        result = func(*args, **kwargs)
        if op_name(func) not in NOT_COUNTED:
            self.executed[op_name(func)] += 1
        read = {tensor.untyped_storage()._cdata for argument in (*args, *kwargs.values())
                for tensor in tensors_in(argument)}
        for tensor in tensors_in(result):
            untyped = tensor.untyped_storage()
            if untyped._cdata not in read:
                self._born.add(untyped)
        tensor = untyped = None  # drops these references, because references to the tensor are counted
        self.peak_bytes = max(self.peak_bytes, self._born.total())
        return result


def watch_step(model, step):
    """Returns executed ops by name, and the peak minus the bytes in use before the step."""
    model.zero_grad(set_to_none=True)
    is_cuda = next(model.parameters()).is_cuda
    with StepWatch() as watch, watch.in_linear:
        step().backward()
    model.zero_grad(set_to_none=True)
    return watch.executed, _cuda_peak(model, step) if is_cuda else watch.peak_bytes


def _cuda_peak(model, step):
    """Measures the peak of CUDA's caching allocator, without a dispatch mode. The peak includes kernel workspaces."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step().backward()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    model.zero_grad(set_to_none=True)
    return peak


def hash_of_step(model, step, seed):
    """Hashes the bits of the loss and of every gradient."""
    model.zero_grad(set_to_none=True)
    torch.manual_seed(seed)
    loss = step()
    loss.backward()
    digest = hashlib.sha256(_bytes_of(loss.detach().reshape(1)))
    for name, parameter in model.named_parameters():
        digest.update(name.encode() + (b"none" if parameter.grad is None else _bytes_of(parameter.grad)))
    model.zero_grad(set_to_none=True)
    return digest.hexdigest()


def _bytes_of(tensor):
    on_cpu = tensor.detach().cpu().contiguous()
    return ctypes.string_at(on_cpu.data_ptr(), on_cpu.numel() * on_cpu.element_size())


def time_step(model, step):
    """Returns the seconds of forward and backward."""
    is_cuda = next(model.parameters()).is_cuda
    model.zero_grad(set_to_none=True)
    if is_cuda:
        torch.cuda.synchronize()
    start = time.perf_counter()
    step().backward()
    if is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - start
