"""The private names of torch that the package uses, and how they differ between releases of torch.

These names may disappear in any release of torch. They are checked when the package is imported, or in the first
recorded step if torch imports their module lazily."""

from __future__ import annotations

import sys
from typing import Any

# Names that exist after `import torch`.
NAMES = (
    "torch._C._dynamo.eval_frame.get_eval_frame_callback", "torch._C._dynamo.eval_frame.set_code_exec_strategy",
    "torch._C._dynamo.eval_frame._FrameExecStrategy", "torch._C._dynamo.eval_frame._FrameAction.SKIP",
    "torch._C._dynamo.eval_frame._FrameAction.DEFAULT", "torch._C._autograd._saved_tensors_hooks_is_enabled",
    "torch._C._dispatch_key_parse", "torch._ops._higher_order_ops",
    "torch._C._ExcludeDispatchKeyGuard", "torch._C._ForceDispatchKeyGuard", "torch._C.DispatchKeySet",
    "torch._C.DispatchKey.ADInplaceOrView", "torch._C.DispatchKey.AutogradFunctionality", "torch._C.TensorBase._cdata",
    "torch.utils._pytree.tree_leaves", "torch.nn.Module._call_impl",
    "torch.utils.checkpoint.CheckpointFunction.apply", "torch.autograd.function._SingleLevelFunction", "torch._C._get_schema",
    "torch._C._dispatch_get_all_op_names")
# Names of the function that begins a non-reentrant checkpoint: the first since torch 2.14, the second in earlier
# releases.
CHECKPOINT_BEGINNINGS = ("_checkpoint_without_reentrant_generator_impl", "_checkpoint_without_reentrant_generator")


def require() -> None:
    """Raises ImportError for the first name that torch lacks."""
    for name in NAMES:
        if look_up(name) is None:
            raise ImportError(missing(name))
    checkpoint_beginning()


def checkpoint_beginning() -> str:
    """Returns the first of CHECKPOINT_BEGINNINGS that torch defines. Raises ImportError if torch defines none of
    them."""
    names = [name for name in CHECKPOINT_BEGINNINGS if look_up(f"torch.utils.checkpoint.{name}") is not None]
    if not names:
        raise ImportError(missing(f"torch.utils.checkpoint.{CHECKPOINT_BEGINNINGS[-1]}"))
    return names[0]


def gradients_die_in_graphs() -> bool:
    """Returns whether backward of a compiled graph frees each incoming gradient after its last use. This is so from
    torch 2.13 on. In earlier releases, autograd holds these gradients until the graph's backward returns."""
    return look_up("torch.autograd.function.Function.boxed_grads_call") is not None


def look_up(name: str) -> Any:
    """Returns the object with this dotted name in an imported module, or None."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        found: Any = sys.modules.get(".".join(parts[:length]))
        if found is None:
            continue
        for part in parts[length:]:
            found = getattr(found, part, None)
        return found
    return None


def missing(name: str) -> str:
    version = sys.modules["torch"].__version__
    return (f"rematch uses {name}, which torch {version} does not have: "
            "install an unmodified torch that this release of rematch supports")
