#!/usr/bin/env python3
"""Writes golden/*.json: the results of Python PyTorch 2.15.0 for the same models, data and policies.

scripts/make_parity finds or makes a Python with torch 2.15.0, torch_remat 0.2.2 and numpy, and runs this script. Needs
g++. See README.md here."""

import argparse
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

import torch

import data
from counting import Counting
from llama import Llama
from policies import POLICIES
from saved_regions import SAVED_REGIONS, VERSION
from wan import Wan

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE / "golden"
TORCH_VERSION = "2.15.0"
SEED = 1
STEP = 0
WIDTH = 100
BYTES = ("after_forward_bytes", "peak_bytes", "after_backward_bytes")
MAX_STEPS = 5
RANKS = 2
# Views are not counted. They cost nothing, and torch_remat and the engine run different views.
VIEWS = (
    "aten::as_strided",
    "aten::split.Tensor",
    "aten::t",
    "aten::transpose.int",
    "aten::unbind.int",
    "aten::_unsafe_view",
    "aten::view",
    "aten::set_.source_Storage_storage_offset",
)
THREADS = 1  # the number of threads changes the bits of sums

# Copies of presets in models/preset/preset.cpp. parity_test checks that the copies agree with the originals.
MODELS = {
    "llama_small": (
        Llama,
        data.text_batch,
        {
            "layers": 8,
            "dim": 128,
            "heads": 4,
            "kv_heads": 2,
            "ffn": 352,
            "vocab": 256,
            "batch": 2,
            "tokens": 128,
            "tied": 0,
        },
    ),
    "wan_small": (
        Wan,
        data.shape_batch,
        {
            "layers": 8,
            "dim": 96,
            "heads": 4,
            "ffn": 384,
            "batch": 2,
            "tokens": 128,
            "frames": 2,
            "height": 8,
            "width": 8,
            "text_tokens": 16,
            "text_dim": 64,
            "freq_dim": 64,
            "channels": 4,
        },
    ),
}
POLICIES_BY_DTYPE = {
    "float32": list(POLICIES),
    "bfloat16": ["none", "full", "nth_first(2)", "attn_only", "save_mm"],
}


def tensor_bytes(tensor):
    return tensor.detach().contiguous().view(torch.uint8).numpy().tobytes()


def tensor_hash(tensor):
    """Hashes a tensor as harness/measure/hash.h does."""
    return hashlib.sha256(tensor_bytes(tensor)).hexdigest()[:32]


def loss_bits(loss):
    return f"0x{int.from_bytes(tensor_bytes(loss.reshape(1)), 'little'):08x}"


def measure_once(counting, model, batch, regions):
    for parameter in model.parameters.by_name.values():
        parameter.grad = None
    with regions.forward_context():
        loss, measured = counting.step(lambda: model.loss(batch, regions))
    gradients = {
        name: tensor_hash(parameter.grad) for name, parameter in model.parameters.by_name.items()
    }
    return {"loss_bits": loss_bits(loss), **measured}, gradients


def measure(counting, model, batch, policy, regions):
    """Repeats the step until two consecutive steps agree. The first step may differ, because the first checkpoint
    imports Python modules."""
    regions.before_op = counting.see_ops_of_mode
    previous = None
    for _ in range(MAX_STEPS):
        found = measure_once(counting, model, batch, regions)
        if found == previous:
            return found
        previous = found
    sys.exit(f"{policy}: consecutive steps still differ after {MAX_STEPS} steps")


def golden_of(counting, name, dtype):
    make_model, make_batch, dimensions = MODELS[name]
    model = make_model(dimensions, getattr(torch, dtype))
    batch = make_batch(dimensions, SEED, STEP)
    golden = {
        "model": name,
        "dtype": dtype,
        "dimensions": dimensions,
        "seed": SEED,
        "step": STEP,
        "fingerprint": counting.fingerprint(),
        "batch_hashes": [tensor_hash(tensor) for tensor in batch],
        "parameter_hashes": {
            key: tensor_hash(tensor) for key, tensor in model.parameters.by_name.items()
        },
        "gradient_hashes": None,
        "policies": {},
        "saved_regions": {"torch_remat": VERSION, "policies": {}},
    }

    def measure_checked(policy, regions):
        measured, gradients = measure(counting, model, batch, policy, regions)
        golden["gradient_hashes"] = golden["gradient_hashes"] or gradients
        if gradients != golden["gradient_hashes"]:
            sys.exit(f"{name} {dtype} {policy}: in Python, the gradients differ from the gradients of policy none")
        return measured

    for policy in POLICIES_BY_DTYPE[dtype]:
        golden["policies"][policy] = measure_checked(policy, POLICIES[policy])
    for policy, regions in SAVED_REGIONS[name].items():
        golden["saved_regions"]["policies"][policy] = without_views(measure_checked(policy, regions))
    return golden


def without_views(measured):
    ops = {op: count for op, count in measured["executed_ops"].items() if op not in VIEWS}
    return {key: measured[key] for key in BYTES} | {"executed_ops": ops}


def golden_of_layouts(counting):
    """Runs layouts.py on all ranks and returns what rank 0 prints."""
    with tempfile.TemporaryDirectory() as folder:
        store = str(pathlib.Path(folder) / "store")
        commands = [
            [sys.executable, str(HERE / "layouts.py"), str(rank), store] for rank in range(RANKS)
        ]
        ranks = [subprocess.Popen(command, stdout=subprocess.PIPE) for command in commands]
        outputs = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        sys.exit("layouts.py failed; see its message above")
    return {"fingerprint": counting.fingerprint(), **json.loads(outputs[0])}


def fill(parts, indent):
    """Joins parts by commas into lines of at most 100 columns, except where one part is longer."""
    lines = [" " * indent + parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) + 3 < WIDTH:
            lines[-1] += ", " + part
        else:
            lines[-1] += ","
            lines.append(" " * indent + part)
    return lines


def to_lines(value, start, indent):
    """Formats JSON. Breaks a long object into one line per entry only if an entry is an object or a list."""
    flat = json.dumps(value)
    if not isinstance(value, (dict, list)) or len(start) + len(flat) < WIDTH:
        return [start + flat]
    if isinstance(value, list):
        return [start + "[", *fill([json.dumps(v) for v in value], indent + 1), " " * indent + "]"]
    if not any(isinstance(inner, (dict, list)) for inner in value.values()):
        parts = [f"{json.dumps(key)}: {json.dumps(inner)}" for key, inner in value.items()]
        return [start + "{", *fill(parts, indent + 1), " " * indent + "}"]
    lines = [start + "{"]
    for key, inner in value.items():
        lines += to_lines(inner, " " * (indent + 1) + json.dumps(key) + ": ", indent + 1)
        lines[-1] += ","
    lines[-1] = lines[-1][:-1]
    return [*lines, " " * indent + "}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=pathlib.Path, default=GOLDEN, help="folder to write to")
    arguments = parser.parse_args()
    found = torch.__version__.split("+")[0]
    if found != TORCH_VERSION and arguments.output == GOLDEN:
        sys.exit(f"torch is {found}, but the golden files come from torch {TORCH_VERSION}: install that version")
    torch.set_num_threads(THREADS)
    counting = Counting()
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name in MODELS:
        for dtype in POLICIES_BY_DTYPE:
            path = arguments.output / f"{name}_{dtype}.json"
            golden = golden_of(counting, name, dtype)
            path.write_text("\n".join(to_lines(golden, "", 0)) + "\n")
            print(f"{path.name}: {len(golden['policies'])} policies")
    path = arguments.output / "llama_on_ranks.json"
    golden = golden_of_layouts(counting)
    path.write_text("\n".join(to_lines(golden, "", 0)) + "\n")
    print(f"{path.name}: {len(golden['layouts'])} layouts")


if __name__ == "__main__":
    main()
