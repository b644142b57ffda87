#!/usr/bin/env python3
"""Records one training step of a PyTorch model as a trace that rematch reads. Needs only torch.

    python scripts/export_trace.py MODEL_FILE -o model.trace.json --profile model.profile.json
    rematch search --trace model.trace.json --profile model.profile.json -o front.json

MODEL_FILE is a Python file that defines make(): it returns the model and a function without arguments that runs one
forward pass and returns the loss. Its layers are found automatically: the outermost lists of modules of one class. With
--fake, tensors have no data and no times are measured, so a model of any size can be traced on any machine. Exit codes:
0 written, 2 usage."""

import argparse
import contextlib
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness" / "python"))

from torch_alone.model_file import Refused, load_make  # noqa: E402


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model_file", metavar="MODEL_FILE")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="trace to write")
    parser.add_argument("--profile", type=pathlib.Path,
                        help="also write a profile: times of the ops on the device that holds the model")
    parser.add_argument("--steps", type=int, default=5, help="number of timed steps (default: 5)")
    parser.add_argument("--name", help="name of the model in the trace (default: its class)")
    parser.add_argument("--fake", action="store_true",
                        help="create and run the model under FakeTensorMode, with shapes but without data")
    parser.add_argument("--threads", type=int, help="number of torch's CPU threads (default: torch's choice)")
    arguments = parser.parse_args()
    if arguments.fake and arguments.profile:
        parser.error("fake tensors have no times; leave out --profile or --fake")
    if arguments.steps < 1:
        parser.error("--steps takes a number from 1")
    return arguments


def write(path, document):
    path.write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")


def export(arguments):
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    from torch_alone.fake_step import as_with_data
    from torch_alone.op_times import measure_profile
    from torch_alone.trace_file import record_trace

    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    make = load_make(arguments.model_file)
    with FakeTensorMode(allow_non_fake_inputs=True) if arguments.fake else contextlib.nullcontext():
        model, step = make()
        with as_with_data() if arguments.fake else contextlib.nullcontext():
            # an unrecorded first pass, which creates tensors such as caches
            step()
            trace = record_trace(model, step, arguments.name)
    write(arguments.output, trace)
    step_type = trace["types"][0]
    print(f"export_trace: {arguments.output}: {len(step_type['ops'])} ops of forward, {len(step_type['packs'])} saved tensors, "
          f"{len(trace['blocks'])} layers", file=sys.stderr)
    if arguments.profile:
        write(arguments.profile, measure_profile(model, step, trace, arguments.steps))


def main():
    arguments = parse_arguments()
    try:
        export(arguments)
    except Refused as error:
        print(f"export_trace: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
