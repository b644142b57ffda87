"""The backends of torch.compile that plans support, and the private names of torch that plans need there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from rematch._library import Refused

BACKENDS = ("inductor", "aot_eager")
_NAMES = ("choose_saved_values_set", "reordering_to_mimic_autograd_engine", "min_cut_rematerialization_partition", "_size_of",
          "get_default_op_list")


def require_backend(backend: object) -> str:
    """Returns the backend. Raises ValueError if plans do not support it."""
    if not isinstance(backend, str) or backend not in BACKENDS:
        raise ValueError(f"backend is {backend!r}; plans support 'inductor' and 'aot_eager'")
    return backend


def require_torch() -> None:
    """Raises Refused if torch lacks a name that is needed to partition graphs."""
    from torch._functorch import partitioners
    from torch._inductor import config

    missing = [f"torch._functorch.partitioners.{name}" for name in _NAMES if not hasattr(partitioners, name)]
    if not hasattr(config, "custom_partitioner_fn"):
        missing.append("torch._inductor.config.custom_partitioner_fn")
    if missing:
        raise Refused(f"rematch.compile uses {missing[0]}, which torch {torch.__version__} does not have: install a torch that this "
                      "release of rematch supports")


def aot_eager(partition: Callable[..., Any], forward_compiler: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Returns the backend "aot_eager" with this partitioner. This backend runs the graphs op by op."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._dynamo.backends.debugging import boxed_nop

    return aot_autograd(fw_compiler=forward_compiler or boxed_nop, bw_compiler=boxed_nop, inference_compiler=boxed_nop,
                        partition_fn=partition, keep_inference_input_mutations=True)
