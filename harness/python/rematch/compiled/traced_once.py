"""Compiles captured graphs under a plan without tracing the model again.

Dynamo and AOTAutograd trace the graphs when the step is captured. Dynamo keeps what the backend returns for a graph.
Here, that is a function which compiles the graph when it is first called after the plan was chosen, like backward
graphs that torch compiles at their first call. AOTAutograd then gets the joint graph that it has traced before."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import torch
from torch import fx
from torch._guards import CompileContext, TracingContext, compile_context, tracing

Backend = Callable[[fx.GraphModule, Sequence[Any]], Callable[..., Any]]

# The functions of torch._functorch.aot_autograd that trace a graph. A torch without them traces the joint graph again.
_TRACING = ("run_functionalized_fw_and_collect_metadata", "aot_stage1_graph_capture")


class TracedOnce:
    """A backend of torch.compile. Graphs run under the backend `capture` until follow() is called."""

    def __init__(self, capture: Backend, name: str):
        self.compiler_name = name
        self._capture = capture
        self._planned: Backend | None = None
        self._joints: _JointGraphs | None = None  # of the graph that is captured
        self.can_follow = True  # False if a captured graph cannot be compiled without another trace

    def follow(self, planned: Backend) -> None:
        """Compiles graphs with the backend `planned` from now on, and captured graphs at their next call."""
        self._planned = planned

    def note_joint(self, module: fx.GraphModule) -> None:
        """Notes the joint graph of the graph that is captured, as the partitioner receives it."""
        if self._joints is not None:
            self._joints.note(module)

    def __call__(self, module: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        if self._planned is not None:
            return self._planned(module, inputs)
        self.can_follow = self.can_follow and _adds_no_guards(module, inputs)
        self._joints = _JointGraphs()
        waiting: _Waiting | None = _Waiting(module, inputs, self._joints)
        try:
            with self._joints.noted():
                run = self._capture(module, inputs)
        finally:
            self._joints = None

        def call(*arguments: Any) -> Any:
            nonlocal run, waiting
            if waiting is not None and self._planned is not None:
                from torch._dynamo.convert_frame import compile_lock

                with compile_lock:
                    if waiting is not None:
                        run = waiting.compiled(self._planned)
                        waiting = None
            return run(*arguments)
        return call


def _adds_no_guards(module: fx.GraphModule, inputs: Sequence[Any]) -> bool:
    """Returns whether compiling the graph adds no guards. Guards are too late once Dynamo has stored the graph. Graphs with
    symbolic sizes add guards. Also returns False for the parts into which Dynamo splits a graph for
    DistributedDataParallel, because they share a context."""
    context = TracingContext.try_get()
    if context is None or getattr(context, "ddp_optimizer_ctx", None) is not None:
        return False
    values = [*inputs, *(node.meta.get("example_value") for node in module.graph.nodes)]
    return not any(isinstance(leaf, (torch.SymInt, torch.SymFloat, torch.SymBool))
                   or isinstance(leaf, torch.Tensor) and leaf._has_symbolic_sizes_strides
                   for leaf in torch.utils._pytree.tree_leaves(values))


class _Waiting:
    """A captured graph that waits for its plan, with the state of torch's compiler."""

    def __init__(self, module: fx.GraphModule, inputs: Sequence[Any], joints: _JointGraphs):
        self._module = module
        self._inputs = inputs
        self._joints = joints
        self._tracing = TracingContext.try_get()
        self._compiling = CompileContext.try_get()

    def compiled(self, backend: Backend) -> Callable[..., Any]:
        """Compiles the graph. Must run where the graph is called, because autocast and other modes have the state
        there that Dynamo's guards require."""
        from torch.fx._lazy_graph_module import _use_lazy_graph_module
        from torch.utils._python_dispatch import _disable_current_modes

        with _disable_current_modes(), tracing(self._tracing), compile_context(self._compiling), _use_lazy_graph_module(True), \
                self._joints.reused():
            return backend(self._module, self._inputs)


class _JointGraphs:
    """The joint graph that AOTAutograd traces for one graph of Dynamo, and the other results of this trace."""

    def __init__(self) -> None:
        self._metadata: list[Any] = []
        self._traces: list[_Trace] = []
        self._joints: list[fx.GraphModule] = []

    def note(self, module: fx.GraphModule) -> None:
        self._joints.append(_copy_of(module))

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """Notes what AOTAutograd traces."""
        from torch._functorch import aot_autograd

        collect, trace = (getattr(aot_autograd, name, None) for name in _TRACING)
        if collect is None or trace is None:
            yield
            return

        def collect_and_note(*arguments: Any, **keywords: Any) -> Any:
            collect_one = collect(*arguments, **keywords)

            def collect_one_and_note(*values: Any) -> Any:
                self._metadata.append(copy.copy(found := collect_one(*values)))
                return found
            return collect_one_and_note

        def trace_and_note(state: Any, function: Any) -> Any:
            found = trace(state, function)
            self._traces.append(_Trace(state, found))
            return found

        with _replaced(collect_and_note, trace_and_note):
            yield

    @contextlib.contextmanager
    def reused(self) -> Iterator[None]:
        """Gives AOTAutograd what it has traced before."""
        from torch._inductor import compile_fx

        if not self._can_be_reused():
            yield
            return

        def collect(*_: Any, **__: Any) -> Any:
            return lambda *_: copy.copy(self._metadata[0])

        def trace(state: Any, _: Any) -> Any:
            return self._traces[0].restored(state, _copy_of(self._joints[0]))

        # Inductor's passes had changed the joint graph before it was noted.
        with _replaced(collect, trace), \
                mock.patch.object(compile_fx, "_recursive_joint_graph_passes", lambda module, *_, **__: module):
            yield

    def _can_be_reused(self) -> bool:
        from torch._functorch import config

        return len(self._metadata) == len(self._traces) == len(self._joints) == 1 and self._traces[0].is_plain \
            and not list(self._joints[0].children()) and not callable(config.joint_custom_pass)


class _Trace:
    """A copy of the result of AOTAutograd's trace, because compiling changes the original. It does not include the
    graph."""

    def __init__(self, state: Any, found: Any):
        self._of_state = {name: copy.copy(getattr(state, name)) for name in ("flat_args", "flat_args_descs", "fw_metadata")}
        self._found = dataclasses.replace(found, graph_module=None, wrappers=list(map(copy.copy, found.wrappers)),
                                          updated_flat_args=_copied_lists(found.updated_flat_args))
        self.is_plain = found.maybe_subclass_meta is None  # tensor subclasses have state that compiling changes

    def restored(self, state: Any, module: fx.GraphModule) -> Any:
        """Returns the result of the trace with this joint graph, and restores what the trace has stored in `state`."""
        for name, value in self._of_state.items():
            setattr(state, name, copy.copy(value))
        return dataclasses.replace(self._found, graph_module=module, wrappers=list(map(copy.copy, self._found.wrappers)),
                                   updated_flat_args=_copied_lists(self._found.updated_flat_args))


def _copied_lists(arguments: Any) -> Any:
    return tuple(map(list, arguments)) if isinstance(arguments, tuple) else list(arguments)


def _copy_of(module: fx.GraphModule) -> fx.GraphModule:
    return fx.GraphModule(module, copy.deepcopy(module.graph))


@contextlib.contextmanager
def _replaced(*functions: Callable[..., Any]) -> Iterator[None]:
    """Replaces the functions that trace a graph. This is safe, because torch compiles one graph at a time, under a
    lock."""
    from torch._functorch import aot_autograd

    with contextlib.ExitStack() as stack:
        for name, function in zip(_TRACING, functions, strict=True):
            stack.enter_context(mock.patch.object(aot_autograd, name, function))
        yield
