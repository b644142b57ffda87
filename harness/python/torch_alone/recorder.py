"""Uses a dispatch mode to record one training step without checkpointing: ops, values, scopes, saved tensors, and what
backward unpacks and allocates."""

import bisect
import contextlib
import weakref

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from torch_alone.hidden_writes import KNOWN_NAMESPACES, contents_of, functions_watched, refuse_silent_write
from torch_alone.layers import NO_INDEX, ModuleScopes
from torch_alone.op_facts import (IN_PLACE, MOST_USES, arguments_of, aten, draws_random, facts_of,
                                  in_backward_without_mode, is_of_the_mode, tensors_in)
from torch_alone.step_tables import BytesBorn, StepTables

NO_SEQUENCE_NUMBER = 1 << 63  # real sequence numbers are smaller; nodes that accumulate gradients have larger ones


class InLinear(TorchFunctionMode):
    """Tracks whether F.linear is running, because F.linear adds its bias in place if there is no dispatch mode."""

    def __init__(self):
        super().__init__()
        self.depth = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        is_linear = func is torch.nn.functional.linear
        self.depth += is_linear
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self.depth -= is_linear


class OpenScopes:
    """The scopes of a forward pass, and the scope in which each node of the graph was made."""

    def __init__(self):
        self.scopes, self.blocks = [], []
        self._open = []
        self._since = []  # (sequence number, scope), ascending
        self._last = None

    def innermost(self):
        return self._open[-1] if self._open else None

    def enter(self, name, index, num_ops):
        parent = self.innermost()
        path = f"{self.scopes[parent]['path']}.{name}" if parent is not None else name
        if index != NO_INDEX:
            self.blocks.append({"list": path, "index": index, "scope": len(self.scopes)})
            path += f".{index}"
        self.scopes.append({"path": path, "parent": parent, "first_op": num_ops, "end_op": num_ops})
        self._open.append(len(self.scopes) - 1)
        self._since.append((torch.autograd._get_sequence_nr(), self._open[-1]))

    def leave(self, num_ops):
        self.scopes[self._open.pop()]["end_op"] = num_ops
        if self._open:
            self._since.append((torch.autograd._get_sequence_nr(), self._open[-1]))

    def at_work(self):
        """Returns the scope that was open when forward made the running node. For a node without a sequence number,
        returns the scope of the node before it."""
        node = torch._C._current_autograd_node()
        if node is not None and node._sequence_nr() < NO_SEQUENCE_NUMBER:
            after = bisect.bisect_right(self._since, node._sequence_nr(), key=lambda interval: interval[0])
            self._last = self._since[after - 1][1] if after else None
        return self._last


class SavedTensor:
    """Autograd holds this object in place of a saved tensor. Its destruction means that autograd has released the
    tensor."""

    __slots__ = ("recorder", "pack", "tensor", "version", "__weakref__")

    def __init__(self, recorder, pack, tensor):
        self.recorder, self.pack, self.tensor, self.version = recorder, pack, tensor, tensor._version

    def __del__(self):
        self.tensor = None
        self.recorder.note_release(self.pack)


class Recorder(TorchDispatchMode):
    """Records the ops that run while the mode is active. Ops after end_forward() count as backward."""

    def __init__(self):
        super().__init__()
        self.tables, self.born, self.scopes = StepTables(), BytesBorn(), OpenScopes()
        self.ops, self.packs, self.events = [], [], []
        self.in_linear = InLinear()
        self._in_backward = False
        self._is_off = False  # True while the recorder's own ops run
        self._unpacked = []  # unpacked tensors that a backward formula may still hold, as indices in packs
        self._saved = []  # weak references to SavedTensor objects, in the order of packs
        self._hooks = []

    def record(self, model, blocks, step):
        """Runs `step`, and backward of the loss that it returns."""
        with functions_watched(self._unrecorded), ModuleScopes(model, blocks, self.enter, self.leave), self, self.in_linear:
            with torch.autograd.graph.saved_tensors_hooks(self.pack, self.unpack):
                loss = step()
            self.end_forward()
            loss.backward()
        for hook in self._hooks:
            hook.remove()

    def enter(self, name, index):
        self.scopes.enter(name, index, len(self.ops))

    def leave(self):
        self.scopes.leave(len(self.ops))

    def end_forward(self):
        self.tables.note_freed(len(self.ops))
        self._note_last_versions()
        self._hooks = [parameter.register_post_accumulate_grad_hook(
            lambda parameter: self.born.add_gradient(parameter.grad.untyped_storage()))
            for parameter in self.tables.parameters]
        self._in_backward = True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self._is_off or func.namespace == "prim" or (self._in_backward and is_of_the_mode(func)):
            return func(*args, **kwargs)
        return (self._run_backward if self._in_backward else self._run_forward)(func, args, kwargs)

    def _run_forward(self, func, args, kwargs):
        index = len(self.ops)
        if func is aten.add.Tensor and self.in_linear.depth and args[0]._use_count() <= MOST_USES:
            func = IN_PLACE[func]
        facts = facts_of(func)
        inputs, writes = self._reads_and_writes(facts, args, kwargs)
        draws = draws_random(facts, args, kwargs)
        with self.op_refused_if_it_writes_silently(func, facts, args, kwargs):
            result = func(*args, **kwargs)
        for storage in writes:
            self.tables.storages[storage].version += 1
        outputs = self._new_values(result, index)
        values = self.tables.values
        read = {values[value]["storage"] for value, _ in inputs}
        op = {"name": facts.name, "scope": self.scopes.innermost(),
              "inputs": [[value, version] if version else value for value, version in inputs], "outputs": outputs}
        if writes:
            op["writes"] = writes
        if facts.returns_view or any(values[output]["storage"] in read for output in outputs):
            op["view"] = True
        if draws:
            op["draws_random"] = True
        self.ops.append(op)
        self.tables.note_freed(index)
        return result

    @contextlib.contextmanager
    def op_refused_if_it_writes_silently(self, func, facts, args, kwargs):
        if func.namespace in KNOWN_NAMESPACES:
            yield
            return
        unwritten = [each for position, each in arguments_of(facts, args, kwargs) if position not in facts.written]
        with self._unrecorded():
            before = contents_of(unwritten)
        yield
        with self._unrecorded():
            refuse_silent_write(facts.name, before, contents_of(unwritten))

    def _reads_and_writes(self, facts, args, kwargs):
        inputs, writes = [], []
        for position, argument in arguments_of(facts, args, kwargs):
            for tensor in tensors_in(argument):
                value = self.tables.value_of(tensor)
                storage = self.tables.values[value]["storage"]
                inputs.append((value, self.tables.storages[storage].version))
                if position in facts.written and storage not in writes:
                    writes.append(storage)
        return inputs, writes

    def _new_values(self, result, producer):
        outputs = []
        for tensor in tensors_in(result):
            next_value = len(self.tables.values)
            if self.tables.value_of(tensor, producer) == next_value:
                outputs.append(next_value)
        return outputs

    @contextlib.contextmanager
    def _unrecorded(self):
        was_off, self._is_off = self._is_off, True
        try:
            yield
        finally:
            self._is_off = was_off

    def pack(self, tensor):
        if self._in_backward:
            return tensor  # traces leave out the graph of a double backward
        self._is_off = True
        try:
            value = self.tables.value_of(tensor)
            storage = self.tables.storage_of(value)
            storage.own_references += 1
            self.packs.append({"value": value, "version": storage.version, "at_op": len(self.ops)})
            saved = SavedTensor(self, len(self.packs) - 1, tensor.detach())
            self._saved.append(weakref.ref(saved))
            return saved
        finally:
            self._is_off = False

    def unpack(self, saved):
        if not isinstance(saved, SavedTensor):
            return saved
        self._is_off = True
        try:
            if self._in_backward:
                self._note({"demand": saved.pack})
                self._unpacked.append(saved.pack)
            return saved.tensor.detach()
        finally:
            self._is_off = False

    def _note_last_versions(self):
        """Sets the version of each saved tensor to the last version of its storage, because backward reads the last
        content. Leaves the version unchanged if autograd knows of a later write, because backward then fails."""
        for pack, saved in zip(self.packs, (weak() for weak in self._saved)):
            storage = self.tables.storage_of(pack["value"])
            if saved is not None and not storage.is_outside and saved.tensor._version == saved.version:
                pack["version"] = storage.version

    def note_release(self, pack):
        self.tables.storage_of(self.packs[pack]["value"]).own_references -= 1
        self._unpacked = [other for other in self._unpacked if other != pack]
        if self._in_backward:
            self.events.append({"release": pack})
        else:
            self.packs[pack]["dropped_at"] = len(self.ops)

    def _run_backward(self, func, args, kwargs):
        func = in_backward_without_mode(func, args)
        result = func(*args, **kwargs)
        for tensor in tensors_in(result):
            untyped = tensor.untyped_storage()
            if not self.tables.knows(untyped):
                self.born.add(untyped)
        tensor = untyped = None  # drops these references, because references to the tensor are counted
        self._note_put_away()
        self._note({"op": facts_of(func).name})
        return result

    def _note_put_away(self):
        """Records which unpacked tensors the backward formula has dropped. A formula may drop a tensor before its last
        op."""
        for pack in list(self._unpacked):
            value = self.packs[pack]["value"]
            if self.tables.values[value]["producer"] is None:
                self._unpacked.remove(pack)
            elif not self.tables.storage_of(value).is_held():
                self._unpacked.remove(pack)
                self.events.append({"put_away": pack})

    def _note(self, event):
        self.events.append(event | {"scope": self.scopes.at_work(), "bytes": self.born.total(),
                                    "gradient_bytes": self.born.gradients})
