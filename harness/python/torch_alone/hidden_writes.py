"""Rejects steps whose code writes to its arguments without torch's knowledge. Only package rematch can trace such a
step, because its plans store the hidden writes."""

import contextlib

import torch
from torch.autograd import function as function_module

from torch_alone.model_file import Refused

# Libraries whose autograd functions write through raw pointers. On tensors without data, such writes cannot be detected
# by comparing content.
KNOWN_LIBRARIES = ("bitsandbytes", "flash_attn", "liger_kernel", "transformer_engine", "unsloth", "xformers")
# torch's own op libraries, whose schemas mark every write.
KNOWN_NAMESPACES = ("aten", "prim", "prims", "c10d", "_c10d_functional", "c10d_functional")

_watchers = []  # the `unrecorded` argument of each active functions_watched(); the innermost call comes last


def refuse_silent_write(name, before, after):
    """Raises Refused if the content of a tensor changed but its version did not."""
    for (old_version, old), (version, new) in zip(before, after, strict=True):
        if version == old_version and old != new:
            _refuse(f"{name} writes to an argument without telling torch")


def contents_of(arguments):
    """Returns the version and a hash of each tensor in the arguments. Tensors without data have no hash."""
    return [(tensor._version, _hash_of(tensor)) for tensor in torch.utils._pytree.tree_leaves(arguments)
            if isinstance(tensor, torch.Tensor) and not tensor.is_inference()]


@contextlib.contextmanager
def functions_watched(unrecorded):
    """Watches every autograd function. `unrecorded()` is a context manager under which ops are not recorded."""
    _watchers.append(unrecorded)
    try:
        yield
    finally:
        _watchers.pop()


def _hook_functions():
    """Hooks Function.apply for the whole process. From torch 2.14 on, the hook misses calls through an `apply` that was
    bound before the hook was set. So import this module before the model's modules."""
    calls_base = getattr(torch.autograd.Function.apply, "__module__", "") == function_module.__name__
    holder = function_module._SingleLevelFunction if calls_base else torch.autograd.Function
    own = vars(holder).get("apply")  # None if no other code has hooked the class; `apply` is then inherited

    def apply(function, *arguments, **keywords):
        run = super(holder, function).apply if own is None else own.__get__(None, function)
        return _run_watched(function, run, arguments, keywords) if _watchers else run(*arguments, **keywords)

    holder.apply = classmethod(apply)


def _run_watched(function, run, arguments, keywords):
    unrecorded = _watchers[-1]
    name = f"{function.__module__}:{function.__qualname__}"
    with unrecorded():
        before = contents_of(arguments)
    result = run(*arguments, **keywords)
    with unrecorded():
        after = contents_of(arguments)
    refuse_silent_write(name, before, after)
    if name.partition(".")[0] in KNOWN_LIBRARIES and any(content is None for _, content in after):
        _refuse(f"{name} may write to its arguments without telling torch, and tensors without data cannot show this")
    return result


def _hash_of(tensor):
    if tensor.is_meta or isinstance(tensor, torch._subclasses.FakeTensor) or tensor.layout != torch.strided:
        return None
    data = torch.view_as_real(tensor.detach().resolve_conj()) if tensor.is_complex() else tensor.detach()
    integer = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[data.element_size()]
    return int(data.contiguous().view(integer).sum(dtype=torch.int64))


def _refuse(what):
    raise Refused(f"{what}; record the step with the package: rematch.trace(model, step)")


_hook_functions()
