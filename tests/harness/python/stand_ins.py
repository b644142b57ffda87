"""Stand-ins for trainers that are not installed, and a model for them. A stand-in reads the trainer's configuration and
wraps the same layers in the same way as the trainer. Its arguments are the configuration, the model and, if the trainer
offloads, a Host. It returns a function that undoes the wrapping."""

import collections
import fnmatch
import functools
import shlex
import unittest.mock

import torch
import torch.utils.checkpoint
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

aten = torch.ops.aten

GPU_ATTENTION = aten._scaled_dot_product_flash_attention.default, aten._scaled_dot_product_efficient_attention.default
# Trainers list only attention kernels of GPUs. The tests run on a CPU, so the CPU's kernel is added.
ATTENTION = *GPU_ATTENTION, aten._scaled_dot_product_flash_attention_for_cpu.default


# Tensors with fewer elements are not offloaded. Megatron's own limit of 1,048,576 is too large for the tensors of these
# tests.
MEGATRON_LEAST_NUMBERS = 1024


class Projections(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k, self.v = (torch.nn.Linear(dim, dim, bias=False) for _ in range(3))

    def forward(self, x):
        return self.q(x), self.k(x), self.v(x)


class Core(torch.nn.Module):
    """Runs the attention kernel. Arguments and result have the shape [batch, tokens, dim]."""

    def forward(self, q, k, v):
        q, k, v = (part.unflatten(-1, (2, -1)).transpose(1, 2) for part in (q, k, v))
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)


class Rotary(torch.nn.Module):
    """A stand-in for a rotary embedding: returns a new query and a new key."""

    def forward(self, q, k):
        return q * 0.5, k * 0.5


class Attention(torch.nn.Module):
    def __init__(self, dim, rotary=False):
        super().__init__()
        self.qkv, self.core, self.output = Projections(dim), Core(), torch.nn.Linear(dim, dim, bias=False)
        self.rotary = Rotary() if rotary else None

    def forward(self, x):
        q, k, v = self.qkv(x)
        if self.rotary is not None:
            q, k = self.rotary(q, k)
        return self.output(self.core(q, k, v))


class FeedForward(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.w1, self.w3 = (torch.nn.Linear(dim, 3 * dim, bias=False) for _ in range(2))
        self.w2 = torch.nn.Linear(3 * dim, dim, bias=False)

    def forward(self, x):
        return self.w2(functional.silu(self.w1(x)) * self.w3(x))


class Layer(torch.nn.Module):
    def __init__(self, dim, norm, rotary):
        super().__init__()
        self.attention_norm, self.attention = norm(dim), Attention(dim, rotary)
        self.ffn_norm, self.ffn = norm(dim), FeedForward(dim)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.ffn(self.ffn_norm(x))


class Decoder(torch.nn.Module):
    """A model that stores its layers as the trainer expects: in a list, or in a dictionary if `keyed` is true."""

    def __init__(self, dim=32, num_layers=4, vocabulary=64, keyed=False, norm=torch.nn.RMSNorm, rotary=False):
        super().__init__()
        self.embed, self.head = torch.nn.Embedding(vocabulary, dim), torch.nn.Linear(dim, vocabulary, bias=False)
        layers = [Layer(dim, norm, rotary) for _ in range(num_layers)]
        self.layers = (torch.nn.ModuleDict({str(i): layer for i, layer in enumerate(layers)}) if keyed
                       else torch.nn.ModuleList(layers))

    def run_layers(self, x):
        for layer in layers_of(self):
            x = layer(x)
        return x

    def forward(self, ids):
        return self.head(self.run_layers(self.embed(ids)))


def layers_of(model):
    return list(model.layers.values() if isinstance(model.layers, torch.nn.ModuleDict) else model.layers)


def replaced(module, name, function):
    """Replaces a method of one module. Returns a function that undoes this."""
    setattr(module, name, function)
    return functools.partial(delattr, module, name)


def wrapped(module, **options):
    """Wraps a module in torch.utils.checkpoint. Unlike torch's checkpoint_wrapper, does not restore the state of random
    generators by default."""
    options = {"use_reentrant": False, "preserve_rng_state": False, **options}
    return replaced(module, "forward", functools.partial(checkpoint, module.forward, **options))


def wrap_all(modules, **options):
    undo = [wrapped(module, **options) for module in modules]
    return lambda: [take_back() for take_back in undo]


def wrap_all_moving(modules, host, **options):
    """Checkpoints modules, and offloads the inputs that the checkpoints save."""
    options = {"use_reentrant": False, "preserve_rng_state": False, **options}
    undo = [replaced(module, "forward", moving(functools.partial(checkpoint, module.forward, **options), host))
            for module in modules]
    return lambda: [take_back() for take_back in undo]


def saving(saved, halved=()):
    """Returns a context_fn that saves the results of the ops in `saved`, and of every second call of the ops in
    `halved`, starting with the first. Calls are counted separately in forward and in recompute."""
    def contexts():
        num_halved = {False: 0, True: 0}

        def policy(context, op, *args, **kwargs):
            if op in halved:
                num_halved[context.is_recompute] += 1
            is_even = op in halved and num_halved[context.is_recompute] % 2 == 0
            return CheckpointPolicy.MUST_SAVE if op in saved and not is_even else CheckpointPolicy.PREFER_RECOMPUTE
        return create_selective_checkpoint_contexts(policy)
    return contexts


def every(layers, number):
    """Returns every `number`-th layer, or all layers if `number` is 0."""
    return [layer for count, layer in enumerate(layers, 1) if number == 0 or count % number == 0]


class Host:
    """Imitates pinned host memory. A watched step does not count it, as if the model were on a GPU."""

    def __init__(self):
        self.copied_bytes = 0

    def pack(self, tensor, order="C"):
        """Copies to the host. Order "K" keeps the strides."""
        self.copied_bytes += tensor.nbytes
        return tensor.detach().numpy().copy(order)

    def unpack(self, array):
        return torch.from_numpy(array).clone()

    def hooks(self, is_moved=lambda tensor: True):
        """Offloads the tensors that autograd saves and for which `is_moved` returns True. A tensor that several ops
        save is offloaded once."""
        known = {}

        def pack(tensor):
            if not is_moved(tensor):
                return None, tensor
            if tensor.data_ptr() not in known:
                known[tensor.data_ptr()] = self.pack(tensor)
            return known[tensor.data_ptr()], None

        def unpack(packed):
            array, tensor = packed
            return tensor if array is None else self.unpack(array)
        return torch.autograd.graph.saved_tensors_hooks(pack, unpack)


def moving(function, host, is_moved=lambda tensor: True):
    """Runs the function, and offloads what autograd saves while it runs."""
    def forward(*arguments, **keywords):
        with host.hooks(is_moved):
            return function(*arguments, **keywords)
    return forward


class EachCall(TorchDispatchMode):
    """Passes every call of an op to a function."""

    def __init__(self, call):
        super().__init__()
        self.call = call

    def __torch_dispatch__(self, op, types, arguments=(), keywords=None):
        return self.call(op, arguments, keywords or {})


def saving_on(host, saved, is_moved=lambda call, result: True):
    """Returns a context_fn like that of saving(). A saved result is offloaded if `is_moved` returns True for the number
    of the call and the result. Recompute takes the result back instead of calling the op."""
    def contexts():
        held, num_calls = collections.defaultdict(list), 0

        def forward(op, arguments, keywords):
            nonlocal num_calls
            results = op(*arguments, **keywords)
            if op in saved:
                held[op].append(tree_map(functools.partial(hold, num_calls), results))
                num_calls += 1
            return results

        def hold(call, result):
            if not isinstance(result, torch.Tensor):
                return lambda: result
            if is_moved(call, result):
                return functools.partial(host.unpack, host.pack(result, order="K"))
            return result.detach

        def recompute(op, arguments, keywords):
            if op in saved:
                return tree_map(lambda take: take(), held[op].pop(0))
            return op(*arguments, **keywords)
        return EachCall(forward), EachCall(recompute)
    return contexts


def transformers(lines, model, host):
    """Calls transformers' own method, but replaces its save_on_cpu, which would copy into memory that a watched step
    counts."""
    replacement = unittest.mock.patch("transformers.modeling_utils.save_on_cpu", lambda **options: host.hooks())
    replacement.start()
    exec(lines, {"model": model})

    def undo():
        model.activation_checkpointing_disable()
        replacement.stop()
    return undo


def torchtitan(config, model):
    """Imitates torchtitan before it used torch_remat. It was configured by mode and selective_ac_option in the job's
    TOML, and recomputed each region to its end."""
    config = config["activation_checkpoint"]
    layers, option = layers_of(model), config.get("selective_ac_option", "2")
    if config["mode"] == "selective" and option == "op":
        saved = (aten.mm.default, aten.addmm.default, aten.bmm.default, aten.linear.default, aten.topk.default, *ATTENTION)
        context = saving(saved, halved=(aten.mm.default, aten.linear.default))
        return wrap_all(layers, context_fn=context, early_stop=False, preserve_rng_state=True)
    if config["mode"] == "selective":
        layers = every(layers, int(option))
    return wrap_all(layers, early_stop=False, preserve_rng_state=True)


def results_for_backward(layer, x, saved):
    """Returns the numbers of the calls of ops in `saved` whose first result backward reads, directly or through a view.
    Other results are read only by recompute."""
    results, packed = [], set()

    def call(op, arguments, keywords):
        result = op(*arguments, **keywords)
        if op in saved:
            results.append(result[0] if isinstance(result, tuple) else result)
        return result

    def pack(tensor):
        packed.add(tensor.untyped_storage().data_ptr())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), EachCall(call):
        output = layer(x)  # while it lives, no address is used twice
    del output
    return {call for call, result in enumerate(results) if result.untyped_storage().data_ptr() in packed}


def torchtitan_graph_trainer(lines, model, host):
    """Imitates torchtitan's graph trainer with memory policy sac_and_offload, commit b5bcd76c6. Every matmul and the
    attention kernel are saved. A saved result moves to the host if backward itself reads it, it is contiguous, and it
    has at least 4096 bytes. The output of a layer counts as saved too. Nothing that the last layer makes is moved."""
    assert flags_of(lines) == {"--compile.memory_policy": ["sac_and_offload"]}
    saved = (aten.mm.default, aten.addmm.default, aten.bmm.default, *ATTENTION)
    layers = layers_of(model)
    example = torch.randn(1, 2, layers[0].attention_norm.weight.numel(), requires_grad=True)
    undo = []
    for index, layer in enumerate(layers):
        read = results_for_backward(layer, example, saved)

        def is_moved(call, result, read=read, is_last=layer is layers[-1]):
            return not is_last and call in read and result.is_contiguous() and result.nbytes >= 4096
        forward = functools.partial(checkpoint, layer.forward, use_reentrant=False, preserve_rng_state=False,
                                    context_fn=saving_on(host, saved, is_moved))
        is_input_made_by_layer = index > 0
        undo.append(replaced(layer, "forward", moving(forward, host) if is_input_made_by_layer else forward))
    return lambda: [take_back() for take_back in undo]


def remat_config(save_regions=(), recompute_regions=()):
    return save_regions, recompute_regions


REMAT_CONFIGS = {"ActivationRematConfig": remat_config, "FullActivationRematConfig": remat_config,
                 "SelectiveActivationRematConfig": lambda: remat_config(["*"], ["*routed_experts.w13.*"])}


def torchtitan_on_remat(lines, model):
    """Imitates torchtitan with torch_remat. The model declares regions: every linear, the attention kernel and every
    add. The configuration names the regions to save. The last add of a block is always saved."""
    import torch_remat

    (config,) = eval(f"dict({lines})", dict(REMAT_CONFIGS)).values()

    def is_saved(name):
        saved, recomputed = (any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns) for patterns in config)
        return saved and not recomputed

    def declare(module, name, of_several="", is_read_by_region=True):
        region = torch_remat.region(module.forward, name + of_several, recompute=not is_saved(name))

        def forward(x):
            result = region(x)
            torch_remat.recompute_needs_tensor(result)
            return result
        return replaced(module, "forward", region if is_read_by_region else forward)

    def checkpoint_layer(layer):
        add, last_add = (torch_remat.region(torch.add, name, recompute=name != "last_add") for name in ("add", "last_add"))

        def forward(x):
            x = add(x, layer.attention(layer.attention_norm(x)))
            return last_add(x, layer.ffn(layer.ffn_norm(x)))
        return replaced(layer, "forward", torch_remat.checkpoint(region_name="layer")(forward))

    undo = []
    for layer in layers_of(model):
        attention, qkv, ffn = layer.attention, layer.attention.qkv, layer.ffn
        undo += [declare(linear, "attention.qkv_linear.wqkv.linear", part)
                 for linear, part in ((qkv.q, ".q"), (qkv.k, ".k"), (qkv.v, ".v"))]
        undo += [declare(attention.core, "attention.inner_attention"), declare(attention.output, "attention.wo.linear"),
                 declare(ffn.w1, "feed_forward.w13.linear", ".1", is_read_by_region=False),
                 declare(ffn.w3, "feed_forward.w13.linear", ".3", is_read_by_region=False),
                 declare(ffn.w2, "feed_forward.w2.linear"), checkpoint_layer(layer)]
    return lambda: [take_back() for take_back in undo]


def torchtune(config, model, host=None):
    """Imitates torchtune. In torchtune, offloading applies to everything that autograd saves in forward. This stand-in
    offloads only what the checkpoints save."""
    enabled, mode = config.get("enable_activation_checkpointing", False), config.get("ac_mode")
    layers = []
    if enabled and mode is None:
        layers = layers_of(model)
    elif not enabled and mode == "full":
        layers = layers_of(model)
    elif not enabled and mode == "selective":
        layers = every(layers_of(model), int(config["ac_option"]))
    if not config.get("enable_activation_offloading", False):
        return wrap_all(layers)
    return wrap_all_moving(layers, host)


def modalities(config, model):
    """Imitates modalities, which stores its layers in a dictionary."""
    variant, parameters = config["ac_variant"], config["ac_fun_params"]
    layers = list(model.layers.values())
    if variant == "full_activation_checkpointing":
        return wrap_all(layers)
    if variant == "selective_layer_activation_checkpointing":
        return wrap_all(every(layers, parameters["ac_freq"]))
    known = {"ops.aten.mm.default": (aten.mm.default,),
             "ops.aten._scaled_dot_product_efficient_attention.default": (),
             "ops.aten._scaled_dot_product_flash_attention.default": ATTENTION,
             "ops.aten.max.default": (aten.max.default,)}
    saved = [op for key in parameters["save_ops_keys"] for op in known[key]]
    return wrap_all(layers, context_fn=saving(saved, halved=(aten.mm.default,)))


def axolotl(config, model, host=None):
    """Imitates axolotl, which passes arguments from the run's YAML to a method of transformers' models."""
    keywords = dict(config.get("gradient_checkpointing_kwargs", {"use_reentrant": True}))
    if selective := config.get("selective_checkpointing"):
        # axolotl offloads only tensors of at least 1 MiB. The tensors of these tests are smaller.
        is_offloaded = isinstance(selective, dict) and selective.get("offload", False)
        contexts = saving_on(host, ATTENTION) if is_offloaded else saving(ATTENTION)
        keywords = {"use_reentrant": False, "context_fn": contexts}
    if config.get("activation_offloading") == "hidden_states":  # axolotl then sets use_reentrant to False
        lines = 'model.activation_checkpointing_enable({"use_reentrant": False}, offload=True)'
        return transformers(lines, model, host)
    if config["gradient_checkpointing"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=keywords)
    return model.gradient_checkpointing_disable


def apply_activation_checkpointing(model, checkpointing_type, n_layer=1):
    """Imitates FastVideo's function of the same name. `model` is the transformer."""
    layers = layers_of(model)
    if checkpointing_type == "block_skip":
        layers = layers[::n_layer]
    # The whole model is one region. FastVideo names only GPU kernels of attention, so attention on a CPU is not saved.
    if checkpointing_type == "ops":
        mm = aten.mm.default
        return wrapped(model, context_fn=saving((mm, *GPU_ATTENTION), halved=(mm,)))
    if checkpointing_type == "attn_only":
        return wrap_all(layers, context_fn=saving(ATTENTION))
    return wrap_all(layers)


def flags_of(lines):
    """Parses a command line. Maps each flag to the list of its values."""
    flags = {}
    for word in shlex.split(lines):
        if word.startswith("--"):
            values = flags[word] = []
        else:
            values.append(word)
    return flags


def fastvideo_1716(lines, model):
    """Imitates FastVideo with its pull request 1716, in which type `ops` makes each layer a region and keeps the
    results of attention."""
    assert flags_of(lines) == {"--enable-gradient-checkpointing-type": ["ops"]}
    return wrap_all(layers_of(model), context_fn=saving(ATTENTION))


def fastvideo(lines, model):
    return apply_activation_checkpointing(model, *flags_of(lines)["--enable-gradient-checkpointing-type"])


class CheckpointWithoutOutput(torch.autograd.Function):
    """Imitates Megatron's class of this name. After the next module has read the output, the caller frees the output's
    storage. Before backward of that module, a hook recomputes the output and fills the storage again."""

    @staticmethod
    def forward(ctx, function, hold, x):
        ctx.hold = hold
        with torch.enable_grad():  # without grad mode, a norm would use another kernel
            output = function(x.detach()).detach()
        hold.update(function=function, x=x.detach(), output=output)
        return hold["output"]

    @staticmethod
    def backward(ctx, gradient):
        hold = ctx.hold
        torch.autograd.backward(hold["again"], gradient)
        return None, None, hold["leaf"].grad

    @staticmethod
    def discard(hold, until):
        storage = hold["output"].untyped_storage()
        size = storage.size()
        storage.resize_(0)

        def run_again(_):
            with torch.enable_grad():
                hold["leaf"] = hold["x"].requires_grad_()
                hold["again"] = hold["function"](hold["leaf"])
            storage.resize_(size)
            storage.copy_(hold["again"].untyped_storage())
        until.register_hook(run_again)


def without_outputs_of_norms(layer):
    """Frees the outputs of the layer's norms after the next module has read them, as Megatron does. Returns a function
    that undoes the wrapping."""
    def without_output(norm, module, x):
        hold = {}
        result = module(CheckpointWithoutOutput.apply(norm, hold, x))
        CheckpointWithoutOutput.discard(hold, until=result)
        return result

    def forward(x):
        x = x + without_output(layer.attention_norm, layer.attention, x)
        return x + without_output(layer.ffn_norm, layer.ffn, x)
    return replaced(layer, "forward", forward)


def offloading_megatron(modules, layers, host):
    """Offloads what autograd saves in these modules, except small tensors and parameters. Skips the last layer."""
    parts = {"qkv_linear": lambda layer: layer.attention.qkv, "core_attn": lambda layer: layer.attention.core,
             "attn_proj": lambda layer: layer.attention.output}

    def is_moved(tensor):
        return tensor.numel() >= MEGATRON_LEAST_NUMBERS and tensor.untyped_storage().data_ptr() not in parameters
    parameters = {parameter.untyped_storage().data_ptr() for layer in layers for parameter in layer.parameters()}
    parts = [parts[name](layer) for layer in layers[:-1] for name in modules]
    undo = [replaced(part, "forward", moving(part.forward, host, is_moved)) for part in parts]
    return lambda: [take_back() for take_back in undo]


def megatron(lines, model, host=None):
    """Imitates Megatron, which can recompute groups of layers, the first layers, or some modules of every layer. It
    recomputes each region to its end."""
    flags = flags_of(lines)
    layers = layers_of(model)
    if "--fine-grained-activation-offloading" in flags:
        return offloading_megatron(flags["--offload-modules"], layers, host)
    if flags.get("--recompute-modules") == ["layernorm"]:
        undo = [without_outputs_of_norms(layer) for layer in layers]
        return lambda: [take_back() for take_back in undo]
    reentrant = {"use_reentrant": True}
    if flags["--recompute-granularity"] == ["selective"]:
        parts = {"core_attn": lambda layer: layer.attention.core, "mlp": lambda layer: layer.ffn}
        chosen = flags.get("--recompute-modules", ["core_attn"])
        return wrap_all([parts[name](layer) for layer in layers for name in chosen], **reentrant)
    number = int(flags["--recompute-num-layers"][0])
    if flags["--recompute-method"] == ["block"]:
        return wrap_all(layers[:number], **reentrant)

    def run_group(first, x):
        for layer in layers[first:first + number]:
            x = layer(x)
        return x

    def run_layers(x):
        for first in range(0, len(layers), number):
            x = checkpoint(functools.partial(run_group, first), x, use_reentrant=True)
        return x
    return replaced(model, "run_layers", run_layers)
