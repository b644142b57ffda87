"""Runs torch_remat on the modules of a layer, with every choice of saved and recomputed modules. Declares every output
of a saved module to torch_remat, because ops outside the module may read it."""

import contextlib
import functools
import itertools

# Maximum number of modules to choose from, because each module doubles the number of choices. If a layer has more, only
# its modules with parameters are used.
MAX_CHOICES = 6
# Modules that are not worth saving. They cannot be regions, because a layer may call such a module several times and a
# region's name must be unique.
NEVER_REGIONS = ("Dropout", "Identity")


def choice_of(name):
    """Returns the module's name. If the model has two streams of tokens, parallel modules of both streams share one
    name."""
    return name.removesuffix("_context")


def choices(layers):
    """Returns the names of the modules that can be saved or recomputed."""
    children = [(choice_of(name), child) for layer in layers for name, child in layer.named_children()
                if type(child).__name__ not in NEVER_REGIONS]
    found = list(dict.fromkeys(name for name, _ in children))
    if len(found) > MAX_CHOICES:
        found = list(dict.fromkeys(name for name, child in children if any(True for _ in child.parameters())))
    return found


def subsets(names):
    return itertools.chain.from_iterable(itertools.combinations(names, count) for count in range(len(names) + 1))


def saved_region(torch_remat, function, name):
    """Wraps the function in a region that is saved, not recomputed. Declares its outputs to torch_remat, so that ops
    outside the region may read them."""
    kept = torch_remat.region(function, name, recompute=False)

    def call(*inputs, **keywords):
        output = kept(*inputs, **keywords)
        tensors = output if isinstance(output, (tuple, list)) else [output]
        torch_remat.recompute_needs_tensor(*(tensor for tensor in tensors if tensor is not None))
        return output

    return call


def region(torch_remat, function, name, saved):
    if saved:
        return saved_region(torch_remat, function, name)
    return torch_remat.region(function, name, recompute=True)


@contextlib.contextmanager
def rematerialized(torch_remat, layers, names, saved, hooks):
    patched = []
    try:
        for layer in layers:
            for name, child in layer.named_children():
                if choice_of(name) in names:
                    child.forward = region(torch_remat, child.forward, name, choice_of(name) in saved)
                    patched.append(child)
            layer.forward = torch_remat.checkpoint(region_name="layer", recompute_state_hooks=hooks)(layer.forward)
            patched.append(layer)
        yield
    finally:
        for module in patched:
            del module.forward


def remat_offers(torch_remat, blocks, hooks):
    """Yields (family, name, function that applies it) for every subset of saved modules. A subset is applied to every
    layer or to every second layer. `hooks` replay random draws, because torch_remat does not replay them itself."""
    every = [layer for of_list in blocks.values() for layer in of_list]
    second = [layer for of_list in blocks.values() for layer in of_list[::2]]
    names = choices(every)
    for saved in subsets(names):
        kept = "saved: " + (", ".join(saved) or "nothing")
        for layers, where in ((every, ""), (second, ", every second layer")):
            yield "remat", f"torch_remat, {kept}{where}", functools.partial(
                rematerialized, torch_remat, layers, names, saved, hooks)
