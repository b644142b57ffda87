"""Writes choices.json beside this file: random inputs to the planners of PyTorch 2.11.0, and what these planners chose.
tests/policies/planners/choices_test.cpp compares rematch's planners with this file. Needs a Python with torch==2.11.0, numpy,
scipy, pulp and pwlf:

    DIR/bin/python tests/parity/planners/make_choices.py

PyTorch's integer programs for modules and for ops stop within 5 % of the optimum. Keys with "exact" hold the optimal
answers."""

import json
import logging
import math
import pathlib
import random

import pulp
import torch
from torch._functorch._activation_checkpointing.knapsack import dp_knapsack, ilp_knapsack
from torch.distributed._tools import sac_ilp
from torch.distributed._tools.ilp_utils import Graph
from torch.distributed._tools.sac_estimator import SACEstimator, SACStats

GIB = 2**30
logging.disable(logging.WARNING)


class Solver:
    """If `exact`, PyTorch's integer programs run to the optimum. Otherwise they stop within 5 % of it."""

    def __init__(self, exact):
        self.exact = exact

    def __enter__(self):
        if self.exact:
            sac_ilp.PULP_CBC_CMD = lambda gapRel, timeLimit, msg: pulp.PULP_CBC_CMD(
                gapRel=0, timeLimit=timeLimit, msg=msg)

    def __exit__(self, *_):
        sac_ilp.PULP_CBC_CMD = pulp.PULP_CBC_CMD


def knapsacks(dice):
    cases = [([25 / 78, 5 / 78, 22 / 78, 26 / 78], [25.0, 2.0, 27.0, 28.0], 72 / 78),
             ([0.5, 0.25], [float(2**25), 1.0], 1.0), ([], [], 0.5), ([0.0, 0.00004], [1.0, 2.0], 0.0)]
    for number in range(60):
        count = dice.randint(1, 40)
        kinds = [(dice.random() ** 2 * 0.3, dice.lognormvariate(0, 2)) for _ in range(1 + count // 4)]
        items = [dice.choice(kinds) for _ in range(count)]  # some items are equal, as in a model with equal layers
        if number % 3 == 0:
            items = [(round(memory, 2), float(round(time))) for memory, time in items]
        cases.append(([memory for memory, _ in items], [time for _, time in items], dice.random()))
    found = []
    for memory, runtime, budget in cases:
        case = {"memory": memory, "runtime": runtime, "budget": budget}
        case["dp"] = dp_knapsack(memory, runtime, budget)[1] if memory else []
        case["ilp_runtime"] = ilp_knapsack(memory, runtime, budget)[0] if memory else 0
        found.append(case)
    return found


def random_ops(dice):
    count = dice.randint(3, 24)
    memory = [512 * dice.randint(0, 400) for _ in range(count)]
    runtimes = [dice.randint(1, 10_000) / 1000 for _ in range(count)]
    views, rand, in_place = [], [], []
    for op in range(count):
        kind = dice.random()
        if kind < 0.2:
            views.append(op)
            memory[op] = 0
        elif kind < 0.3:
            rand.append(op)
        elif kind < 0.4:
            parents = [parent for parent in range(op) if parent not in views and parent not in rand]
            in_place.append((op, dice.choice(parents) if parents and dice.random() < 0.8 else op))
    parent_of = dict(in_place)  # the first op of a chain is the parent of all its other ops
    in_place = [(op, parent_of.get(parent, parent) if parent != op else op) for op, parent in in_place]
    return SACStats(func_names=["op"] * count, runtimes=runtimes, memory=memory, view_like_ops=views,
                    rand_ops=rand, saved_autograd_ops=[], inplace_ops=in_place,
                    force_store_random=dice.random() < 0.3)


def choices_of_ops(dice):
    found = []
    for _ in range(40):
        stats = random_ops(dice)
        budget = dice.random()
        case = {"memory_bytes": stats.memory, "runtimes_ms": stats.runtimes, "views": stats.view_like_ops,
                "random": stats.rand_ops, "in_place": stats.inplace_ops,
                "must_store_random": stats.force_store_random, "budget": budget}
        for name, exact in (("runtime_ms", False), ("exact_runtime_ms", True)):
            with Solver(exact):
                saved = sac_ilp.get_optimal_checkpointing_policy_per_module(stats, budget)
            case[name] = sum(t for t, save in zip(stats.runtimes, saved) if save) if saved else None
        found.append(case)
    return found


def tradeoffs(dice):
    estimator = SACEstimator()
    found = []
    while len(found) < 12:
        stats = random_ops(dice)
        if sum(stats.memory) == 0 or stats.rand_ops:
            continue
        try:
            fit = estimator._get_sac_tradeoff_pwlf_stats(stats, estimator._get_greedy_order_meta(stats))
        except Exception:  # PyTorch's piecewise-linear fit fails if there are too few points
            continue
        points = [list(point) for point in fit.tradeoff_curve.items()]
        found.append({"memory_bytes": stats.memory, "runtimes_ms": stats.runtimes,
                      "views": stats.view_like_ops, "in_place": stats.inplace_ops, "points": points,
                      "slopes": fit.slopes, "intercepts": fit.intercepts})
    return found


def random_model(dice, num_blocks):
    """Makes a root, blocks that contain a leaf or a nested module, and a head. The list is in pre-order."""
    nodes = []
    total, born = 0, 0
    names = []
    for block in range(num_blocks):
        names.append((f"m.b{block}", False))
        if dice.random() < 0.4:
            names.append((f"m.b{block}.ffn", dice.random() < 0.4))
    kinds = {}
    for name, is_leaf in [("m", False), *names, ("m.head", True)]:
        kind = dice.randrange(2)
        if is_leaf or (name.count("."), kind) not in kinds:
            kept = dice.randint(100, 900) * 2**20
            figures = {"act_fw_per_module": kept, "sac_memory": kept + dice.randint(0, 500) * 2**20,
                       "sac_runtime": dice.randint(100, 4000) / 100,
                       "act_grad_per_module": dice.randint(0, 300) * 2**20}
            knee, rise = dice.uniform(0.3, 0.8), dice.uniform(0.1, 0.5)
            low, high = rise / knee, (1 - rise) / (1 - knee)
            figures["slopes"] = sorted((low, high))
            figures["intercepts"] = [0.0, rise - figures["slopes"][1] * knee]
            figures["intercepts"][0] = rise - figures["slopes"][0] * knee
            kinds[(name.count("."), kind)] = figures
        nodes.append({"fqn": name, "is_leaf": is_leaf, **kinds[(name.count("."), kind)]})
    post_order = [name for name, _ in names if name.count(".") == 1]
    order = []
    for name in post_order:
        order += [node["fqn"] for node in nodes if node["fqn"].startswith(name + ".")] + [name]
    order += ["m.head", "m"]
    for name in order:
        node = next(node for node in nodes if node["fqn"] == name)
        if name.count(".") == 1:
            total += node["act_fw_per_module"]
        node["act_total"] = total
        node["grad_total"] = born
        born += 2**20
    for node in nodes:
        node["param_per_module"] = 2 * GIB
        node["n_segments"] = len(node["slopes"])
    return nodes, order


def graph_of(nodes, order):
    graph = Graph(len(nodes))
    graph.fw_post_order = order
    for index, node in enumerate(nodes):
        node = {**node, "index": index, "pos_fw_post_order": order.index(node["fqn"])}
        graph.add_node(node)
        for other in range(index, len(nodes)):
            inside = nodes[other]["fqn"]
            graph.ad_matrix[index][other] = inside == node["fqn"] or node["fqn"] + "." in inside
    return graph


def choices_of_modules(dice):
    found = []
    for number in range(16):
        nodes, order = random_model(dice, 2 + number % 6)
        nodes[0]["is_leaf"] = True  # prevents checkpointing of the root, as in PyTorch
        most = max(node["act_total"] + node["act_grad_per_module"] + node["grad_total"] for node in nodes)
        budget = (2 * GIB + most * dice.uniform(0.25, 1.0)) / GIB
        case = {"modules": nodes, "post_order": order, "budget_gib": budget}
        for name, exact in (("recompute_ms", False), ("exact_recompute_ms", True)):
            with Solver(exact):
                _, time, peak = sac_ilp.sac_milp(graph_of(nodes, order), budget)
            case[name] = None if peak == -1 else time
        found.append(case)
    return found


def main():
    dice = random.Random(197871)
    choices = {"torch": torch.__version__, "knapsacks": knapsacks(dice), "ops": choices_of_ops(dice),
               "tradeoffs": tradeoffs(dice), "modules": choices_of_modules(dice)}
    assert not any(math.isnan(case["ilp_runtime"]) for case in choices["knapsacks"])
    lines = ["{", f' "torch": {json.dumps(choices["torch"])}']
    for name in ("knapsacks", "ops", "tradeoffs", "modules"):
        lines[-1] += ","
        lines.append(f' "{name}": [')
        lines.append(",\n".join("  " + json.dumps(case) for case in choices[name]))
        lines.append(" ]")
    path = pathlib.Path(__file__).with_name("choices.json")
    path.write_text("\n".join(lines + ["}"]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
