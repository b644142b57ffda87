"""The values and storages of a step, identified by address, and when the program frees them."""

import torch
from torch.multiprocessing.reductions import StorageWeakRef


def dtype_name(tensor):
    return str(tensor.dtype).removeprefix("torch.")


class Storage:
    """Memory that several values may share."""

    def __init__(self, untyped, is_outside):
        self.nbytes = untyped.nbytes()
        self.is_outside = is_outside  # True if no op of the step allocated the storage
        self.version = 0  # number of in-place writes so far
        self.freed_at = None  # the op after which the program has dropped the storage
        self.own_references = 0  # number of the recorder's saved tensors on the storage
        self._address = untyped._cdata
        self._weak = StorageWeakRef(untyped)

    def is_alive(self):
        return not self._weak.expired()

    def is_held(self):
        # Subtracts 1, because reading a tensor's storage makes a Python object that holds a reference.
        return self.is_alive() and torch._C._storage_Use_Count(self._address) - 1 > self.own_references


class StepTables:
    """Lists of values and storages. Addresses identify tensors and storages as long as these are alive."""

    def __init__(self):
        self.values, self.storages, self.parameters = [], [], []
        self._value_at, self._storage_at = {}, {}
        self._watched = []

    def value_of(self, tensor, producer=None):
        """Returns the index of the tensor's value. If the tensor is unknown, adds a value. Op `producer` made this
        value; None means that it comes from outside the step."""
        known = self._value_at.get(tensor._cdata)
        if known is not None and not known[1].expired():
            return known[0]
        storage, is_new = self._storage_of(tensor, is_outside=producer is None)
        is_parameter = bool(tensor.requires_grad and tensor.is_leaf and producer is None)
        index = len(self.values)
        self.values.append({"producer": producer, "storage": storage, "shape": list(tensor.shape),
                            "dtype": dtype_name(tensor)} | ({"parameter": True} if is_parameter else {}))
        self._value_at[tensor._cdata] = (index, torch._C._WeakTensorRef(tensor))
        if is_parameter:
            self.parameters.append(tensor)
        elif producer is not None and is_new:
            self._watched.append(storage)
        return index

    def storage_of(self, value):
        return self.storages[self.values[value]["storage"]]

    def knows(self, untyped):
        """Returns whether forward has used the storage."""
        index = self._storage_at.get(untyped._cdata)
        return index is not None and self.storages[index].is_alive()

    def note_freed(self, op):
        """Sets freed_at of the storages that the program has dropped by the end of `op`."""
        still_held = []
        for index in self._watched:
            if self.storages[index].is_held():
                still_held.append(index)
            else:
                self.storages[index].freed_at = op
        self._watched = still_held

    def _storage_of(self, tensor, is_outside):
        untyped = tensor.untyped_storage()
        index = self._storage_at.get(untyped._cdata)
        if index is not None and self.storages[index].is_alive():
            return index, False
        self.storages.append(Storage(untyped, is_outside))
        self._storage_at[untyped._cdata] = len(self.storages) - 1
        return len(self.storages) - 1, True


class BytesBorn:
    """Counts the live bytes that backward has allocated, and the part that belongs to gradients of parameters."""

    def __init__(self):
        self.others = self.gradients = 0
        self._alive = {}  # maps the address of a live storage to (weak reference, bytes)

    def add(self, untyped):
        known = self._alive.get(untyped._cdata)
        if known is not None and not known[0].expired():
            return
        self._forget(untyped._cdata)
        self._alive[untyped._cdata] = (StorageWeakRef(untyped), untyped.nbytes())
        self.others += untyped.nbytes()

    def add_gradient(self, untyped):
        known = self._alive.pop(untyped._cdata, None)
        if known is not None:
            self.others -= known[1]
            self.gradients += known[1]

    def total(self):
        for address in [address for address, (weak, _) in self._alive.items() if weak.expired()]:
            self._forget(address)
        return self.others + self.gradients

    def _forget(self, address):
        known = self._alive.pop(address, None)
        if known is not None:
            self.others -= known[1]
