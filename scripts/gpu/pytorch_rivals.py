"""The child process of pytorch_steps.py; see there for rivals and turns. Runs all turns whose results are not in FILE
yet.

    pytorch_rivals.py FILE DEADLINE

Under torch.compile, each block is compiled as a whole, including its checkpointing, as in torchtitan. Embedding, head,
loss and optimizer stay eager. All rivals start from the same parameters, so the recorded losses of the first step can
be compared."""

import ctypes
import faulthandler
import functools
import gc
import importlib
import json
import math
import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/parity"))

import data  # noqa: E402
import hash_init  # noqa: E402
import llama  # noqa: E402
import torch  # noqa: E402
import torch._dynamo  # noqa: E402
import torch._inductor.config  # noqa: E402
import wan  # noqa: E402
from policies import MATMUL, Stretch  # noqa: E402
from pytorch_steps import RESTART, turn_order, write_atomically  # noqa: E402
from torch._dynamo.utils import counters  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts  # noqa: E402

aten = torch.ops.aten
# Warm-up in addition to the first step. Later turns need less warm-up, because the kernels are already loaded and the
# device is already busy.
FIRST_WARM_UP = {"min_steps": 2, "min_seconds": 1.0}
LATER_WARM_UP = {"min_steps": 1, "min_seconds": 0.3}
REASON_CHARS = 2000
DYNAMO_ADVICE = "\n\nSet TORCHDYNAMO_VERBOSE=1"  # the beginning of the advice that dynamo appends to every error
# From linux/prctl.h. Makes the kernel kill this child process when its parent ends, so that the device becomes free.
PR_SET_PDEATHSIG = 1
BACKENDS = {"math": SDPBackend.MATH, "flash": SDPBackend.FLASH_ATTENTION,
            "efficient": SDPBackend.EFFICIENT_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
ATTENTION = [aten._scaled_dot_product_flash_attention.default, aten._scaled_dot_product_cudnn_attention.default,
             aten._scaled_dot_product_efficient_attention.default,
             aten._scaled_dot_product_flash_attention_for_cpu.default]
SAVED = {"attn_only": ATTENTION, "save_mm": MATMUL}
# Maps a model family to its PyTorch version: module, class, and function that makes batches.
FAMILIES = {"wan": (wan, "Wan", data.shape_batch), "llama": (llama, "Llama", data.text_batch)}


# Sequence length of the call that tests whether a kernel supports the model's heads. Any length works.
PROBE_TOKENS = 256

# Functions that call an attention op directly. They are used if scaled_dot_product_attention fails with this op.
DIRECT = {"flash": lambda q, k, v, causal: aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal)[0],
          "cudnn": lambda q, k, v, causal: aten._scaled_dot_product_cudnn_attention(
              q, k, v, None, True, 0.0, causal)[0]}

direct_attention = None


def attention(q, k, v, causal):
    if direct_attention is not None:
        return direct_attention(q, k, v, causal)
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal,
                                                            enable_gqa=q.size(1) != k.size(1))


def choose_attention_call(settings):
    """Chooses how attention() calls the kernel, and returns a description. If several query heads share keys,
    attention() may have to call the op directly."""
    global direct_attention
    dimensions, backend = settings["dimensions"], settings["attention_backend"]
    if backend not in DIRECT or settings["device"] != "cuda":
        return "scaled_dot_product_attention"
    heads = dimensions["heads"]
    shapes = [[1, count, PROBE_TOKENS, dimensions["dim"] // heads]
              for count in (heads, *[dimensions.get("kv_heads", heads)] * 2)]
    inputs = [torch.randn(shape, device="cuda", dtype=getattr(torch, settings["dtype"]), requires_grad=True)
              for shape in shapes]
    try:
        attention(*inputs, True).sum().backward()
    except RuntimeError as error:
        direct_attention = DIRECT[backend]
        return f"the op itself, because scaled_dot_product_attention failed: {reason_of(error)}"
    return "scaled_dot_product_attention"


class Parameters(hash_init.Parameters):
    """Initialises the parameters. On a CPU they equal rematch's. On a GPU they are random, because hashing billions of
    values on the host takes minutes."""

    def __init__(self, dtype):
        super().__init__(dtype)
        self.values = {}

    def add(self, name, sizes, values):
        tensor = torch.empty(sizes, dtype=self.dtype)
        self.by_name[name], self.values[name] = tensor, values
        self.fill(name)
        return tensor.requires_grad_(True)

    @torch.no_grad()
    def fill(self, name):
        tensor, (centre, amplitude) = self.by_name[name], self.values[name]
        if tensor.is_cuda:
            generator = torch.Generator(tensor.device)
            generator.manual_seed(hash_init.fnv1a64(name) & 0x7FFFFFFFFFFFFFFF)
            tensor.uniform_(centre - amplitude, centre + amplitude, generator=generator)
        else:
            tensor.copy_(hash_init.Parameters(self.dtype).add(name, list(tensor.shape), (centre, amplitude)))

    def reset(self):
        for name, tensor in self.by_name.items():
            tensor.grad = None
            self.fill(name)


class AdamW:
    """AdamW with the ops of harness/training/optimizer.cpp: moments in float32, and a float32 master copy of every
    parameter in a narrower dtype. The learning rate and the betas do not affect the step time, so they are
    constants."""

    def __init__(self, parameters):
        self.parameters = list(parameters)
        masters = [parameter.detach().to(torch.float32) for parameter in self.parameters]
        self.state = [[master, torch.zeros_like(master), torch.zeros_like(master), torch.zeros(())]
                      for master in masters]

    @torch.no_grad()
    def reset(self):
        for parameter, (master, *rest) in zip(self.parameters, self.state):
            master.copy_(parameter)
            for tensor in rest:
                tensor.zero_()

    @torch.no_grad()
    def step(self):
        if all(parameter.dtype == torch.float32 for parameter in self.parameters):
            gradients = [parameter.grad for parameter in self.parameters]
            return self.update(*map(list, zip(*self.state)), gradients)
        for parameter, (master, first, second, step) in zip(self.parameters, self.state):
            self.update([master], [first], [second], [step], [parameter.grad.to(torch.float32)])
            parameter.copy_(master)

    def update(self, masters, firsts, seconds, steps, gradients):
        torch._foreach_add_(steps, 1.0)
        torch._fused_adamw_(masters, gradients, firsts, seconds, [], steps, lr=1e-3, beta1=0.9, beta2=0.95,
                            weight_decay=0.01, eps=1e-8, amsgrad=False, maximize=False)


class Blocks:
    """Runs every block through the function `call`. The models of tests/parity expect such an object as their argument
    `regions`."""

    def __init__(self, model, call):
        self.model = model
        self.call = call

    def root(self, function, *inputs):
        return function(*inputs)

    def stretches(self, num_layers):
        return [Stretch([layer], False) for layer in range(num_layers)]

    def blocks(self, stretch, function, moved, *context):
        """Removes the input from list `moved`, which holds the only reference to it. The block can then free the
        input."""
        return self.call(self.model.blocks[stretch.layers[0]], moved.pop(), (*context, self.model.table))


class Workload:
    def __init__(self, settings):
        family = next(name for name in FAMILIES if settings["model"].startswith(name))
        module, model, batch = FAMILIES[family]
        module.attention, module.Parameters = attention, Parameters
        dimensions = settings["dimensions"]
        self.model = getattr(module, model)(dimensions, getattr(torch, settings["dtype"]))
        self.batch = batch(dimensions, 0, 0)
        self.optimizer = None
        if settings["optimizer"] != "none":
            self.optimizer = AdamW(self.model.parameters.by_name.values())

    def reset(self):
        self.model.parameters.reset()
        if self.optimizer:
            self.optimizer.reset()

    def step(self, call):
        loss = self.model.loss(self.batch, Blocks(self.model, call))
        loss.backward()
        if self.optimizer:
            self.optimizer.step()
        for parameter in self.model.parameters.by_name.values():
            parameter.grad = None
        return loss.detach()


def plain_block(block, x, context):
    return block.forward([x], *context)


def checkpointed(function, policy):
    options = {"use_reentrant": False, "preserve_rng_state": False}
    if policy in SAVED:
        options["context_fn"] = functools.partial(create_selective_checkpoint_contexts, list(SAVED[policy]))

    def call(block, x, context):
        return checkpoint(lambda y, *inputs: function(block, y, inputs), x, *context, **options)

    return call


def compiled(function, fullgraph):
    return torch.compile(function, fullgraph=fullgraph, dynamic=False)


def eager_call(policy):
    return plain_block if policy == "none" else checkpointed(plain_block, policy)


def compiled_forms(policy):
    """Returns the ways to compile a block, the preferred one first. Selective checkpointing must be inside the compiled
    function, because its dispatch mode cannot see ops of compiled code."""
    if policy == "none":
        return {"compile(block), one graph": lambda: compiled(plain_block, True),
                "compile(block)": lambda: compiled(plain_block, False)}
    forms = {"compile(checkpoint(block)), one graph": lambda: compiled(checkpointed(plain_block, policy), True),
             "compile(checkpoint(block))": lambda: compiled(checkpointed(plain_block, policy), False)}
    if policy not in SAVED:
        forms["checkpoint(compile(block))"] = lambda: checkpointed(compiled(plain_block, True), policy)
    return forms


class GraphNotes:
    """Records for each Inductor graph its attention ops and its number of matmuls."""

    def __init__(self):
        self.graphs = []
        torch._inductor.config.post_grad_custom_pre_pass = self.note

    def note(self, graph):
        names = []
        for node in graph.nodes:
            # a higher-order op that saves the generator's state gets the actual op as an argument
            if node.op == "call_function":
                ops = [argument for argument in node.args if isinstance(argument, torch._ops.OpOverload)]
                names += map(str, [node.target, *ops])
        matmuls = tuple(str(op) for op in MATMUL)
        self.graphs.append({"attention": [name for name in names if "attention" in name],
                            "num_matmuls": sum(name in matmuls for name in names)})


class Device:
    def __init__(self, name):
        self.is_cuda = name.startswith("cuda")

    def wait(self):
        if self.is_cuda:
            torch.cuda.synchronize()

    def is_lost(self):
        """Returns whether this process can no longer use the device. After some errors, CUDA rejects all further
        work."""
        try:
            self.wait()
            torch.zeros(1, device="cuda" if self.is_cuda else "cpu").add_(1).item()
            return False
        except RuntimeError:
            return True

    def environment(self):
        known = {"device": "cpu", "device_uuid": None, "python": sys.version.split()[0], "torch": torch.__version__,
                 "threads": torch.get_num_threads(), "triton": version_of(lambda: importlib.import_module(
                     "triton").__version__), "cuda": None, "cudnn": None}
        if self.is_cuda:
            properties = torch.cuda.get_device_properties(0)
            known.update(device=properties.name, device_uuid=version_of(lambda: f"GPU-{properties.uuid}"),
                         cuda=torch.version.cuda, cudnn=version_of(torch.backends.cudnn.version))
        return known

    def begin_peak(self):
        if self.is_cuda:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def peaks(self):
        if not self.is_cuda:
            return {"peak_allocated_bytes": None, "peak_reserved_bytes": None}
        return {"peak_allocated_bytes": torch.cuda.max_memory_allocated(),
                "peak_reserved_bytes": torch.cuda.max_memory_reserved()}


def version_of(read):
    """Returns None if the version cannot be read, because the measurement must not fail then."""
    try:
        return read()
    except Exception as error:  # noqa: BLE001
        say(f"unknown version: {reason_of(error)}")
        return None


def is_out_of_memory(error):
    return isinstance(error, torch.OutOfMemoryError) or "out of memory" in str(error).lower()


def reason_of(error):
    text = str(error).split(DYNAMO_ADVICE)[0].strip()
    return f"{type(error).__name__}: {text}"[:REASON_CHARS]


def number(value):
    """Converts NaN and infinity to text, which JSON numbers cannot represent."""
    return value if math.isfinite(value) else str(value)


class NoFormWorks(RuntimeError):
    """Raised if every way to compile the block failed."""


class Rivals:
    def __init__(self, path, deadline):
        self.path = path
        self.deadline = deadline
        self.state = json.loads(path.read_text())
        settings = self.state["settings"]
        self.device = Device(settings["device"])
        self.state["attention_call"] = choose_attention_call(settings)
        # A default device slows down every op of a step, so it is set only here.
        with torch.device(settings["device"]):
            self.workload = Workload(settings)
        self.calls = {}
        self.turn_seconds = {}
        self.graphs = GraphNotes()
        self.state.update(environment=self.device.environment(), torch=torch.__version__)
        self.write()

    def write(self):
        write_atomically(self.path, self.state)

    def run(self):
        for round_index in range(self.state["num_rounds"]):
            for rival in turn_order(self.state["rivals"], round_index):
                if self.wants(rival, round_index) and self.has_time(rival):
                    self.turn(rival, round_index)

    def wants(self, rival, round_index):
        taken = any(turn["round"] == round_index and (turn["variant"], turn["policy"]) == key_of(rival)
                    for turn in self.state["turns"])
        return rival["status"] in ("ok", "not_run") and not taken

    def has_time(self, rival):
        return time.time() + self.turn_seconds.get(key_of(rival), 0) < self.deadline

    def turn(self, rival, round_index):
        began = time.time()
        self.state["running"] = {"rival": list(key_of(rival)), "round": round_index, "since": began}
        self.write()
        made = {"round": round_index, "variant": rival["variant"], "policy": rival["policy"]}
        made.update(self.outcome(rival))
        rival.update(status=made["status"], reason=made["reason"])
        made["seconds"] = time.time() - began
        self.turn_seconds[key_of(rival)] = made["seconds"] - made.get("first_step_seconds", 0)
        self.state["running"] = None
        self.state["turns"].append(made)
        self.write()
        say(f"round {round_index}, {rival['variant']} {rival['policy']}: {made['status']}")
        if made["status"] != "ok" and self.device.is_lost():
            say("the device accepts no more work; restarting in a new process")
            leave(RESTART)

    def outcome(self, rival):
        """Runs one turn of the rival. Returns a result even if the rival runs out of memory or fails."""
        try:
            return {"status": "ok", "reason": None, **self.measured(rival)}
        except Exception as error:  # noqa: BLE001 a rival may fail in any way, and the others continue
            status = "oom" if is_out_of_memory(error) else "failed"
            reason = reason_of(error)
        self.clear()
        return {"status": status, "reason": reason, "samples_ns": [], "peak_allocated_bytes": None,
                "peak_reserved_bytes": None}

    def clear(self):
        """Frees the memory that a failed step still holds."""
        try:
            for parameter in self.workload.model.parameters.by_name.values():
                parameter.grad = None
            gc.collect()
            self.device.begin_peak()
        except RuntimeError:
            pass  # the caller checks with is_lost() whether the device can still be used

    def measured(self, rival):
        is_first = key_of(rival) not in self.calls
        self.workload.reset()
        start = time.perf_counter()
        if is_first:
            self.prepare(rival)
        first_step_seconds = time.perf_counter() - start
        call = self.calls[key_of(rival)]
        self.device.begin_peak()
        warm_up_steps, warm_up_seconds = self.warm_up(call, **(FIRST_WARM_UP if is_first else LATER_WARM_UP))
        samples = []
        for _ in range(self.state["num_steps"]):
            self.device.wait()
            start = time.perf_counter_ns()
            loss = self.workload.step(call)
            self.device.wait()
            samples.append(time.perf_counter_ns() - start)
        return {"samples_ns": samples, **self.device.peaks(), "first_step_seconds": first_step_seconds,
                "warm_up_steps": warm_up_steps, "warm_up_seconds": warm_up_seconds, "last_loss": number(loss.item())}

    def warm_up(self, call, min_steps, min_seconds):
        start, steps = time.perf_counter(), 0
        while steps < min_steps or time.perf_counter() - start < min_seconds:
            self.workload.step(call)
            self.device.wait()
            steps += 1
        return steps, time.perf_counter() - start

    def prepare(self, rival):
        """Runs and compiles the first step. Returns its loss."""
        if rival["variant"] == "eager":
            return self.first_step(rival, eager_call(rival["policy"]))
        earlier = {}
        for form, make in compiled_forms(rival["policy"]).items():
            counters.clear()
            self.graphs.graphs.clear()
            start = time.perf_counter()
            rival["compile"] = {"form": form, "failed_forms": earlier}
            try:
                self.first_step(rival, make())
            except Exception as error:  # noqa: BLE001 another form may work
                if is_out_of_memory(error):
                    raise
                earlier[form] = reason_of(error)
            else:
                rival["compile"].update(self.compile_record(time.perf_counter() - start))
                return None
            self.clear()
            if self.device.is_lost():
                break
            self.workload.reset()
        rival["compile"]["form"] = None
        raise NoFormWorks("; ".join(f"{form}: {reason}" for form, reason in earlier.items()))

    def first_step(self, rival, call):
        rival["first_loss"] = number(self.workload.step(call).item())
        self.calls[key_of(rival)] = call

    def compile_record(self, seconds):
        return {"first_step_seconds": seconds, "graph_breaks": sum(counters["graph_break"].values()),
                "graph_break_reasons": list(counters["graph_break"])[:3],
                "num_frames": counters["stats"].get("unique_graphs", 0), "graphs": list(self.graphs.graphs)}


def key_of(rival):
    return rival["variant"], rival["policy"]


def say(text):
    print(f"pytorch_steps: {text}", file=sys.stderr, flush=True)


def leave(code):
    """Exits without running destructors, because they may wait for a lost device or a compiler."""
    sys.stderr.flush()
    os._exit(code)


def main():
    path, deadline = pathlib.Path(sys.argv[1]), float(sys.argv[2])
    faulthandler.enable(all_threads=False)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    settings = json.loads(path.read_text())["settings"]
    torch.use_deterministic_algorithms(settings["deterministic"])
    backend = settings["attention_backend"]
    with sdpa_kernel([BACKENDS[backend]] if backend else list(BACKENDS.values())):
        Rivals(path, deadline).run()
    leave(0)


if __name__ == "__main__":
    main()
