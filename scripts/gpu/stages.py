"""The stages of scripts/verify_gpu: what each runs, and what must be true of what it leaves behind.
A stage is data and pure functions, so all of it but the GPU is tested without one."""

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

MIB = 1 << 20

# What the prediction may be off by where kernels' own temporaries are not in it.
PEAK_RATIO = 0.001
PEAK_BYTES = 2 * MIB

# What ctest says of tests that did not run: with a device here, none has a reason to.
SKIPPED_TESTS = re.compile(r"\(Skipped\)|No tests were found")

SMALL_MODELS = ["llama_small", "wan_small", "moe_small", "ltx_small", "deepseek_small"]
# A policy that takes arguments is run with these.
EXAMPLES = {
    "nth_last": "nth_last(2)", "nth_first": "nth_first(2)", "skip_nth": "skip_nth(2)",
    "first_n": "first_n(1)", "last_n": "last_n(1)", "skip_list": "skip_list([0])",
    "only_list": "only_list([0])", "segments": "segments(2)",
    "sac_titan_2025": "sac_titan_2025(llama3)", "sac_modalities": "sac_modalities([aten.mm.default])",
    "sac_split": "sac_split(attn: full, ffn: save_mm)",
    "sac_titan_excluding": "sac_titan_excluding([attention.output])",
    "recompute_modules": "recompute_modules([core_attn])", "full_except": "full_except([*::matmul])",
}
BENCH_POLICIES = "none,full,nth_first(2),skip_nth(2),attn_only,save_mm,save_compute"
# Dispatch-bound on any GPU: what the engine costs shows, and the kernels do not.
TINY = "--model llama_small --layers 8 --dim 16 --heads 1 --kv-heads 1 --ffn 32 --tokens 4 --batch 1"
# 30 layers of two attention ops; 10 steps: 600 in forward.
COUNTED = ("--model wan_1_3b --layers 30 --dim 64 --heads 4 --ffn 128 --tokens 64 --batch 1 "
           "--policy none,full,attn_only --schedule whole_region --steps 10 --rounds 0")


@dataclass
class Stage:
    name: str
    what: str
    commands: list  # of lists of words; {report} stands for the stage's own report
    judge: object = None  # report -> (findings, problems); None: the exit codes say it all
    ok_codes: tuple = (0,)
    needs: list = field(default_factory=list)  # programs
    gpu: bool = True
    model: str = ""  # the flags of the model, where a command says {policies}
    refuse: object = None  # a pattern; a line of a command's output that has it fails the stage


def rematch(binary, words):
    return [str(binary), "run", *shlex.split(words), "--device", "cuda", "-o", "{report}"]


def candidates(listed):
    """What `rematch list --json` names, each as it can be typed."""
    return [EXAMPLES.get(policy["name"], policy["name"]) for policy in listed["policies"]]


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


def wrong_peak(point):
    memory = point["memory"] or {}
    measured, predicted = (memory.get(key) for key in ("peak_allocated_bytes",
                                                       "predicted_peak_allocated_bytes"))
    if measured is None or predicted is None:
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
            wrong = [check(point) for check in (wrong_bits, wrong_counts, wrong_peak)]
        elif point["status"] not in results:
            wrong = [f"{point['status']}: {point['reason']}"]
        elif point["parity"]:
            wrong = [wrong_bits(point)]
        problems += [f"{name}: {text}" for text in wrong if text]
    return problems if report["points"] else ["the report has no points"]


def judge_bits(report):
    """Every policy gives the bits of its reference, or a reason that is not about bits."""
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
        findings.append(f"{name}: {ran} attention forward kernels, {kernels['unknown_time_ratio']:.2%} "
                        f"of kernel time unknown, counting slowed the step by "
                        f"{kernels['slowdown_ratio'] - 1:.1%}")
        if kernels["invalid"]:
            problems.append(f"{name}: {kernels['invalid']}")
        if ran != expected[point["policy"]]:
            problems.append(f"{name}: {expected[point['policy']]} were expected")
    return findings, problems


def judge_peaks(report):
    findings = []
    for name, point in points(report):
        memory = point["memory"] or {}
        measured = memory.get("peak_allocated_bytes")
        predicted = memory.get("predicted_peak_allocated_bytes")
        if measured and predicted is not None:
            findings.append(f"{name}: peak {measured} B, predicted {predicted} B, "
                            f"{(measured - predicted) / measured:+.3%}")
    return findings, point_problems(report)


def judge_overhead(report):
    """The ratio is a figure, not a verdict: its target holds on a CPU."""
    findings, problems = [], point_problems(report)
    for name, point in points(report):
        ratio = (point["time"] or {}).get("step_ratio")
        if ratio and point["policy"] != "none":
            low, high = ratio["interval"] or (None, None)
            findings.append(f"{name}: {ratio['ratio']:.3f} of none's step [{low}, {high}]")
    return findings, problems + ([] if findings else ["no ratio was measured"])


def judge_front(report):
    """Out of memory is a result here; crashes, wrong counts, other bits and other peaks are not."""
    findings, problems = [], point_problems(report, results=("ok", "oom"))
    for name, point in points(report):
        memory, time = point["memory"] or {}, point["time"] or {}
        findings.append(f"{name}: {point['status']}, peak {memory.get('peak_allocated_bytes')} B, "
                        f"predicted {memory.get('predicted_peak_allocated_bytes')} B, "
                        f"step {time.get('step_median_ns')} ns")
    if not any(point["status"] == "ok" for _, point in points(report)):
        problems.append("no policy fits")
    return findings, problems


def judge_profile(profile):
    """Every op that does something has a time, and what its kernels allocate inside."""
    findings, problems = [], []
    for name in ("forward", "backward"):
        types = profile[name]["types"]
        times = sum(sum(types[index]["times_ns"]) for index in profile[name]["segments"])
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


def build_commands(build, root, libtorch_root, carried, jobs):
    flags = [f"-DLIBTORCH_ROOT={libtorch_root}"]
    if carried:
        flags += [f"-DCMAKE_PREFIX_PATH={carried}/usr", f"-DOPENSSL_ROOT_DIR={carried}/usr",
                  f"-DVALIJSON_INCLUDE_DIR={carried}/valijson/include"]
    targets = ["rematch_cli", "engine_cuda_test", "run_cuda_test", "attention_cuda_test", "fused_ops_cuda_test",
               "cupti_test"]
    return [["cmake", "--preset", "cuda", "-B", str(build), "-S", str(root), *flags],
            ["ninja", "-C", str(build), f"-j{jobs}", *targets]]


def all_stages(binary, build, setup):
    tests = ["ctest", "--test-dir", str(build), "--output-on-failure", "--timeout", "300"]
    sanitizer = ["compute-sanitizer", "--error-exitcode", "9", "--tool"]
    kernel_test = str(build / "tests/kernels/fused_ops_cuda_test")

    stages = [
        Stage("machine", "GPU, driver, compiler and LibTorch", [
            ["nvidia-smi", "-q", "-d", "CLOCK,MEMORY,POWER,PERFORMANCE,ECC"],
            ["nvcc", "--version"]], needs=["nvidia-smi", "nvcc"]),
        Stage("build", "Preset cuda: the command and the GPU tests; goes on where it was stopped",
              setup, needs=["cmake", "ninja", "nvcc"], gpu=False),
        Stage("gpu_tests", "Tests with the label gpu, and CUPTI's", [
            [*tests, "-L", "gpu"], [*tests, "-L", "device"], [*tests, "-R", "^cupti_test/"],
            [str(binary), "doctor"]], needs=["ctest"], refuse=SKIPPED_TESTS),
        Stage("sanitizer", "compute-sanitizer on our kernels", [
            [*sanitizer, "memcheck", kernel_test], [*sanitizer, "racecheck", kernel_test]],
              needs=["compute-sanitizer"]),
    ]
    for model in SMALL_MODELS:
        for ops in ("eager", "fused"):
            words = f"--model {model} --ops {ops}"
            stages.append(Stage(
                f"bits_{model}_{ops}", f"{model}, {ops} ops: every policy has the bits of none",
                [rematch(binary, f"{words} --policy {{policies}} --schedule both --steps 2 --rounds 0 "
                                 "--allow-no-effect")],
                judge_bits, (0, 3, 5), model=words))
    stages += [
        Stage("kernel_counts", "CUPTI: 600 attention forward kernels, 1200 with full",
              [rematch(binary, COUNTED)], judge_counts, (0, 3, 5)),
        Stage("peaks", "Predicted against measured peak", [
            rematch(binary, f"--model llama_small --policy '{BENCH_POLICIES}' --schedule both --steps 2 "
                            "--rounds 0")], judge_peaks, (0, 3, 5)),
        *[Stage(f"profile_{model}", f"{model}: kernel times and temporaries of every op", [
            [str(binary), "profile", "--model", model, "--device", "cuda", "--steps", "10", "-o",
             "{report}"]], judge_profile) for model in ("llama_small", "wan_small", "moe_small")],
        Stage("engine_overhead", "Dispatch-bound step over the same step without a policy", [
            rematch(binary, f"{TINY} --policy none,full,attn_only,save_mm --schedule both --steps 50 "
                            "--rounds 4:6")], judge_overhead, (0, 3, 5)),
    ]
    for name, words in (
            ("wan_1_3b", "--model wan_1_3b --tokens 31200 --batch 1 --dtype bfloat16"),
            ("llama3_1b", "--model llama3_1b --tokens 2048 --batch 4 --dtype bfloat16")):
        shards = 4
        for shard in range(shards):
            stages.append(Stage(
                f"{name}_{shard}", f"{name}: all policies, times and peaks, share {shard} of {shards}",
                [rematch(binary, f"{words} --policy {{policies}} --steps 3 --rounds 2 "
                                 "--timeout {timeout} --retries 0 --allow-no-effect "
                                 f"--shard {shard}/{shards}")],
                judge_front, (0, 3, 5), model=words))
    return stages


def report_file(folder, stage):
    """Where the stage's own `rematch run` writes; shards carry their number in the name."""
    return Path(folder) / f"{stage.name}.report.json"


def written_report(folder, stage):
    path = report_file(folder, stage)
    shards = sorted(path.parent.glob(f"{path.stem}.shard-*.json"))
    path = shards[0] if shards else path
    return json.loads(path.read_text()) if path.exists() else None
