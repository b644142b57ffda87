"""The tables of measured figures, computed from an Evidence."""

import re
import statistics
from dataclasses import dataclass

from gpu import rivals
from tables.evidence import NOT_KEPT, card_of, size_of

TARGET_BANDWIDTH = 0.8
GB = 10 ** 9


@dataclass
class Table:
    columns: list
    rows: dict  # maps the key of a row to its cells; quoted_figures.json uses these keys

    def markdown(self):
        if not self.rows:
            return "No report contains figures for this table yet."
        lines = [self.columns, ["---"] * len(self.columns), *self.rows.values()]
        return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)

    def cell(self, row, column):
        """Returns the text of the cell, or None if there is no such cell."""
        if row not in self.rows or column not in self.columns:
            return None
        return self.rows[row][self.columns.index(column)]


def source_of(point):
    names = ", ".join(f"`{name}`" for name in (point.measurement, *point.also))
    return names if point.is_kept else f"{names}, {NOT_KEPT}"


def how_of(point):
    """Returns the attention kernel, and "expandable" if the allocator used expandable segments."""
    return (point.attention or "") + (", expandable" if "expandable" in (point.allocator or "") else "")


def milliseconds(ns):
    return "" if ns is None else f"{ns / 1e6:,.1f}"


def bytes_of(count):
    return "" if count is None else f"{count:,}"


def ratio_of(point):
    if point.ratio is None:
        return ""
    interval = f" ({point.interval[0]:.3f} to {point.interval[1]:.3f})" if point.interval else ""
    if not point.is_kept:  # the report was not kept, and the printed ratio has only two digits
        interval = f" ({point.interval[0]:.2f} to {point.interval[1]:.2f})" if point.interval else ""
        return f"{point.ratio:.2f}{interval} of {point.reference}"
    return f"{point.ratio:.3f}{interval} of {point.reference}"


def is_full_size(point):
    return not point.model.endswith("_small")


def in_order(points):
    order = {"none": 0, "full": 1, "attn_only": 2, "save_mm": 3}
    return sorted(points, key=lambda p: (p.model, len(p.size), p.size, p.measurement, p.ops, order.get(p.policy, 4),
                                         p.policy, p.schedule))


def key_of(point):
    return f"{point.measurement}, {point.policy}, {point.ops}, {point.schedule}"


def steps(evidence):
    """Tabulates step times. The number of samples is unknown if a report was not kept."""
    columns = ["card", "model", "tokens", "policy", "ops", "attention", "step, ms", "samples", "time / reference", "MFU",
               "allocated while timed", "reserved while timed", "report"]
    rows = {}
    for point in in_order(filter(is_full_size, evidence.points)):
        if point.step_ns is None:
            continue
        rows[key_of(point)] = [
            point.card, point.model, point.size, point.policy, point.ops, how_of(point), milliseconds(point.step_ns),
            str(point.num_samples or ""), ratio_of(point), f"{100 * point.mfu:.1f} %" if point.mfu else "",
            bytes_of(point.timed_allocated), bytes_of(point.timed_reserved), source_of(point)]
    return Table(columns, rows)


def peaks(evidence):
    """Tabulates peaks: predicted, requested by tensors, and allocated and reserved by the allocator."""
    columns = ["card", "model", "tokens", "policy", "ops", "predicted", "requested", "allocated", "reserved", "report"]
    rows = {}
    for point in in_order(filter(is_full_size, evidence.points)):
        if point.requested is None and (point.status == "ok" or point.allocated is None):
            continue
        requested = bytes_of(point.requested) if point.status == "ok" else point.status
        rows[key_of(point)] = [
            point.card, point.model, point.size, point.policy, point.ops, bytes_of(point.predicted), requested,
            bytes_of(point.allocated), bytes_of(point.reserved), source_of(point)]
    return Table(columns, rows)


def comparable(evidence, report):
    """Yields our points to compare with a report of pytorch_steps.py: our points in this report, and points with fused
    ops that were measured on the same GPU."""
    model, dimensions = report["settings"]["model"], report["settings"]["dimensions"]
    card = card_of((report.get("environment") or {}).get("device"))
    uuid = (report.get("environment") or {}).get("device_uuid")
    for point in report["rematch"]:
        time = point["time"]
        if time:
            ops = point.get("ops") or "eager"
            key = card, model, size_of(model, dimensions), ops, point["policy"]
            peak = rivals.our_peak(point, "peak_allocated_bytes") or next(
                (other.allocated for other in evidence.points if other.key() == key), None)
            yield point["policy"], ops, point["schedule"], time["step_median_ns"], peak
    for point in evidence.points:
        same = ((point.model, point.card_uuid, point.attention) == (model, uuid, report["attention_backend"])
                and point.size == size_of(model, dimensions) and "expandable" not in (point.allocator or ""))
        if same and uuid and point.ops != "eager" and point.step_ns:
            yield point.policy, point.ops, point.schedule, point.step_ns, point.timed_allocated or point.allocated


def beside_pytorch(evidence):
    """Tabulates our step times divided by the step times of other systems. Our steps alternated with those of the other
    system, or ran separately on the same GPU."""
    columns = ["card", "model", "policy", "our ops", "rematch, ms", "PyTorch eager, ms", "over eager", "torch.compile, ms",
               "over compile", "peak", "eager's peak", "compile's peak", "report"]
    rows = {}
    for measurement, report in evidence.pytorch.items():
        for policy, ops, schedule, step_ns, peak in comparable(evidence, report):
            found = {variant: rivals.measured_of(report, variant, policy) for variant in rivals.NAMES}
            if not any(found.values()):
                continue
            card = card_of((report.get("environment") or {}).get("device"))
            cells = [card, report["settings"]["model"], policy, ops, milliseconds(step_ns)]
            for variant in ("eager", "compile"):
                rival = found[variant]
                cells += ([milliseconds(rival["step_median_ns"]), f"{step_ns / rival['step_median_ns']:.3f}"]
                          if rival else [missing(report, variant, policy), ""])
            cells += [bytes_of(peak), *(bytes_of(rival and rival["peak_allocated_bytes"])
                                        for rival in found.values()), f"`{measurement}`"]
            rows[f"{measurement}, {policy}, {ops}, {schedule}"] = cells
    return Table(columns, rows)


def missing(report, variant, policy):
    for rival in rivals.rivals_of(report):
        if (rival["variant"], rival["policy"]) == (variant, policy):
            return rival["status"].replace("_", " ")
    return "not asked"


def rivals_table(evidence):
    """Tabulates how the run of each other system ended, and how long compiling took."""
    columns = ["model", "rival", "policy", "ended", "form", "first step, s", "graph breaks", "report"]
    rows = {}
    for measurement, report in evidence.pytorch.items():
        for rival in rivals.rivals_of(report):
            compiled = rival.get("compile") or {}
            seconds = compiled.get("first_step_seconds")
            rows[f"{measurement}, {rival['variant']}, {rival['policy']}"] = [
                report["settings"]["model"], rivals.NAMES[rival["variant"]], rival["policy"],
                ended(rival), compiled.get("form") or "", "" if seconds is None else f"{seconds:.1f}",
                str(compiled.get("graph_breaks", "")), f"`{measurement}`"]
    return Table(columns, rows)


def ended(rival):
    """Returns how the other system's run ended, short enough for a cell."""
    if rival["status"] in ("ok", "oom"):
        return {"ok": "ok", "oom": "out of memory"}[rival["status"]]
    reason = re.sub(r"[|\s]+", " ", rival["reason"] or "")
    return f"{rival['status'].replace('_', ' ')}: {reason[:120]}"


BANDWIDTH = re.compile(r"^(?:bandwidth: )?(?P<kernel>.+?): (?P<rate>[\d.]+) GB/s.*?(?P<share>\d\.\d+) of the card's "
                       r"(?P<limit>[\d,.]+)")


def bandwidth(evidence):
    """Tabulates the bandwidth of kernels: the minimum bytes that a kernel must move, divided by its time."""
    columns = ["kernel", "GB/s", "share of the card's", "target 0.8", "report"]
    rows = {}
    for measurement, verdict in evidence.verdicts.items():
        for line in verdict["findings"]:
            if found := BANDWIDTH.match(line):
                met = "met" if float(found["share"]) >= TARGET_BANDWIDTH else "missed"
                rows[f"{measurement}, {found['kernel']}"] = [found["kernel"], found["rate"], found["share"], met,
                                                         f"`{measurement}`"]
    return Table(columns, rows)


def sustained_rate(ceilings_report):
    """Reports of early runs have no other rate of matmuls than the sustained one."""
    return ceilings_report.get("sustained_matmul_tflop_per_second", ceilings_report["matmul_tflop_per_second"])


def ceilings(evidence):
    """Tabulates what cards reach. The rate of matmuls is that of matmuls one after the other."""
    columns = ["card", "copy, GB/s", "bf16 matmul, TFLOP/s", "report"]
    return Table(columns, {measurement: [report["device"], f"{report['copy_gb_per_second']:,.0f}",
                                      f"{sustained_rate(report):,.0f}", f"`{measurement}`"]
                           for measurement, report in evidence.ceilings.items()})


def predicted(evidence):
    """Tabulates predicted and measured step times. Ratios are relative to the first policy of the model."""
    columns = ["card", "model", "tokens", "policy", "measured, ms", "by profile, ms", "profile error",
               "by rates, ms", "rates error", "by data sheet, ms", "sheet error", "measured ratio", "by data sheet"]
    rows = {}
    for card, entries in evidence.predicted.items():
        first = {}
        for entry in entries:
            key = card, entry["model"], entry["size"], "eager", entry["policy"]
            times = [point.step_ns for point in evidence.points
                     if point.key() == key and point.is_kept and point.step_ns and point.attention == "cudnn"
                     and "expandable" not in (point.allocator or "")]
            if not times:
                continue
            step = statistics.median(times)
            profile, rates, sheet = (entry[f"predicted_by_{source}_ns"] for source in ("profile", "rates", "data_sheet"))
            step_1, sheet_1 = first.setdefault((entry["model"], entry["size"]), (step, sheet))
            rows[f"{card}, {entry['model']}, {entry['size']}, {entry['policy']}"] = [
                card, entry["model"], entry["size"], entry["policy"], milliseconds(step), milliseconds(profile),
                f"{100 * (profile / step - 1):+.1f} %", milliseconds(rates), f"{100 * (rates / step - 1):+.1f} %",
                milliseconds(sheet), f"{100 * (sheet / step - 1):+.0f} %",
                f"{step / step_1:.3f}", f"{sheet / sheet_1:.3f}"]
    return Table(columns, rows)


# Omits findings about bytes, which are in table `peaks`.
def fronts(evidence):
    """Tabulates the plans that searches chose, and their baselines. Each plan was measured in the same run as the
    profile."""
    columns = ["card", "model", "tokens", "plan", "peak, predicted", "peak, measured", "step, predicted, ms",
               "step, measured, ms", "interval", "error", "report"]
    rows = {}
    for measurement, front in evidence.fronts.items():
        card, size = measurement.split("/")[0].upper(), size_of(front["model"], front["dimensions"])
        for point in {point["policy"]: point for point in front["points"] + front["baselines"]}.values():
            measured = point["measured"]
            if not measured or measured["status"] != "ok":
                continue
            low, high = measured["step_time_interval_ns"]
            rows[f"{measurement}, {point['policy']}"] = [
                card, front["model"], size, point["policy"], bytes_of(point["predicted_peak_allocated_bytes"]),
                bytes_of(measured["peak_allocated_bytes"]), milliseconds(point["predicted_step_time_ns"]),
                milliseconds(measured["step_time_ns"]), f"{milliseconds(low)} to {milliseconds(high)}",
                f"{100 * (point['predicted_step_time_ns'] / measured['step_time_ns'] - 1):+.1f} %", f"`{measurement}`"]
    return Table(columns, rows)


DETAIL = re.compile(r"peak_(allocated|reserved)_bytes|, requested |the target for counting| (allocated|reserved) \d")
ASSERTIONS = re.compile(r"All tests passed \((.+?)\)")
MAX_FINDINGS = 4
LONG_NUMBER = re.compile(r"\d+\.\d{4,}")


def measurements(evidence):
    """Tabulates the GPU measurements with their verdicts. Column `code` is the commit or, in older verdicts, the hash
    of the sources."""
    columns = ["measurement", "what it measures", "result", "code"]
    rows = {}
    for measurement, verdict in evidence.verdicts.items():
        findings = [line for line in verdict["findings"] if not DETAIL.search(line) and not BANDWIDTH.match(line)]
        for command in verdict["commands"]:
            findings += [found[1] for found in ASSERTIONS.finditer(command["tail"])][:1]
        said = LONG_NUMBER.sub(lambda found: f"{float(found[0]):.3g}", "; ".join(findings[:MAX_FINDINGS]))
        rows[measurement] = [f"`{measurement}`", verdict["what"], verdict["status"] + (f": {said}" if said else ""),
                          code_of(verdict)]
    return Table(columns, rows)


def code_of(verdict):
    if verdict.get("commit"):
        return f"{verdict['commit'][:8]}, {verdict['date']}"
    return f"tree {(verdict.get('source_sha256') or 'unknown')[:8]}"


# Published figures of FastVideo PR 1410 for Wan 1.3B on one H100: seconds per step and peak in GB.
PUBLISHED = {"full": (4.19, 26.82), "attn_only": (3.75, 28.88)}
WAN_SIZES = ("31,200", "72,000")
# Attention kernels in order of preference. The first is the default.
WAN_ATTENTION = ("cudnn", "flash", "efficient", "math", None)


def published_wan(evidence):
    """Tabulates FastVideo's published run of Wan 1.3B and our runs of two sizes. The published run used one of the two
    sizes, but it is not known which."""
    runs = [(size, ops) for size in WAN_SIZES for ops in ("eager", "fused")]
    columns = ["FastVideo PR 1410", "published", *(f"{size} tokens, {ops} ops" for size, ops in runs)]
    points = [point for point in in_order(evidence.points)
              if (point.model, point.card) == ("wan_1_3b", "H100") and "expandable" not in (point.allocator or "")]

    def measured(policy, run, read):
        for attention in WAN_ATTENTION:
            values = [value for point in points if (point.size, point.ops, point.policy, point.attention) ==
                      (*run, policy, attention) and (value := read(point)) is not None]
            if values:
                return statistics.median(values)
        return None

    def step(policy, run):
        return measured(policy, run, lambda point: point.step_ns)

    def peak(policy, run):
        return measured(policy, run, lambda point: point.timed_allocated or point.allocated)

    def ratio(run):
        attn_only, full = step("attn_only", run), step("full", run)
        return None if None in (attn_only, full) else attn_only / full

    def row(key, published, show, read):
        values = [read(run) for run in runs]
        return [key, published, *("not measured" if value is None else show(value) for value in values)]

    rows = []
    for policy, (seconds, _) in PUBLISHED.items():
        rows.append(row(f"step, {policy}", f"{seconds} s", lambda ns: f"{ns / 1e9:.2f} s",
                        lambda run, policy=policy: step(policy, run)))
    published = PUBLISHED["attn_only"][0] / PUBLISHED["full"][0]
    rows.append(row("step, attn_only over full", f"{published:.3f}", lambda value: f"{value:.3f}", ratio))
    for policy, (_, gigabytes) in PUBLISHED.items():
        rows.append(row(f"peak, {policy}", f"{gigabytes} GB", lambda count: f"{count / GB:.2f} GB",
                        lambda run, policy=policy: peak(policy, run)))
    return Table(columns, {cells[0]: cells for cells in rows})


TABLES = {"steps": steps, "peaks": peaks, "beside_pytorch": beside_pytorch, "rivals": rivals_table,
          "predicted": predicted, "bandwidth": bandwidth, "ceilings": ceilings, "measurements": measurements,
          "published_wan": published_wan, "fronts": fronts}


def make_all(evidence):
    return {name: make(evidence) for name, make in TABLES.items()}
