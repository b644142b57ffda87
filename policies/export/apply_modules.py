# Equivalent op names. The first is replaced by the second before ops are compared.
OTHER_NAMES = {"aten::_reshape_alias": "aten::view", "aten::add_.Tensor": "aten::add.Tensor"}


class Mismatch(RuntimeError):
    """The plan was made for another model."""


def find_module(model, name):
    """Returns the module with this dotted path. A number is an index into the children of a Sequential."""
    module = model
    for part in name.split("."):
        children = dict(module.named_children())
        if part not in children and part.isdigit() and int(part) < len(children):
            part = list(children)[int(part)]
        if part not in children:
            known = ", ".join(dict(module.named_children())) or "none"
            raise Mismatch(
                f"the plan checkpoints {name}, but the model has no such module; instead of {part!r}, the model has "
                f"{known}; make the plan from a trace of this model"
            )
        module = children[part]
    return module


def apply(model):
    """Checkpoints the model's modules as planned. Returns a function that undoes this."""
    changes = [change for name in MODULES for change in forwards(name, find_module(model, name))]
    for module, forward in changes:
        module.forward = forward

    def undo():
        for module, _ in changes:
            del module.forward

    return undo
