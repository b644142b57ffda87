"""The ways to checkpoint the model of package_model.py ("arms") that scripts/compare_with_pytorch --package compares.

An arm is `none` or LEVEL/WAY, such as `attn_only/remat`. LEVEL says what a layer keeps for backward. WAY says which
code does this: package rematch under one of its schedules, torch.utils.checkpoint, or torch_remat."""

import functools
import pathlib
import sys

import torch
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts, noop_context_fn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from fronts.remat import saved_region  # noqa: E402

SCHEDULES = ("whole_region", "on_demand")
POLICIES = ("full", "attn_only", "save_mm")
# The ops that each policy saves on a CPU, for create_selective_checkpoint_contexts.
aten = torch.ops.aten
SAVED_OPS = {"full": [], "attn_only": [aten._scaled_dot_product_flash_attention_for_cpu.default],
             "save_mm": [aten.mm.default, aten.addmm.default, aten.bmm.default]}
# The modules of a layer. Each name is also a LEVEL, which keeps the tensors that backward needs inside this module.
MODULES = ("attention", "feed_forward")
# The module or method whose results torch_remat keeps, by level. torch_remat cannot select ops, so save_mm is missing.
REMAT_REGIONS = {"full": None, "attn_only": "attention.mix", "attention": "attention", "feed_forward": "feed_forward"}


def plan_of(model, ids, level):
    import rematch

    trace = rematch.trace(model, lambda: model(ids))
    if level in POLICIES:
        return rematch.resolve(trace, level)
    return keeping_module(trace, rematch.resolve(trace, "full"), level)


def keeping_module(trace, plan, module):
    """Returns a plan that keeps the same tensors as a region of torch_remat: the tensors that autograd saves inside the
    module, and the results that the rest of the layer reads."""
    layer = next(kind for kind in trace["types"] if any(scope["path"] == f".{module}" for scope in kind["scopes"]))
    ops_of_plan = plan["types"][0]["ops"]
    inside = [f"{op['scope']}.".startswith(f"{module}.") for op in ops_of_plan]
    read = [pack["value"] for pack in layer["packs"]]
    read += [use for op, is_inside in zip(layer["ops"], inside, strict=True) if not is_inside for use in op["inputs"]]
    kept = {layer["values"][value]["storage"] for value in read if isinstance(value, int) and value >= 0}
    for op, of_plan, is_inside in zip(layer["ops"], ops_of_plan, inside, strict=True):
        if is_inside and not op.get("view") and any(layer["values"][value]["storage"] in kept for value in op["outputs"]):
            of_plan["treatment"] = "save"
    return plan


def use_checkpoint(model, level, keeps_generator):
    saved = SAVED_OPS[level]
    contexts = functools.partial(create_selective_checkpoint_contexts, saved) if saved else noop_context_fn
    for layer in model.layers:
        layer.forward = functools.partial(checkpoint, layer.forward, use_reentrant=False, context_fn=contexts,
                                          preserve_rng_state=keeps_generator)


class GeneratorState:
    """Saves and restores the state of the CPU's random number generator. torch_remat does not do so by itself."""

    def snapshot(self):
        return torch.get_rng_state()

    def restore(self, state):
        torch.set_rng_state(state)


def use_remat(model, level, keeps_generator):
    import torch_remat

    hooks = (GeneratorState(),) if keeps_generator else ()
    for layer in model.layers:
        if REMAT_REGIONS[level] is not None:
            keep_region(torch_remat, layer, REMAT_REGIONS[level])
        layer.forward = torch_remat.checkpoint(region_name="layer", recompute_state_hooks=hooks)(layer.forward)


def keep_region(torch_remat, layer, path):
    """Wraps a module's forward, or another method of a module, in a region that is not recomputed."""
    owner, _, method = path.partition(".")
    owner, method = layer.get_submodule(owner), method or "forward"
    setattr(owner, method, saved_region(torch_remat, getattr(owner, method), path))


def use_package(model, ids, level, schedule):
    """Returns a function that makes a context manager for a forward pass."""
    import rematch

    engine = rematch.Checkpoint(plan_of(model, ids, level), schedule)
    rematch.scopes(model, engine)
    return functools.partial(rematch.recording, engine)


def use(model, ids, arm):
    """Prepares the model. Returns a function that makes a context manager for a forward pass, or None."""
    level, _, way = arm.partition("/")
    if level == "none":
        return None
    if way in SCHEDULES:
        return use_package(model, ids, level, way)
    name, _, generator = way.partition("+")
    if name == "remat":
        use_remat(model, level, generator == "generator")
    else:
        use_checkpoint(model, level, generator == "generator")
    return None
