"""Every choice of regions that torch_remat offers for the modules of a layer: each module is saved or recomputed.
If plain ops of the layer read a module's output, declares that to torch_remat."""

import contextlib
import functools
import itertools

# The number of subsets grows exponentially. More modules would take minutes per model, so modules without parameters
# are left out first.
MAX_CHOICES = 6
# Modules that are never worth saving. A layer may call such a module several times, and names of regions must be
# unique.
NEVER_REGIONS = ("Dropout", "Identity")


def choice_of(name):
    """Maps a module of the second stream of tokens to the name of the matching module of the first stream."""
    return name.removesuffix("_context")


def choices(layers):
    """Returns the names under which modules of the layers are saved or recomputed."""
    children = [(choice_of(name), child) for layer in layers for name, child in layer.named_children()
                if type(child).__name__ not in NEVER_REGIONS]
    found = list(dict.fromkeys(name for name, _ in children))
    if len(found) > MAX_CHOICES:
        found = list(dict.fromkeys(name for name, child in children if any(True for _ in child.parameters())))
    return found


def subsets(names):
    return itertools.chain.from_iterable(itertools.combinations(names, count) for count in range(len(names) + 1))


def saved_region(torch_remat, function, name):
    """Wraps the function in a region that is saved, not recomputed, so that ops outside the region may read its
    results."""
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
    """Yields (family, name, function that applies it) for every subset of saved modules, first in every layer and then
    in every second layer. `hooks` replay random draws, which torch_remat leaves to its users."""
    every = [layer for of_list in blocks.values() for layer in of_list]
    second = [layer for of_list in blocks.values() for layer in of_list[::2]]
    names = choices(every)
    for saved in subsets(names):
        kept = "saved: " + (", ".join(saved) or "nothing")
        for layers, where in ((every, ""), (second, ", every second layer")):
            yield "remat", f"torch_remat, {kept}{where}", functools.partial(
                rematerialized, torch_remat, layers, names, saved, hooks)
