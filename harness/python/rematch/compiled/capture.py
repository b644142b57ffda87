"""Captures the joint graphs of a step and the order of their calls, before compiling anything.

Runs the step's forward once, op by op. The run saves little for backward, so it needs less memory than training."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch.multiprocessing.reductions import StorageWeakRef

from rematch._library import RematchError
from rematch._step import left_as_it_was, loss_of
from rematch.compiled.backends import aot_eager
from rematch.compiled.eager_loss import LossBytes, bytes_of_loss
from rematch.compiled.graph_plans import Option, PhasePeaks
from rematch.compiled.joint_graph import JointGraph, must_be_kept
from rematch.compiled.partitioner import Choose, Partitioner
from rematch.compiled.ranks import bucket_bytes, gathered_bytes
from rematch.compiled.traced_once import TracedOnce


@dataclasses.dataclass
class Call:
    """A call of a captured graph in forward. `inputs` are ids of the storages that the call received; `outputs` are
    weak references to the storages that it returned."""

    graph: str
    inputs: set[int]
    outputs: list[StorageWeakRef | None]


class _NotingPartitioner(Partitioner):
    """Calls `note` with each joint graph before it is partitioned."""

    def __init__(self, choose: Choose, note: Callable[[fx.GraphModule], None]):
        super().__init__(choose, "capture")
        self._note = note

    def __call__(self, gm: fx.GraphModule, joint_inputs: Sequence[object],
                 **kwargs: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
        self._note(gm)
        return super().__call__(gm, joint_inputs, **kwargs)


class Capture:
    """The joint graphs of a step by fingerprint, and the calls of the graphs in order. `loss` is what eager code
    needs to compute the loss after the last call. `options` are Inductor's. `backend` is the backend of torch.compile that
    captures graphs."""

    def __init__(self, backend: str, options: Mapping[str, Any]):
        self.graphs: dict[str, JointGraph] = {}
        self.calls: list[Call] = []
        self.loss = LossBytes()
        self._options = options
        self._last: str | None = None  # the graph that was partitioned last, whose forward is compiled next
        self._partitioner = _NotingPartitioner(self._choose, self._note_joint)
        self.backend = TracedOnce(self._inductor if backend == "inductor" else aot_eager(self._partitioner, self._forward_compiler),
                                  backend)

    def _note_joint(self, module: fx.GraphModule) -> None:
        self.backend.note_joint(module)

    def _choose(self, joint: JointGraph) -> Option:
        self._last = joint.fingerprint()
        self.graphs.setdefault(self._last, joint)
        saved = [*joint.inputs, *(result for op in joint.forward if must_be_kept(op) for result in joint.results(op))]
        return Option("capture", tuple(joint.order[node] for node in saved), False, PhasePeaks(0, 0, 0, 0, 0), 0, 0)

    def _inductor(self, module: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        from torch._inductor import compile_fx

        def compile_one(graph: fx.GraphModule, inputs: Sequence[Any], **keywords: Any) -> Any:
            return self._forward_compiler(graph, inputs)
        return compile_fx.compile_fx(module, inputs, inner_compile=compile_one,
                                     config_patches={**self._options, "custom_partitioner_fn": self._partitioner, "fx_graph_cache": False})

    def _forward_compiler(self, module: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        from torch._dynamo.backends.debugging import boxed_nop

        run = boxed_nop(module, list(inputs))
        name, self._last = self._last, None
        if name is None:  # this is a backward graph, or a graph without gradients
            return run
        num_outputs = len(self.graphs[name].forward_outputs)

        def note_call(arguments: list[Any]) -> Any:
            read = {_storage_id(each) for each in arguments if isinstance(each, torch.Tensor)}
            results = run(arguments)
            self.calls.append(Call(name, read, [StorageWeakRef(each.untyped_storage()) if isinstance(each, torch.Tensor) else None
                                                for each in results[:num_outputs]]))
            return results
        note_call._boxed_call = True  # type: ignore[attr-defined]
        return note_call

    def note_dropped_outputs(self, loss: torch.Tensor) -> None:
        """Finds the graph outputs that the program drops before backward or passes to a later graph. Call this while
        the loss is alive."""
        held_by_loss = _storage_id(loss)
        if any(not output.expired() and output.cdata != held_by_loss for call in self.calls for output in call.outputs if output):
            gc.collect()  # a reference cycle may keep a dropped output alive
        for name, alive in self._alive_outputs().items():
            joint = self.graphs[name]
            joint.dropped_outputs = _all_except(joint, set().union(*alive))

    def note_freed_outputs(self, loss: torch.Tensor) -> None:
        """Finds the graph outputs that backward frees before it reaches their graph, because only eager ops have saved
        them. Runs backward of these ops, so the loss must be deleted afterwards."""
        before = self._alive_outputs()
        self.loss = bytes_of_loss(loss, {output.cdata for call in self.calls for output in call.outputs if output is not None})
        for name, after in self._alive_outputs().items():
            joint = self.graphs[name]
            kept = set().union(*after)
            # Often, the loss reads the output of the last call only.
            of_some_calls = set().union(*before[name]).difference(kept, before[name][0].intersection(*before[name]))
            num_bytes = sum(joint.bytes_of(joint.root(joint.forward_outputs[index]))
                            for alive in before[name] for index in alive & of_some_calls)
            self.loss = dataclasses.replace(self.loss, peak=self.loss.peak + num_bytes)
            joint.dropped_outputs = _all_except(joint, set().union(*before[name]) - of_some_calls)
            joint.freed_outputs = _all_except(joint, kept)

    def _alive_outputs(self) -> dict[str, list[set[int]]]:
        """For each call of each graph, returns the indices of the outputs that are alive, except those that a later
        graph reads."""
        found: dict[str, list[set[int]]] = {}
        for position, call in enumerate(self.calls):
            later = set().union(*(other.inputs for other in self.calls[position + 1:]))
            found.setdefault(call.graph, []).append({
                index for index, output in enumerate(call.outputs)
                if output is not None and not output.expired() and output.cdata not in later})
        return found


def _all_except(joint: JointGraph, indices: set[int]) -> set[fx.Node]:
    return {node for index, node in enumerate(joint.forward_outputs) if index not in indices}


def captured(backend: str, model: torch.nn.Module, modules: Sequence[torch.nn.Module], step: Callable[[], torch.Tensor],
             keywords: Mapping[str, Any], options: Mapping[str, Any] | None = None) -> Capture:
    """Runs the step's forward, and captures the graphs of the compiled `modules`. Afterwards, the modules are not
    compiled. `options` are Inductor's. Raises RematchError if no compiled graph with gradients ran."""
    from torch._dynamo.exc import BackendCompilerFailed
    from torch._functorch import config as functorch_config

    capture = Capture(backend, options or {})
    model.zero_grad(set_to_none=True)
    try:
        for module in modules:
            module.compile(backend=capture.backend, **{name: value for name, value in keywords.items() if name != "mode"})
        with left_as_it_was(model), functorch_config.patch(enable_autograd_cache=False):
            loss = loss_of(model, step)
            capture.note_dropped_outputs(loss)
            if bucket_bytes(model) + gathered_bytes(model) == 0:  # otherwise, hooks on outputs would start to communicate
                capture.note_freed_outputs(loss)
            del loss
    except BackendCompilerFailed as error:
        if isinstance(error.inner_exception, RematchError):
            raise error.inner_exception from None
        raise
    finally:
        for module in modules:
            module._compiled_call_impl = None
    if not capture.calls:
        raise RematchError(f"step() ran no compiled graph with gradients; does it call this {type(model).__name__}?")
    return capture


def _storage_id(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)
