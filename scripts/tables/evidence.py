"""Reads the results of GPU measurements from reports/results/gpu.

A GPU measurement is a command that was run on a GPU. Each kind of GPU has a folder KIND, so a measurement's name here
is KIND/NAME. There are three kinds of file: NAME.report.json is a report of `rematch run` (schema rematch.report),
pytorch_NAME.report.json is a report of pytorch_steps.py, and NAME.json is the verdict of measurement NAME, with the
last lines of the command's output. If a report was not kept, its figures are known only from these lines."""

import json
import pathlib
import re
from dataclasses import dataclass, field

NOT_KEPT = "report not kept"
# Smaller models were run only to count kernels, so their times are not tabulated.
MIN_DIM = 512
OF_STEPS = ("step_ns", "num_samples", "ratio", "interval", "reference", "mfu")
OF_PEAKS = ("predicted", "requested", "allocated", "reserved")


@dataclass
class Point:
    """One measured point of rematch. A number is None if it was not measured, or if its report was not kept."""

    measurement: str
    model: str
    size: str
    ops: str
    policy: str
    schedule: str
    status: str = "ok"
    is_kept: bool = True
    attention: str | None = None
    allocator: str | None = None
    card: str = ""
    card_uuid: str | None = None
    step_ns: float | None = None
    num_samples: int | None = None
    ratio: float | None = None
    interval: tuple | None = None
    reference: str | None = None
    mfu: float | None = None
    predicted: int | None = None
    requested: int | None = None
    allocated: int | None = None
    reserved: int | None = None
    timed_allocated: int | None = None
    timed_reserved: int | None = None
    # Other measurements whose output also contains this point. Empty if the point's report was kept.
    also: list = field(default_factory=list)

    def key(self):
        return self.card, self.model, self.size, self.ops, self.policy


@dataclass
class Evidence:
    points: list = field(default_factory=list)
    pytorch: dict = field(default_factory=dict)  # maps a measurement to its report from pytorch_steps.py
    ceilings: dict = field(default_factory=dict)  # maps a measurement to its report from ceilings.py
    verdicts: dict = field(default_factory=dict)  # maps a measurement to its verdict, NAME.json
    predicted: dict = field(default_factory=dict)  # maps a kind of GPU to the entries of its predicted.json
    fronts: dict = field(default_factory=dict)  # maps a measurement to its measured front


def read(folder):
    evidence = Evidence()
    for path in sorted(pathlib.Path(folder).glob("*/*.json")):
        document = json.loads(path.read_text())
        measurement = f"{path.parent.name}/{path.name.removesuffix('.json').removesuffix('.report')}"
        if "rivals" in document or "rounds" in document:
            evidence.pytorch[measurement] = document
        elif "predictions" in document:
            evidence.predicted[path.parent.name.upper()] = document["predictions"]
        elif "copy_gb_per_second" in document:
            evidence.ceilings[measurement] = document
        elif str(document.get("schema", "")).startswith("rematch.front/"):
            evidence.fronts[measurement] = document
        elif str(document.get("schema", "")).startswith("rematch.report/"):
            evidence.points += points_of_report(measurement, document)
        elif "status" in document and "commands" in document and not document.get("dry"):
            evidence.verdicts[measurement] = document
    add_points_of_lost_reports(evidence)
    return evidence


CARD = re.compile(r"H100|H200|GH200|L40S|A100|B200")


def card_of(device):
    """Returns the usual short name of the device, such as "H100"."""
    found = CARD.search(device or "")
    return found[0] if found else device or ""


def size_of(model, dimensions):
    """Returns "sequences x tokens"; for video models only the number of tokens."""
    batch, tokens = dimensions.get("batch", 1), dimensions.get("tokens", 0)
    return f"{tokens:,}" if batch == 1 else f"{batch} x {tokens:,}"


def points_of_report(measurement, report):
    """Returns the report's points. Returns [] for the dry device, whose times are meaningless."""
    if (report["environment"].get("device") or "").startswith("dry "):
        return []
    return [point_of(measurement, report, entry) for entry in report["points"]
            if entry["identity"]["dimensions"].get("dim", MIN_DIM) >= MIN_DIM]


def point_of(measurement, report, entry):
    identity, time, memory = entry["identity"], entry.get("time") or {}, entry.get("memory") or {}
    ratio = time.get("step_ratio") or {}
    predicted, workspace = (memory.get(key) for key in ("predicted_peak_requested_bytes", "workspace_bytes"))
    return Point(
        measurement=measurement, model=entry["model"], size=size_of(entry["model"], identity["dimensions"]),
        ops=identity.get("ops", "eager"), policy=entry["policy"], schedule=entry["schedule"], status=entry["status"],
        attention=time.get("attention_backend") or identity.get("attention_backend"),
        allocator=identity.get("allocator"), card=card_of(report["environment"].get("device")),
        card_uuid=report["environment"].get("device_uuid"),
        step_ns=time.get("step_median_ns"),
        num_samples=sum(map(len, time["samples_ns"])) if time.get("samples_ns") else None,
        ratio=ratio.get("ratio"), interval=tuple(ratio["interval"]) if ratio.get("interval") else None,
        reference=ratio.get("reference"), mfu=entry.get("model_flops_utilization_ratio"),
        predicted=predicted + (workspace or 0) if predicted is not None else None,
        requested=memory.get("peak_requested_bytes"), allocated=memory.get("peak_allocated_bytes"),
        reserved=memory.get("peak_reserved_bytes"), timed_allocated=time.get("peak_allocated_bytes"),
        timed_reserved=time.get("peak_reserved_bytes"))


# STEPS matches a line of judge_steps. ROW and RATIO match parts of the table that `rematch run` printed. ATTENTION
# matches the line below the table.
STEPS = re.compile(r"^(?P<policy>\S+), (?P<schedule>\w+): (?P<status>\w+), requested (?P<requested>\w+) B, predicted "
                   r"(?P<predicted>\w+) B, allocated (?P<allocated>\w+) B, reserved (?P<reserved>\w+) B, .*"
                   r"step (?P<step>\w+) ns$")
ROW = re.compile(r"^(?P<policy>\S+) +(?P<schedule>whole_region|on_demand) .* (?P<mfu>\d+\.\d) % ", re.MULTILINE)
RATIO = re.compile(r"(\d+\.\d+) \[(\d+\.\d+) (\d+\.\d+)\](?: of (\w+))?")
ATTENTION = re.compile(r"Times (?:use|are with) (\w+) attention")


def whole(text):
    return None if text == "None" else int(text)


def flag(words, name, default=None):
    return words[words.index(name) + 1] if name in words else default


def add_points_of_lost_reports(evidence):
    """Adds the points of models at full size whose reports were not kept. Their figures come from the verdicts. Omits a
    step time or peak that is also in a report."""
    timed = {point.key() for point in evidence.points if point.step_ns is not None}
    weighed = {point.key() for point in evidence.points if point.requested is not None}
    lost = {}
    # the most precise source comes first, and later sources only fill gaps
    sources = [points_of_pytorch, points_of_findings, points_of_tails]
    for point in [point for source in sources for point in source(evidence)]:
        merge(lost, point)
    for key, point in lost.items():
        for kept, names in ((timed, OF_STEPS), (weighed, OF_PEAKS)):
            if key in kept:
                for name in names:
                    setattr(point, name, None)
    evidence.points += lost.values()


def points_of_pytorch(evidence):
    """Yields rematch's own points, which reports of pytorch_steps.py also contain."""
    for measurement, report in evidence.pytorch.items():
        settings = report["settings"]
        for entry in report["rematch"]:
            time = entry["time"]
            if time:
                yield Point(measurement=measurement, model=settings["model"],
                            size=size_of(settings["model"], settings["dimensions"]), ops=entry.get("ops") or "eager",
                            policy=entry["policy"], schedule=entry["schedule"], is_kept=False,
                            card=card_of((report.get("environment") or {}).get("device")),
                            attention=time["attention_backend"], step_ns=time["step_median_ns"],
                            num_samples=sum(map(len, time["samples_ns"])))


def runs_of(evidence):
    """Yields (verdict, last lines of the output, settings of all points) for each command of `rematch run` on a model
    at full size."""
    for measurement, verdict in evidence.verdicts.items():
        for command in verdict["commands"]:
            words = command["command"]
            is_full_size = not flag(words, "--model", "_small").endswith("_small")
            if "run" in words[1:2] and is_full_size and int(flag(words, "--dim", MIN_DIM)) >= MIN_DIM:
                yield verdict, command["tail"], common_of(measurement, verdict, words, command["tail"])


def common_of(measurement, verdict, words, tail):
    model = flag(words, "--model")
    size = size_of(model, {"batch": int(flag(words, "--batch", "1")), "tokens": int(flag(words, "--tokens", "0"))})
    attention = ATTENTION.search(tail)
    return {"measurement": measurement, "model": model, "size": size, "ops": flag(words, "--ops", "eager"),
            "is_kept": False, "attention": attention[1] if attention else None,
            "card": card_of(verdict.get("card") or verdict.get("device"))}


def points_of_findings(evidence):
    for verdict, _, common in runs_of(evidence):
        for found in filter(None, map(STEPS.match, verdict["findings"])):
            yield Point(**common, policy=found["policy"], schedule=found["schedule"], status=found["status"],
                        requested=whole(found["requested"]), predicted=whole(found["predicted"]),
                        allocated=whole(found["allocated"]), reserved=whole(found["reserved"]),
                        step_ns=whole(found["step"]))


def points_of_tails(evidence):
    for _, tail, common in runs_of(evidence):
        for found in ROW.finditer(tail):
            ratio = RATIO.search(found[0])
            yield Point(**common, policy=found["policy"], schedule=found["schedule"], mfu=float(found["mfu"]) / 100,
                        ratio=float(ratio[1]) if ratio else None,
                        interval=(float(ratio[2]), float(ratio[3])) if ratio else None,
                        reference=(ratio[4] or "none") if ratio else None)


def merge(points, new):
    """Merges the fields that several sources give for one point. A later source only fills fields that are still
    None."""
    old = points.setdefault(new.key(), new)
    old.status = new.status if old.step_ns is None else old.status
    if new.measurement not in (old.measurement, *old.also):
        old.also.append(new.measurement)
    for name, value in vars(new).items():
        if getattr(old, name) is None:
            setattr(old, name, value)
