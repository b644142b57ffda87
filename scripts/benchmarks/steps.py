"""Compares the step time of each policy with PyTorch eager. Both run the same shapes and ops, alternately."""

from benchmarks.rows import Row, median_with_interval
from benchmarks.servers import OURS, THEIRS, Failed, Server

POLICIES = ["none", "full", "attn_only", "save_mm"]
SCHEDULES = ["whole_region", "on_demand"]

# Name, preset and overridden sizes. In the smallest model, kernels process only a few hundred bytes. In the largest
# model, kernels take so long that they hide all other costs.
SHAPES = [
    ("llama dispatch-bound", "llama_small",
     {"dim": 16, "heads": 2, "kv_heads": 2, "ffn": 32, "batch": 1, "tokens": 4}),
    ("llama_small", "llama_small", {}),
    ("wan_small", "wan_small", {}),
    ("llama dim 512", "llama_small",
     {"layers": 2, "dim": 512, "heads": 8, "kv_heads": 4, "ffn": 1408, "batch": 1}),
    ("wan dim 384", "wan_small",
     {"layers": 2, "dim": 384, "heads": 6, "ffn": 1536, "frames": 2, "height": 8, "width": 16,
      "batch": 1}),
]

# Time for which the faster program runs before the other program's turn. This is much longer than a process takes to
# wake up, but shorter than a stall of the machine.
TURN_NANOSECONDS = 40e6
WARM_UP_STEPS = 3
ROUNDS = 20


def arms_of_ours():
    return [("none", "")] + [(policy, schedule) for policy in POLICIES[1:] for schedule in SCHEDULES]


def compare_shape(python, shape, threads, rounds, say):
    name, model, dimensions = shape
    arms = arms_of_ours()
    spellings = ["/".join(filter(None, arm)) for arm in arms]
    with Server([OURS], model, threads, dimensions, spellings) as ours, \
            Server([*python, THEIRS], model, threads, dimensions, POLICIES) as theirs:
        times = take_turns(ours, theirs, arms, rounds, lambda done: say(f"{name}, round {done} of {rounds}"))
        executed = [ours.ops(index) for index in range(len(arms))]
    with Server([*python, THEIRS, "--count"], model, threads, dimensions, POLICIES) as counter:
        expected = {policy: counter.ops(index) for index, policy in enumerate(POLICIES)}
    return [
        row_of(name, arm, times[index], executed[index], expected[arm[0]])
        for index, arm in enumerate(arms)
    ]


def take_turns(ours, theirs, arms, rounds, say):
    """Returns, for each arm of rematch, the ratio of its step time to PyTorch's in each round. A round runs a policy's
    first arm, then PyTorch, then the policy's other arms. Every second round reverses this order."""
    steps = {}
    for policy_index, policy in enumerate(POLICIES):
        mine = [index for index, arm in enumerate(arms) if arm[0] == policy]
        for index in mine:
            ours.nanoseconds(index, WARM_UP_STEPS)
        theirs.nanoseconds(policy_index, WARM_UP_STEPS)
        quickest = min(ours.nanoseconds(mine[0], 1), theirs.nanoseconds(policy_index, 1))
        steps[policy] = max(1, round(TURN_NANOSECONDS / quickest))
    ratios = [[] for _ in arms]
    for turn in range(rounds):
        say(turn + 1)
        for policy_index, policy in enumerate(POLICIES):
            mine = [index for index, arm in enumerate(arms) if arm[0] == policy]
            one_round(ours, theirs, mine, policy_index, steps[policy], turn, ratios)
    return ratios


def one_round(ours, theirs, mine, policy_index, steps, turn, ratios):
    order = [*mine[:1], None, *mine[1:]]
    if turn % 2:
        order.reverse()
    found = {}
    for index in order:
        server, which = (theirs, policy_index) if index is None else (ours, index)
        found[index] = server.nanoseconds(which, steps)
    for index in mine:
        ratios[index].append(found[index] / found[None])


def row_of(name, arm, ratios, executed, expected):
    policy, schedule = arm
    ours, theirs = sum(executed.values()), sum(expected.values())
    if schedule != "on_demand" and executed != expected:
        different = sorted(op for op in {*executed, *expected} if executed.get(op) != expected.get(op))
        raise Failed(f"{name}, {policy}: executed ops differ from PyTorch's, so the times cannot "
                     f"be compared: {', '.join(different)}")
    median, interval = median_with_interval(ratios)
    return Row("pytorch", ", ".join(filter(None, (name, policy, schedule))), "x", median, interval, 1.0,
               f"{ours} ops, PyTorch {theirs}")
