"""Copies the results of a GPU run into the repository: reports as files, and facts about them into queue.json."""

import json
import re
import tempfile
from pathlib import Path

from gpu import archive, measurements
from gpu.machine import results_of


def record(source, queue_file, target, commit=None):
    """Records all valid results. Returns a line about each result. `commit` is the commit that the programs were built
    from. It must be given if a result does not name a commit, or if the programs were built with uncommitted
    changes."""
    with tempfile.TemporaryDirectory() as folder:
        unpacked = Path(folder)
        archive.unpack(source, unpacked)
        queue = json.loads(queue_file.read_text())
        lines = [record_one(entry, unpacked, target, commit) for entry in queue["measurements"]
                 if (unpacked / f"{entry['name']}.json").exists()]
    dump(queue, queue_file)
    return lines


def record_one(entry, folder, target, commit):
    name = entry["name"]
    result = json.loads((folder / f"{name}.json").read_text())
    reason = why_not(result, commit, entry.get("kind"))
    if reason:
        return f"{name}: not recorded: {reason}"
    place = results_of(result["card"], target)
    place.mkdir(parents=True, exist_ok=True)
    copied = [path.name for path in sorted(folder.glob(f"{name}.*json"))]
    for file in copied:
        (place / file).write_text(without_folders((folder / file).read_text()))
    report = f"{name}.report.json" if f"{name}.report.json" in copied else f"{name}.json"
    entry["answered"] = {"commit": commit or result["commit"], "date": result["date"], "card": result["card"],
                         "card_uuid": result["card_uuid"], "report": f"reports/results/gpu/{place.name}/{report}"}
    return f"{name}: recorded {', '.join(copied)}"


FOLDERS = re.compile(r"(?<![\w./:-])/(?:[\w.+-]+/)+(?=[\w.+-])")


def without_folders(text):
    """Shortens absolute paths to their last component, because the folders of one machine must not appear in a
    result."""
    return FOLDERS.sub("", text)


def why_not(result, commit, kind=None):
    if result["status"] != "passed":
        return f"{result['status']}: {'; '.join(result['problems'][:3])}"
    if result["dry"]:
        return "the measurement ran on the dry device"
    if not measurements.is_of_kind(result["card"], kind):
        return f"it needs an {kind}, but ran on {result['card']}"
    if commit:
        return None
    if not result["commit"]:
        return "the commit of the programs is unknown; give --commit"
    if result["uncommitted"]:
        return f"{result['uncommitted'][0]} was not committed when it was packed; give --commit"
    return None


def dump(queue, file):
    file.write_text(json.dumps(queue, indent=2) + "\n")
