"""Finds the model's layers, and opens scopes around their calls. The scopes have the same names as in package
rematch."""

import torch

NO_INDEX = -1


def find_blocks(model):
    """Returns the model's lists of layers by name. A list is an outermost ModuleList, ModuleDict or Sequential of two
    or more modules of one class that have parameters and children."""
    found = {}

    def visit(module, path):
        is_container = isinstance(module, (torch.nn.ModuleList, torch.nn.ModuleDict, torch.nn.Sequential))
        if is_container and _is_block_list(list(module.children())):
            found[path] = list(module.children())
            return
        for name, child in module.named_children():
            visit(child, f"{path}.{name}" if path else name)

    visit(model, "")
    return found


def _is_block_list(modules):
    if len(modules) < 2 or len({type(module) for module in modules}) != 1:
        return False
    return any(True for _ in modules[0].parameters()) and any(True for _ in modules[0].children())


class ModuleScopes:
    """A context manager that calls enter(name, index) before every call of a module, and leave() after the call.
    `index` is a block's position in its list, and NO_INDEX for other modules. A module that contains a list of blocks
    opens no scope, so that the scopes of blocks are top-level."""

    def __init__(self, model, blocks, enter, leave):
        self._enter, self._leave = enter, leave
        self._handles = []
        self._index_of = {id(block): (path, index)
                          for path, modules in blocks.items() for index, block in enumerate(modules)}
        self._around_blocks = {".".join(path.split(".")[:count])
                               for path in blocks for count in range(path.count(".") + 2)} | {""}
        self._visit(model, "", "")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _visit(self, module, path, name_in_scope):
        if id(module) in self._index_of:
            self._hook(module, *self._index_of[id(module)])
            name_in_scope = ""
        elif path not in self._around_blocks and not isinstance(module, (torch.nn.ModuleList, torch.nn.ModuleDict)):
            self._hook(module, name_in_scope, NO_INDEX)
            name_in_scope = ""
        for name, child in module.named_children():
            self._visit(child, f"{path}.{name}" if path else name, f"{name_in_scope}.{name}" if name_in_scope else name)

    def _hook(self, module, name, index):
        entered = []  # empty if the module failed before enter()

        def enter(*_):
            self._enter(name, index)
            entered.append(True)

        def leave(*_):
            if entered:
                entered.pop()
                self._leave()

        self._handles.append(module.register_forward_pre_hook(enter))
        self._handles.append(module.register_forward_hook(leave, prepend=True, always_call=True))
