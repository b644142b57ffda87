"""Converts a recorded step to schema rematch.trace/1.1. Omits op classes and flops, which readers derive themselves."""

from collections import Counter

import torch

from torch_alone.layers import find_blocks
from torch_alone.model_file import Refused
from torch_alone.recorder import Recorder
from torch_alone.step_tables import dtype_name


def record_trace(model, step, name=None, blocks=None, dimensions=None):
    """Records one step of the model without checkpointing. `step` runs forward and returns the loss. Clears
    gradients."""
    blocks = find_blocks(model) if blocks is None else blocks
    if not blocks:
        raise Refused(f"{type(model).__name__} has no list of equal layers: a ModuleList, ModuleDict or Sequential "
                      "of two or more modules of one class")
    model.zero_grad(set_to_none=True)
    recorder = Recorder()
    recorder.record(model, blocks, step)
    gradient_bytes = recorder.born.gradients
    model.zero_grad(set_to_none=True)
    return {"schema": "rematch.trace/1.1", "model": name or type(model).__name__, "dimensions": dimensions or {},
            "dtype": Counter(map(dtype_name, model.parameters())).most_common(1)[0][0],
            "recorded": _recorded_by(model), **_parameters(model), "constant_bytes": _constant_bytes(model),
            "gradient_bytes": gradient_bytes, **_step(recorder)}


def _step(recorder):
    """Returns the step as a single span, which readers split at the blocks."""
    num_ops = len(recorder.ops)
    freed_at = [storage.freed_at for storage in recorder.tables.storages]
    span = {"ops": recorder.ops, "values": recorder.tables.values,
            "storage_bytes": [storage.nbytes for storage in recorder.tables.storages],
            # A negative number is an index into outside_ops: -1 is its first entry, here the end of forward.
            "storage_freed_at": [-1 if op == num_ops else op for op in freed_at],
            "scopes": recorder.scopes.scopes, "packs": recorder.packs}
    return {"types": [span], "spans": [{"type": 0, "outside_ops": [num_ops]}], "blocks": recorder.scopes.blocks,
            "backward_types": [list(_changes(recorder.events))],
            "backward": [{"type": 0, "first_pack": 0, "first_scope": 0}]}


def _changes(events):
    """Yields the events with the change of bytes since the previous event."""
    total = gradients = 0
    for event in events:
        written = {key: value for key, value in event.items() if key not in ("bytes", "gradient_bytes")}
        if "bytes" in event:
            if event["bytes"] != total:
                written["bytes_change"] = event["bytes"] - total
            if event["gradient_bytes"] != gradients:
                written["gradient_bytes_change"] = event["gradient_bytes"] - gradients
            total, gradients = event["bytes"], event["gradient_bytes"]
        yield written


def _recorded_by(model):
    parameter = next(model.parameters())
    return {"by": "export_trace", "torch": torch.__version__, "device": parameter.device.type,
            "fake": isinstance(parameter, torch._subclasses.FakeTensor)}


def _parameters(model):
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    kinds = Counter((parameter.numel(), dtype_name(parameter)) for parameter in trained)
    return {"parameter_bytes": sum(parameter.numel() * parameter.element_size() for parameter in trained),
            "parameters": [{"elements": elements, "dtype": dtype, "count": count}
                           for (elements, dtype), count in kinds.items()]}


def _constant_bytes(model):
    """Returns the bytes of buffers and frozen parameters, counting each storage once."""
    constants = [*model.buffers(), *(parameter for parameter in model.parameters() if not parameter.requires_grad)]
    storages = {tensor.untyped_storage()._cdata: tensor.untyped_storage().nbytes() for tensor in constants}
    return sum(storages.values())
