#!/usr/bin/env python3
"""Reads a snapshot of PyTorch's CUDA allocator with the standard library alone, as PyTorch's viewer does.

    read_snapshot.py FILE   prints, as JSON, the facts that tests check
"""

import json
import pickle
import sys


class Plain(pickle.Unpickler):
    """Rejects every class, because a snapshot consists of dicts, lists, numbers and strings."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"needs {module}.{name}")


def blocks_in_use(snapshot):
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                yield block


def main():
    with open(sys.argv[1], "rb") as file:
        snapshot = Plain(file).load()
    events = [event for trace in snapshot["device_traces"] for event in trace]
    allocations = [event for event in events if event["action"] == "alloc"]
    frees = [event for event in events if event["action"] == "free_completed"]
    names = [event.get("user_metadata", "") for event in allocations]
    print(json.dumps({
        "keys": sorted(snapshot),
        "active_bytes": sum(block["size"] for block in blocks_in_use(snapshot)),
        "num_allocations": len(allocations),
        "grown_requested_bytes": sum(event["size"] for event in allocations) -
                                 sum(event["size"] for event in frees),
        "actions": sorted({event["action"] for event in events}),
        "num_named": sum(bool(name) for name in names),
        "names": sorted(set(names)),
    }))


main()
