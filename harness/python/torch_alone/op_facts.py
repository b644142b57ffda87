"""Facts from an op's schema, and the op's name as in traces and plans."""

import dataclasses
import functools

import torch

aten = torch.ops.aten

# Maps ops to the in-place ops that autograd runs if there is no dispatch mode. Under a mode, autograd treats every
# tensor like a tensor subclass: it adds gradients, and biases of linear layers, out of place.
IN_PLACE = {aten.add.Tensor: aten.add_.Tensor, aten.scatter_add.default: aten.scatter_add_.default,
            aten.scatter.src: aten.scatter_.src, aten.index_add.default: aten.index_add_.default}
# References to a tensor inside a mode's handler: the handler's variable, the op's arguments, autograd's buffer and the
# Python object. If there are more references, the tensor has an owner besides autograd.
MOST_USES = 4
MOST_STORAGE_USES = 2


@dataclasses.dataclass(frozen=True)
class OpFacts:
    name: str  # such as "aten::add.Tensor"; overload `default` is omitted
    arguments: tuple
    written: frozenset  # positions of the arguments that the op writes to
    returns_view: bool
    may_draw: bool
    probability: int | None  # position of the dropout probability; if it is 0, the op draws no random numbers
    probability_by_default: float | None


def op_name(func):
    schema = func._schema
    return schema.name + (f".{schema.overload_name}" if schema.overload_name else "")


@functools.cache
def facts_of(func):
    schema = func._schema
    arguments = tuple(argument.name for argument in schema.arguments)
    probability = next((position for position, name in enumerate(arguments) if name in ("dropout_p", "p")), None)
    return OpFacts(
        name=op_name(func), arguments=arguments,
        written=frozenset(position for position, argument in enumerate(schema.arguments)
                          if argument.alias_info is not None and argument.alias_info.is_write),
        returns_view=any(result.alias_info is not None and not result.alias_info.is_write for result in schema.returns),
        may_draw=torch.Tag.nondeterministic_seeded in func.tags,
        probability=probability,
        probability_by_default=None if probability is None else schema.arguments[probability].default_value)


def arguments_of(facts, args, kwargs):
    """Yields (position, value) for every argument, in the schema's order."""
    for position, name in enumerate(facts.arguments):
        yield position, args[position] if position < len(args) else kwargs.get(name)


def draws_random(facts, args, kwargs):
    if not facts.may_draw or facts.probability is None:
        return facts.may_draw
    probability = dict(arguments_of(facts, args, kwargs))[facts.probability]
    if probability is None:
        probability = facts.probability_by_default
    return not isinstance(probability, float) or probability > 0


def tensors_in(value):
    items = value if isinstance(value, (list, tuple)) else (value,)
    return [item for item in items if isinstance(item, torch.Tensor)]


def in_backward_without_mode(func, args):
    """Returns the op that autograd would run instead of `func` without a dispatch mode. The caller must hold no other
    reference to args[0]."""
    inplace = IN_PLACE.get(func)
    if inplace is None or torch.is_grad_enabled() or not isinstance(args[0], torch.Tensor):
        return func
    target = args[0]
    if target._use_count() > MOST_USES or \
            torch._C._storage_Use_Count(target.untyped_storage()._cdata) > MOST_STORAGE_USES or \
            not torch._prims_common.is_non_overlapping_and_dense_or_false(target):
        return func
    if func is aten.add.Tensor and not (isinstance(args[1], torch.Tensor) and target.shape == args[1].shape):
        return func
    return inplace


def is_of_the_mode(func):
    """Returns whether `func` is a detach that runs only under a dispatch mode. Autograd dispatches such a detach when
    it saves a tensor and when it unpacks one in backward."""
    if func is not aten.detach.default:
        return False
    node = torch._C._current_autograd_node()
    return node is None or not node.name().endswith("AccumulateGrad")
