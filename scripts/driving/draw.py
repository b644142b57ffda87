"""Makes a random test case from a seed. The same seed and catalogue give the same case."""

import json
import random
import string

from driving.afterwards import COMMANDS
from driving.case import FOLDER, Case, FrontPoint, PlanOf, words_of
from driving.models import ON_TEXT, draw_model
from driving.policies import FileDrawer

LONG_BLOCKS = ("wan", "ltx")  # models with so many ops that a search without --hull takes many seconds
# devices for which a search runs; times on "cpu" are measured, times on a card are computed from its data sheet
DEVICES = ("h100", "h100", "h200", "l40s", "a100", "cpu")


def draw_case(seed, attempt, catalogue, tool):
    rng = random.Random(f"{seed}/{attempt}")
    family, model = draw_model(rng)
    layers = int(model["--layers"])
    case = Case(seed, model, draw_flags(rng, family))
    if family in ON_TEXT and rng.random() < 0.1:
        case.flags["--data"] = f"{FOLDER}/text.txt"
        case.files["text.txt"] = "".join(rng.choices(string.printable + "\u00e9", k=400))
    case.model_from_plan = rng.random() < 0.5
    case.afterwards = rng.choice(tuple(COMMANDS))
    drawer = None
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        if drawer is None and rng.random() < 0.3:
            drawer = file_drawer(rng, case, tool, layers)
        add_policy(rng, case, drawer, catalogue, family)
    return case


def file_drawer(rng, case, tool, layers):
    """Returns None if the model cannot be traced. In that case the run must fail and say why."""
    done = tool.start("trace", *words_of(case.model, ""))
    return FileDrawer(rng, json.loads(done.out), layers) if done.code == 0 else None


def draw_flags(rng, family):
    flags = {"--schedule": rng.choice(("both", "both", "both", "on_demand", "whole_region")),
             "--steps": str(rng.choice((1, 1, 2, 3))),
             "--rounds": "1" if rng.random() < 0.03 else "0",
             "--threads": "2" if rng.random() < 0.1 else "1"}
    if rng.random() < 0.5:
        flags["--optimizer"] = rng.choice(("none", "adamw", "adamw(learning_rate=1e-4)"))
    if rng.random() < 0.4:
        flags["--attention"] = rng.choice(("math", "flash"))
    if rng.random() < 0.5:
        flags["--seed"] = str(rng.choice((1, 7, 999_999)))
    if rng.random() < 0.7:
        flags["--allow-no-effect"] = None
    if rng.random() < 0.03:
        flags["--device"] = "meta"
    if rng.random() < 0.05:
        flags["--reference"] = rng.choice(("full", "attn_only"))
    if rng.random() < 0.05:
        flags["--repeat-reference"] = "1"
    return flags


def add_policy(rng, case, drawer, catalogue, family):
    source = rng.random()
    layers = int(case.model["--layers"])
    if drawer is not None and rng.random() < 0.7:
        name = f"policy{len(case.files)}.json"
        case.files[name] = drawer.draw()
        case.policies.append(f"{FOLDER}/{name}")
    elif source < 0.72:
        spelling = catalogue.draw(rng, layers)
        if spelling not in case.policies:
            case.policies.append(spelling)
    elif source < 0.8:
        case.plans.append(PlanOf(catalogue.draw(rng, layers)))
    else:
        case.plans.append(draw_front_point(rng, case, family))


def draw_front_point(rng, case, family):
    """Chooses a random front point. Usually the search uses the run's own schedule and optimizer, because the front's
    figures apply only to such runs."""
    flags = {"--device": rng.choice(DEVICES)}
    schedule = case.flags["--schedule"]
    if schedule == "both" or rng.random() < 0.2:
        schedule = rng.choice(("on_demand", "whole_region"))
    flags["--schedule"] = schedule
    none = case.flags.get("--optimizer") == "none"
    flags["--optimizer"] = "none" if none != (rng.random() < 0.1) else "adamw"
    if rng.random() < (0.9 if family in LONG_BLOCKS else 0.2):
        flags["--hull"] = None
    if rng.random() < 0.3:
        flags["--points"] = str(rng.choice((2, 5, 60)))
    question = rng.random()
    if question < 0.1:
        flags["--budget"] = rng.choice(("1KiB", "40KiB", "100KiB", "1MiB"))
    elif question < 0.2:
        flags["--max-slowdown"] = rng.choice(("0%", "5%", "40%"))
    return FrontPoint(tuple(flags.items()), rng.random())
