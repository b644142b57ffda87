"""The stages of scripts/verify_gpu: what each runs, and what must be true of what it leaves behind.
A stage is data and pure functions, so all of it but the GPU is tested without one."""

import json
import re
import shlex
import statistics
from dataclasses import dataclass, field
from pathlib import Path

MIB = 1 << 20

# The allowed error of the prediction where kernels' own temporaries are not in it.
PEAK_RATIO = 0.001
PEAK_BYTES = 2 * MIB
# The slowdown of a step that counting kernels may cost.
MOST_SLOWDOWN = 1.10

# Catch's words for tests that did not run: with a device here, none has a reason to.
SKIPPED_TESTS = re.compile(r": skipped|No test cases matched|No tests ran")
# Doctor's words for a device that cannot be used, or on which kernels cannot be counted.
UNUSABLE = re.compile(r"^(device cuda|kernels) +(?!ok$| )")
# compute-sanitizer's words for a race in a kernel of ours (cuBLAS's have some), and for no check at all.
RACES = re.compile(r"access at .*rematch_|Device not supported")
SUMMARY = re.compile("^=+ (?=(ERROR|RACECHECK) SUMMARY)")

SMALL_MODELS = ["llama_small", "wan_small", "moe_small", "ltx_small", "deepseek_small"]
# Dispatch-bound on any GPU: what the engine costs shows, and the kernels do not.
TINY = "--model llama_small --layers 8 --dim 16 --heads 1 --kv-heads 1 --ffn 32 --tokens 4 --batch 1"
# 30 layers of two attention ops; 10 steps: 600 in forward.
COUNTED = ("--model wan_1_3b --layers 30 --dim 64 --heads 4 --ffn 128 --tokens 64 --batch 1 "
           "--policy none,full,attn_only --schedule whole_region --steps 10 --rounds 0")

# The built programs, where preset cuda has them and where preset dev has those on the dry device.
PROGRAMS = {
    "rematch": "harness/cli/rematch",
    "engine_cuda_test": "tests/harness/engine/engine_cuda_test",
    "run_cuda_test": "tests/harness/run/run_cuda_test",
    "attention_cuda_test": "tests/kernels/attention_cuda_test",
    "fused_ops_cuda_test": "tests/kernels/fused_ops_cuda_test",
    "cupti_test": "tests/harness/profile/cupti_test",
}
DRY_PROGRAMS = {**PROGRAMS, "rematch": "harness/cli/dry/rematch"}


@dataclass
class Stage:
    name: str
    what: str
    commands: list  # of lists of words; {report} is the stage's own report, {NAME} a program's path
    judge: object = None  # report -> (findings, problems); None: the exit codes say it all
    ok_codes: tuple = (0,)
    needs: list = field(default_factory=list)  # programs on the PATH
    gpu: bool = True
    refuse: object = None  # a pattern; a line of a command's output that has it fails the stage
    quote: object = None  # a pattern; what follows it in a line of a command's output is a finding
    part: int = 1  # of the three that are typed: 1, 2, 3; 0: asked for by name alone
    seconds: int = 240  # the most it takes
    dry: bool = True  # has something to say on the dry device
    torch: bool = False  # needs a Python with torch 2.11 that sees the device


def rematch(words):
    return ["{rematch}", "run", *shlex.split(words), "--device", "cuda", "-o", "{report}"]


def is_dry(report):
    return (report.get("environment", {}).get("device") or "").startswith("dry ")


def points(report):
    for point in report.get("points", []):
        yield f"{point['policy']}, {point['schedule']}", point


def timed_out(report):
    return [f"{name}: {point['status']}: {point['reason']}" for name, point in points(report)
            if point["status"] == "timeout"]


def without(report, late):
    """The report of those that ended; all of it where nothing was late."""
    if not late:
        return report
    return {**report, "points": [point for point in report["points"] if point["status"] != "timeout"]}


def wrong_bits(point):
    parity = point["parity"]
    if not parity:
        return "was held against no reference"
    bits = [parity[key] for key in ("loss_bits_equal", "gradient_bits_equal", "parameter_hash_equal",
                                    "generator_hash_equal")]
    if False in bits:
        where = parity["first_different_tensor"] or "a tensor without a name"
        return f"bits differ from {parity['reference']}'s at {where}"
    if point["status"] != "ok":
        return None  # compared as far as it got
    if None in bits:
        return f"bits were not compared with {parity['reference']}'s"
    if not parity["every_parameter_has_gradient"]:
        return f"bits prove nothing: no gradient at {parity['first_parameter_without_gradient']}"
    return None


def wrong_counts(point):
    effect = point["effect"] or {}
    if effect.get("counts_equal_prediction"):
        return None
    return f"executed other ops than predicted: {effect.get('detail') or 'not counted'}"


def peaks_of(point):
    """What tensors asked for at most, and what was predicted of it: libraries' workspaces included."""
    memory = point["memory"] or {}
    measured, predicted, workspace = (memory.get(key) for key in (
        "peak_requested_bytes", "predicted_peak_requested_bytes", "workspace_bytes"))
    if None in (measured, predicted, workspace):
        return None, None
    return measured, predicted + workspace


def wrong_peak(point):
    measured, predicted = peaks_of(point)
    if measured is None:
        return "no peak was measured beside its prediction"
    off = measured - predicted
    if abs(off) <= max(PEAK_BYTES, PEAK_RATIO * measured):
        return None
    return f"peak {measured} B is off its prediction by {off} B, allowed are 0.1 % or 2 MiB"


def point_problems(report, results=("ok",)):
    """What no stage lets pass, whatever else it looks at: an end that is no result, other bits than
    the reference's, other ops than the plan's, a peak that is not the predicted one."""
    problems = []
    for name, point in points(report):
        wrong = []
        if point["status"] == "ok":
            checks = (wrong_counts, wrong_peak) if is_dry(report) else (wrong_bits, wrong_counts, wrong_peak)
            wrong = [check(point) for check in checks]
        elif point["status"] not in results:
            wrong = [f"{point['status']}: {point['reason']}"]
        elif point["parity"]:
            wrong = [wrong_bits(point)]
        problems += [f"{name}: {text}" for text in wrong if text]
    return problems if report["points"] else ["the report has no points"]


def judge_bits(report):
    """Every policy gives the bits of its reference, or a reason that is not about bits."""
    if is_dry(report):
        return ["bits are not proven on the dry device"], point_problems(report)
    equal = sum(point["status"] == "ok" and not wrong_bits(point) for _, point in points(report))
    findings = [f"{equal} of {len(report['points'])} points have the reference's bits"]
    return findings, point_problems(report)


def kernel_sum(point, kernel_class):
    kernels = point["kernels"]
    if kernels is None:
        return None
    return sum(phase.get(kernel_class, 0) for phase in kernels["kernel_count"].values())


def judge_counts(report):
    """Attention forward kernels of 10 steps: 600, and 1200 where the blocks are recomputed."""
    expected = {"none": 600, "full": 1200, "attn_only": 600}
    findings, problems = [], point_problems(report)
    for name, point in points(report):
        ran = kernel_sum(point, "attention_forward")
        if ran is None:
            problems.append(f"{name}: no kernel counts: {point['kernels_reason']}")
            continue
        kernels = point["kernels"]
        slowdown = kernels["slowdown_ratio"]
        cost = "unknown" if slowdown is None else f"{slowdown - 1:.1%}"
        findings.append(f"{name}: {ran} attention forward kernels, {kernels['unknown_time_ratio']:.2%} "
                        f"of kernel time unknown, counting slowed the step by {cost}")
        if kernels.get("note"):
            findings.append(f"{name}: {kernels['note']}")
        if slowdown is not None and slowdown > MOST_SLOWDOWN:
            findings.append(f"{name}: the target for counting is {MOST_SLOWDOWN - 1:.0%}: missed")
        if kernels["invalid"]:
            problems.append(f"{name}: {kernels['invalid']}")
        if ran != expected[point["policy"]]:
            problems.append(f"{name}: {expected[point['policy']]} were expected")
    return findings, problems


def judge_overhead(report):
    """The ratio is a figure, not a verdict: its target holds on a CPU."""
    findings, problems = [], point_problems(report)
    if is_dry(report):
        return ["the dry device has no times"], problems
    for name, point in points(report):
        ratio = (point["time"] or {}).get("step_ratio")
        if ratio and point["policy"] != "none":
            low, high = ratio["interval"] or (None, None)
            findings.append(f"{name}: {ratio['ratio']:.3f} of none's step [{low}, {high}]")
    return findings, problems + ([] if findings else ["no ratio was measured"])


def judge_steps(report):
    """Peaks beside their predictions, kernels and times. Out of memory is a result here; crashes, wrong
    counts, other bits and other peaks are not."""
    findings, problems = [], point_problems(report, results=("ok", "oom"))
    for name, point in points(report):
        memory, time = point["memory"] or {}, point["time"] or {}
        measured, predicted = peaks_of(point)
        slowdown = (point["kernels"] or {}).get("slowdown_ratio")
        if slowdown is not None:
            findings.append(f"{name}: counting slowed the step by {slowdown - 1:.1%}")
        findings.append(f"{name}: {point['status']}, requested {measured} B, predicted {predicted} B, allocated "
                        f"{memory.get('peak_allocated_bytes')} B, reserved {memory.get('peak_reserved_bytes')} B, "
                        f"{kernel_sum(point, 'attention_forward')} attention forward kernels, "
                        f"step {time.get('step_median_ns')} ns")
    if not any(point["status"] == "ok" for _, point in points(report)):
        problems.append("no policy fits")
    return findings, problems


# Fields that a dry device knows as well as a GPU.
SAME_ON_DRY = ("peak_requested_bytes", "workspace_bytes")


def against_dry(report, expected):
    """(findings, problems): the report beside that of the same command on the dry device."""
    dry = dict(points(expected))
    findings, problems = [], []
    for name, point in points(report):
        other = dry.get(name)
        if other is None or point["status"] != "ok" or other["status"] != "ok":
            continue
        memory, expected_memory = point["memory"] or {}, other["memory"] or {}
        for key in SAME_ON_DRY:
            if memory.get(key) != expected_memory.get(key):
                problems.append(f"{name}: {key} is {memory.get(key)}, dry {expected_memory.get(key)}")
        for key in ("peak_allocated_bytes", "peak_reserved_bytes"):
            findings.append(f"{name}: {key} {memory.get(key)}, dry {expected_memory.get(key)}")
        if point["kernels"] is None or other["kernels"] is None:
            continue
        for kernel_class in ("attention_forward", "attention_backward"):
            ran, there = kernel_sum(point, kernel_class), kernel_sum(other, kernel_class)
            if ran != there:
                problems.append(f"{name}: {ran} kernels of class {kernel_class}, dry {there}")
    return findings, problems


# A step of ours may take as long as PyTorch's.
MOST_OVER_PYTORCH = 1.0


def judge_pytorch(report):
    """Step times beside PyTorch eager's, by turns. Slower is a figure; another attention kernel or determinism
    is no comparison."""
    theirs = {}
    for samples in report["rounds"]:
        for policy, measured in samples.items():
            theirs.setdefault(policy, []).extend(measured["samples_ns"])
    findings = [f"PyTorch {report['torch']}, {report['attention_backend']} attention, {len(report['rounds'])} rounds"]
    problems = []
    for name, point in points({"points": report["rematch"]}):
        time, samples = point["time"] or {}, theirs.get(point["policy"])
        if not time or not samples:
            findings.append(f"{name}: {point['status']}, PyTorch {'ok' if samples else 'did not finish it'}")
            continue
        how = [(report["attention_backend"], report["settings"]["deterministic"]),
               (time["attention_backend"], bool(time["repeatable_bits"]))]
        if how[0] != how[1]:
            problems.append(f"{name}: attention and determinism are {how[1]}, PyTorch's {how[0]}")
            continue
        ratio = time["step_median_ns"] / statistics.median(samples)
        findings.append(f"{name}: {ratio:.3f} of PyTorch eager's {statistics.median(samples) / 1e6:.1f} ms"
                        + ("" if ratio <= MOST_OVER_PYTORCH else ", the target is 1.0: missed"))
    if not any(" of PyTorch eager's " in line for line in findings) and not problems:
        problems.append("no policy was timed on both sides")
    return findings, problems


def judge_profile(profile):
    """Every op that does something has a time, and what its kernels allocate inside."""
    findings, problems = [], []
    for name in ("forward", "backward"):
        types = profile[name]["types"]
        times = sum(sum(types[index]["times_ns"]) for index in profile[name]["spans"])
        findings.append(f"{name}: {times} ns in kernels")
        if times == 0:
            problems.append(f"{name}: no op took any time on the device")
        if any(kind["temporary_bytes"] is None for kind in types):
            problems.append(f"{name}: what kernels allocate inside was not measured")
        else:
            most = max(max(kind["temporary_bytes"]) for kind in types)
            findings.append(f"{name}: kernels allocate at most {most} B inside")
    if (profile["device"], profile["source"]) != ("cuda", "measured"):
        problems.append(f"the profile is {profile['source']}, of {profile['device']}")
    return findings, problems


# Full size. The rounds of a run that goes on are those of the file before.
WAN = ("--model wan_1_3b --tokens 31200 --batch 1 --dtype bfloat16 --policy none,full,attn_only --steps 1 "
       "--timeout {timeout} --retries 0 --force")


def beside_pytorch(words, report):
    """PyTorch's turn, ours, PyTorch's, after the rounds that `report` has."""
    turn = ["{python}", "scripts/gpu/pytorch_steps.py", "--beside", report, "--steps", "1", "-o", "{report}"]
    again = ["{rematch}", "run", *shlex.split(words), "--rounds", "2", "--device", "cuda", "-o", report]
    return [[*turn, "--fresh"], again, turn]


def build_commands(build, root, libtorch_root, carried, jobs):
    flags = [f"-DLIBTORCH_ROOT={libtorch_root}"]
    if carried:
        flags += [f"-DCMAKE_PREFIX_PATH={carried}/usr", f"-DOPENSSL_ROOT_DIR={carried}/usr",
                  f"-DVALIJSON_INCLUDE_DIR={carried}/valijson/include"]
    targets = ["rematch_cli", *(name for name in PROGRAMS if name != "rematch")]
    return [["cmake", "--preset", "cuda", "-B", str(build), "-S", str(root), *flags],
            ["ninja", "-C", str(build), f"-j{jobs}", *targets]]


def tests(name, what, tags="{tests}", dry=True):
    """A test program with every test that this device can run. Not `dry`: none of them is for the dry device."""
    return Stage(name, what, [["{" + name + "}", tags]], refuse=SKIPPED_TESTS, dry=dry)


def all_stages(setup):
    stages = [
        Stage("build", "Preset cuda, where no built programs were carried along", setup,
              needs=["cmake", "ninja", "nvcc"], gpu=False, part=0, seconds=520),
        Stage("doctor", "The device can be used, and its kernels counted", [["{rematch}", "doctor"]],
              refuse=UNUSABLE),
        Stage("smoke", "One matmul, one kernel, linked to it",
              [["{run_cuda_test}", "a matmul is recorded as one kernel*"]], refuse=SKIPPED_TESTS),
        Stage("cupti_test", "CUPTI's library, and NVTX", [["{cupti_test}"]]),
        tests("engine_cuda_test", "The engine: bits, dropout, autograd's threads"),
        tests("attention_cuda_test", "Attention's backends against the CPU", tags="[gpu]", dry=False),
        tests("fused_ops_cuda_test", "Fused ops against the CPU", dry=False),
        *[Stage(f"kernel_counts_{dtype}", f"600 attention forward kernels, 1200 with full, in {dtype}",
                [rematch(f"{COUNTED} --dtype {dtype}")], judge_counts, (0, 3, 5))
          for dtype in ("float32", "bfloat16")],
        Stage("wan_1_3b", "Counts, peaks and step times of the model at its own size", [
            rematch(f"{WAN} --rounds 1")], judge_steps, (0, 3, 5), part=2, seconds=400),
        Stage("pytorch_wan_1_3b", "The same steps in PyTorch eager, by turns",
              beside_pytorch(WAN, "{out}/wan_1_3b.report.json"), judge_pytorch, (0, 3, 5), part=2, seconds=240,
              dry=False, torch=True),
        Stage("llama3_1b", "Counts, peaks and step times of the model at its own size", [
            rematch("--model llama3_1b --tokens 2048 --batch 4 --dtype bfloat16 --policy none,full,attn_only,save_mm "
                    "--steps 1 --rounds 2 --timeout {timeout} --retries 0 --force")], judge_steps, (0, 3, 5), part=3, seconds=240),
        Stage("profile", "Kernel times and temporaries of every op",
              [["{rematch}", "profile", "--model", "llama_small", "--device", "cuda", "--steps", "10", "-o",
                "{report}"]], judge_profile, part=3, seconds=60, dry=False),
        Stage("front", "A search over that profile, its best plans measured",
              [["{rematch}", "search", "--model", "llama_small", "--profile", "{out}/profile.report.json",
                "--measure", "3", "--baselines", "none,full", "--steps", "3", "--rounds", "2", "-o", "{report}"]], part=3, seconds=120, dry=False),
    ]
    for model in SMALL_MODELS:
        stages.append(Stage(
            f"bits_{model}", f"{model}: four policies have the bits of none",
            [rematch(f"--model {model} --policy none,full,attn_only,save_mm --schedule both --steps 2 --rounds 0 "
                     "--allow-no-effect")], judge_bits, (0, 3, 5), part=3, seconds=120))
    stages += [
        Stage("engine_overhead", "Dispatch-bound step over the same step without a policy", [
            rematch(f"{TINY} --policy none,full,save_mm --schedule both --steps 20 --rounds 5")],
              judge_overhead, (0, 3, 5), part=3, seconds=120),
        Stage("run_cuda_test", "Every policy of the catalogue on every small model, bit by bit",
              [["{run_cuda_test}", "{tests}"]], refuse=SKIPPED_TESTS, part=3, seconds=240),
        Stage("fused_bandwidth", "Fused kernels against the card's bandwidth; the target is 0.8",
              [["{fused_ops_cuda_test}", "[bandwidth]"]], refuse=SKIPPED_TESTS, quote=re.compile("^bandwidth: "),
              part=3, seconds=60, dry=False),
        Stage("sanitizer", "compute-sanitizer on our kernels", [
            ["compute-sanitizer", "--error-exitcode", "9", "--tool", "memcheck", "{fused_ops_cuda_test}"],
            ["compute-sanitizer", "--tool", "racecheck", "{fused_ops_cuda_test}"]],
              needs=["compute-sanitizer"], refuse=RACES, quote=SUMMARY, part=3, seconds=240, dry=False),
    ]
    return stages


def report_file(folder, stage):
    """Where the stage's own `rematch run` writes."""
    return Path(folder) / f"{stage.name}.report.json"


def written_report(folder, stage):
    path = report_file(folder, stage)
    return json.loads(path.read_text()) if path.exists() else None
