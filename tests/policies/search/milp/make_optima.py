"""Writes optima.json beside this file: random blocks and models, each with the least recompute time under several
budgets. HiGHS finds these optima as solutions of mixed-integer programs, without code of the search. milp_test.cpp
compares the search with the optima. Needs a Python with highspy:

    python3 -m venv DIR && DIR/bin/pip install highspy==1.15.1
    DIR/bin/python tests/policies/search/milp/make_optima.py

A block is a sequence of ops. An op has outputs with a number of bytes each, reads outputs of earlier ops, and takes
time if it runs again. A view has no bytes of its own and cannot be saved. Saving an op holds all its outputs. The key
"demanded" lists the outputs that backward needs.

A model is a sequence of layers, each of which is one of a few blocks. While a layer runs backward, it needs
max(fixed_bytes, saved + beside_bytes). All earlier layers then still hold what they saved, and the gradients of later
layers exist. While a layer runs forward, it needs saved + forward_bytes. The head needs head_bytes in addition to
everything that is saved."""

import json
import pathlib
import random

import highspy

NUM_BLOCKS = 24
NUM_MODELS = 16
POINTS = 6


def random_block(dice, num_ops):
    ops = []
    for index in range(num_ops):
        is_view = index > 0 and dice.random() < 0.15
        outputs = [] if is_view else [dice.randint(1, 60) for _ in range(1 + (dice.random() < 0.2))]
        earlier = [(op, output) for op in range(max(0, index - 5), index)
                   for output in range(max(1, len(ops[op]["bytes"])))]
        if is_view:
            earlier = earlier[-3:]
        reads = dice.sample(earlier, min(len(earlier), 1 if is_view else dice.randint(0, 3)))
        time = dice.randint(0, 3) if is_view else dice.randint(1, 50)
        ops.append({"bytes": outputs, "time_ns": time, "reads": sorted(reads), "is_view": is_view})
    demanded = []
    for index, op in enumerate(ops):
        for output in range(max(1, len(op["bytes"]))):
            if dice.random() < 0.45 or index == num_ops - 1 and output == 0:
                demanded.append((index, output))
    return {"ops": ops, "demanded": demanded}


def solver():
    highs = highspy.Highs()
    highs.silent()
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.setOptionValue("mip_abs_gap", 1e-6)
    highs.setOptionValue("threads", 1)
    return highs


def add_block(highs, block):
    """Adds a block's choices to the program. Returns the block's held bytes and recompute time, as expressions."""
    ops = block["ops"]
    runs = [highs.addVariable(0, 1) for _ in ops]
    saves = [None if op["is_view"] else highs.addBinary() for op in ops]

    def has(op):
        return runs[op] if saves[op] is None else runs[op] + saves[op]

    for op in {op for op, _ in block["demanded"]}:
        highs.addConstr(has(op) >= 1)
    for index, op in enumerate(ops):
        for read in {read for read, _ in op["reads"]}:
            highs.addConstr(has(read) - runs[index] >= 0)
    held = sum(sum(op["bytes"]) * save for op, save in zip(ops, saves) if save is not None)
    time = sum(op["time_ns"] * run for op, run in zip(ops, runs))
    return held, time


def least(highs, time):
    """Returns the optimum, or None if nothing fits."""
    highs.minimize(time)
    status = highs.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        return None
    assert status == highspy.HighsModelStatus.kOptimal, status
    value = highs.getObjectiveValue()
    assert abs(value - round(value)) < 1e-4, value
    return round(value)


def block_optimum(block, budget):
    highs = solver()
    held, time = add_block(highs, block)
    highs.addConstr(held <= budget)
    return least(highs, time)


def model_optimum(model, budget):
    highs = solver()
    held_before = 0
    total_time = 0
    layers = model["layers"]
    for layer, kind in enumerate(layers):
        figures = model["kinds"][kind]
        held, time = add_block(highs, figures["block"])
        born = model["gradient_bytes"] * (len(layers) - 1 - layer)
        after = held_before + held
        highs.addConstr(held_before + 0 * held <= budget - figures["fixed_bytes"] - born)
        highs.addConstr(after <= budget - figures["beside_bytes"] - born)
        highs.addConstr(after <= budget - figures["forward_bytes"])
        held_before = after
        total_time = total_time + time
    highs.addConstr(held_before <= budget - model["head_bytes"])
    return least(highs, total_time)


def saved_by_all(block):
    return sum(sum(op["bytes"]) for op in block["ops"])


def random_model(dice, index):
    kinds = [{"block": random_block(dice, dice.randint(5, 9)),
              "fixed_bytes": dice.randint(50, 400),
              "beside_bytes": dice.randint(0, 120),
              "forward_bytes": dice.randint(0, 120)} for _ in range(1 + index % 3)]
    return {"kinds": kinds, "layers": [dice.randrange(len(kinds)) for _ in range(4 + index % 9)],
            "gradient_bytes": dice.choice([0, 10, 40]), "head_bytes": dice.randint(0, 500)}


def points(optimum, low, high):
    found = []
    for step in range(POINTS):
        budget = low + (high - low) * step // (POINTS - 1)
        found.append({"budget_bytes": budget, "recompute_ns": optimum(budget)})
    return found


def main():
    dice = random.Random(20250607)
    blocks = [random_block(dice, 12 + index) for index in range(NUM_BLOCKS)]
    for block in blocks:
        block["points"] = points(lambda budget: block_optimum(block, budget), 0, saved_by_all(block) // 2)
    models = [random_model(dice, index) for index in range(NUM_MODELS)]
    for model in models:
        all_saved = sum(saved_by_all(model["kinds"][kind]["block"]) for kind in model["layers"])
        model["points"] = points(lambda budget: model_optimum(model, budget), 200, 200 + all_saved * 3 // 4)
    optima = {"highs": highspy.Highs().version(), "blocks": blocks, "models": models}
    path = pathlib.Path(__file__).with_name("optima.json")
    lines = ["{", f' "highs": {json.dumps(optima["highs"])},']
    for name, last in (("blocks", False), ("models", True)):
        lines.append(f' "{name}": [')
        lines.append(",\n".join("  " + json.dumps(item) for item in optima[name]))
        lines.append(" ]" + ("" if last else ","))
    path.write_text("\n".join(lines + ["}"]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
