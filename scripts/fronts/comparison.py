"""Runs the plans of our front and PyTorch's own options for one model, and compares their peaks and step times."""

import dataclasses
import gc
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import rematch

rematch.count_memory()  # must run before the first tensor is made, because it replaces torch's allocators

import torch  # noqa: E402
import zoo  # noqa: E402

from fronts import pytorch, remat  # noqa: E402
from fronts.plane import Point, hypervolume_ratio, reference_of, unmatched, with_answers  # noqa: E402
from fronts.pricing import OpPrices, with_dear_ops_alone  # noqa: E402

MIB = 2**20
FAMILIES = ("full", "lists", "budget", "remat")
PEAK_TOLERANCE = 1e-4
MOST_STEPS = 6


def known_models():
    return [make.__name__ for make in zoo.PACKAGE_OF]


def say(text):
    print(f"compare_fronts.py: {text}", file=sys.stderr, flush=True)


@dataclasses.dataclass
class Priced:
    """The points of rematch and of PyTorch. All step times are computed from the same op times."""

    plain: Point
    ours: list
    theirs: dict  # maps each family to its points
    # `ours`, and more plans of the search. For each point of `theirs` that `ours` does not match, the search ran again
    # with the point's peak as budget.
    answered: list

    def all_of_theirs(self):
        return [point for family in FAMILIES for point in self.theirs[family]]

    def hypervolume(self, points):
        reference = reference_of(self.plain, self.ours, self.all_of_theirs())
        return hypervolume_ratio([self.plain, *points], reference)

    def ratio(self):
        return self.hypervolume(self.ours) / self.hypervolume(self.all_of_theirs())

    def unmatched(self):
        return unmatched(self.all_of_theirs(), self.answered)


@dataclasses.dataclass
class Row:
    model: str
    every_op: Priced
    dear_ops: Priced

    def is_ahead(self):
        return all(priced.ratio() >= 1 for priced in (self.every_op, self.dear_ops))


@dataclasses.dataclass
class Offer:
    """One of PyTorch's options, with the bytes that the step adds at its peak and the ops that the step recomputes."""

    family: str
    name: str
    rise_bytes: int
    recomputed: dict


def compare(name, device, num_points, has_remat):
    torch.manual_seed(0)
    model, step = getattr(zoo, name)()
    model.train()
    trace = rematch.trace(model, step)
    profile = profile_of(trace, device)
    offers = list(offers_run(model, step, trace, has_remat))
    row = Row(name, *(priced(model, step, trace, of_ops, offers, num_points)
                      for of_ops in (profile, with_dear_ops_alone(trace, profile))))
    for title, of_row in (("every op", row.every_op), ("matmuls and attention", row.dear_ops)):
        say(f"{name}, {title}: {of_row.ratio():.2f} times PyTorch's; better than ours: "
            f"{', '.join(point.name for point in of_row.unmatched()) or 'none'}")
    return row


def profile_of(trace, device):
    with tempfile.TemporaryDirectory() as folder:
        stored, written = (pathlib.Path(folder) / name for name in ("trace.json", "profile.json"))
        stored.write_text(json.dumps(trace))
        done = subprocess.run([os.environ["REMATCH_BINARY"], "profile", "--trace", stored, "--device", device, "-o", written],
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr.strip())
        return json.loads(written.read_text())


def rise_of(model, step):
    """Returns how many bytes the step adds at its peak, measured between ops. Repeats until two steps agree, because
    the first steps compile or fill caches."""
    risen = None
    for _ in range(MOST_STEPS):
        model.zero_grad(set_to_none=True)
        gc.collect()
        with rematch.watch() as figures:
            step().backward()
        model.zero_grad(set_to_none=True)
        before, risen = risen, max(figures["peak_bytes"].values()) - figures["before_bytes"]
        if risen == before:
            return risen
    sys.exit("compare_fronts.py: no two consecutive steps have the same peak")


def offers_run(model, step, trace, has_remat):
    draws = any(op.get("draws_random") for kind in trace["types"] for op in kind["ops"])
    plain = pytorch.counted_step(model, step)
    blocks = rematch.find_blocks(model)
    of_layers = pytorch.checkpointed_offers(blocks, draws)
    for family, name, put_on in itertools.chain(of_layers, offers_of_remat(blocks, draws) if has_remat else ()):
        with put_on():
            counts = pytorch.counted_step(model, step)
            yield Offer(family, name, rise_of(model, step), counts - plain)
    for budget in pytorch.BUDGETS:
        with pytorch.within_budget(step, budget) as (compiled, recomputed):
            yield Offer("budget", f"memory budget {budget}", rise_of(model, compiled), recomputed)


class GeneratorState:
    """Saves and restores the CPU's random generator, so that recompute repeats random draws."""

    def snapshot(self):
        return torch.get_rng_state()

    def restore(self, state):
        torch.set_rng_state(state)


def offers_of_remat(blocks, draws):
    import torch_remat

    return remat.remat_offers(torch_remat, blocks, (GeneratorState(),) if draws else ())


def priced(model, step, trace, profile, offers, num_points):
    front = rematch.search(trace, profile=profile, optimizer="none", points=num_points)
    prices = OpPrices(trace, profile)
    before = rematch.predict(trace, rematch.resolve(trace, "full"))["before_bytes"]
    nothing = front["nothing_recomputed"]
    plain = Point("no checkpointing", nothing["predicted_peak_allocated_bytes"], nothing["predicted_step_time_ns"])
    theirs = {family: [] for family in FAMILIES}
    for offer in offers:
        theirs[offer.family].append(
            Point(offer.name, before + offer.rise_bytes, plain.time_ns + prices.of(offer.recomputed)))
    ours = [our_point(model, step, trace, point, before) for point in front["points"]]

    def answer_of(peak_bytes):
        answer = rematch.search(trace, profile=profile, optimizer="none", points=num_points, budget=peak_bytes)["answer"]
        return answer and our_point(model, step, trace, answer, before)

    every_offer = [point for family in FAMILIES for point in theirs[family]]
    answered = with_answers(ours, every_offer, answer_of)
    for point in (plain, *answered, *every_offer):
        say(f"  {point.peak_bytes:>10} B {point.time_ns:>8} ns  {point.name}")
    say(f"  priced at 0 ns, because forward has no such op: {dict(prices.unpriced.most_common(5))}")
    return Priced(plain, ours, theirs, answered)


def our_point(model, step, trace, point, before):
    """Measures the peak of a plan and requires that it equals the predicted peak. Returns a point with the measured
    peak."""
    predicted = point["predicted_peak_allocated_bytes"]
    if not point["plan"]["regions"]:
        return Point(point["policy"], predicted, point["predicted_step_time_ns"])
    found = rematch.check(model, step, rematch.Checkpoint(point["plan"]))
    peak = before + found["checkpointed"]["peak_bytes"]
    recomputed = found["checkpointed"]["executed_ops"]["recompute"]
    if not found["bits_equal"] or recomputed != point["predicted_recomputed_ops"] or \
            abs(peak - predicted) > PEAK_TOLERANCE * predicted:
        say(f"{point['policy']}: bits equal {found['bits_equal']}, recomputed {recomputed} for "
            f"{point['predicted_recomputed_ops']}, peak {peak} B for {predicted} B")
        sys.exit(1)
    return Point(point["policy"], peak, point["predicted_step_time_ns"])


def markdown(rows):
    head = ("model", "peak without", "smallest peak: ours", "PyTorch's", "hypervolume: ours", "PyTorch's", "of full", "of lists",
            "of budgets", "of torch_remat", "ours / PyTorch's", "PyTorch's plans ahead of ours",
            "counting only matmuls and attention: ours / PyTorch's", "plans ahead")
    lines = [head, ["---"] * len(head), *(cells(row) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cells(row):
    every, dear = row.every_op, row.dear_ops
    theirs = every.all_of_theirs()

    def smallest(points):
        return f"{min(point.peak_bytes for point in points) / MIB:.2f} MiB"

    shares = [every.ours, theirs, *(every.theirs[family] for family in FAMILIES)]
    return [row.model, smallest([every.plain]), smallest(every.ours), smallest(theirs),
            *(f"{every.hypervolume(points):.4f}" if points else "" for points in shares),
            f"{every.ratio():.2f}", f"{len(every.unmatched())} of {len(theirs)}",
            f"{dear.ratio():.2f}", f"{len(dear.unmatched())} of {len(theirs)}"]
