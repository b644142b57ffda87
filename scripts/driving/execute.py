"""Makes the files of a case, starts the case's run, and checks the run's results."""

import dataclasses
import json
import shutil

from driving import verdict
from driving.afterwards import COMMANDS
from driving.case import FrontPoint, placed, shell_line, words_of

# Policies that apply to every model if --allow-no-effect is given.
NEVER_REFUSED = ("none", "full", "full_reentrant", "full_nostop", "root", "attn_only", "save_mm",
                 "save_compute")


@dataclasses.dataclass
class Outcome:
    failures: list = dataclasses.field(default_factory=list)
    lines: list = dataclasses.field(default_factory=list)  # commands with which a user can reproduce the failure
    refused: list = dataclasses.field(default_factory=list)  # messages about rejected policies and plans
    points: int = 0
    proofs: int = 0  # number of points in which every parameter got a nonzero gradient
    pairs: int = 0  # number of plans that ran under both schedules

    def kinds(self):
        """Returns the kinds of failure. Drops "exit code" if there is another failure, which explains the exit code."""
        found = {failure.split(":")[0] for failure in self.failures}
        return found - {"exit code"} or found


def read(file):
    return json.loads(file.read_text(encoding="utf-8"))


class Execution:
    """Runs one case in one folder. Policies and plans that the model rejects are left out."""

    def __init__(self, tool, case, folder):
        self.tool, self.case, self.folder = tool, case, folder
        self.outcome = Outcome()
        self.report_file = folder / "report.json"
        self.plan_words = []
        self.plan_policies = []
        self.policies = []
        self.policy_words = []
        self.front_figures = {}

    def execute(self):
        try:
            self.play()
        except (KeyError, TypeError, ValueError, OSError) as error:
            self.fail(f"unreadable: {type(error).__name__}: {error}")
        return self.outcome

    def play(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.case.write_files(self.folder)
        for index, plan in enumerate(self.case.plans):
            if isinstance(plan, FrontPoint):
                self.make_front(index, plan)
            else:
                self.make_plan(index, plan)
        policies = list(self.case.policies)
        while policies or self.plan_words:
            done = self.run(policies)
            if done.code != 2 and not self.has_refused_point(done):
                self.judge_run(done, policies)
                break
            if done.code == 2:
                self.outcome.failures += verdict.judge_refusal(done)
            left = self.without_refused(policies, done)
            if left == policies:
                self.fail(f"refusal: the message names no policy: {done.err.strip()}")
            if self.outcome.failures:
                break
            policies = left

    def has_refused_point(self, done):
        """Returns whether the run rejected a policy and continued with the others."""
        if done.code != 5 or not self.report_file.exists():
            return False
        return any(point["status"] == "refused" for point in self.read_report()["points"])

    def fail(self, failure):
        self.outcome.failures.append(failure)

    def start(self, *words):
        self.outcome.lines.append(shell_line(words))
        return self.tool.start(*words)

    def model_words(self):
        return words_of(self.case.model, self.folder)

    def flag_words(self, flags):
        return words_of(flags, self.folder)

    def read_report(self):
        return read(self.report_file)

    def run(self, policies):
        self.policies = [placed(policy, self.folder) for policy in policies]
        self.policy_words = ["--policy", ",".join(self.policies)] if policies else []
        for plan in self.plan_words:
            self.policy_words += ["--plan", plan]
        model = [] if self.case.model_from_plan and not policies else self.model_words()
        return self.start("run", *model, *self.flag_words(self.case.flags),
                          *self.policy_words, "-o", self.report_file)

    def judge_run(self, done, policies):
        self.outcome.failures += verdict.judge_ending(done)
        if not self.report_file.exists():
            if not self.outcome.failures:
                self.fail("exit code: 0, but the report is missing")
            return
        report = self.read_report()
        case = self.case.copy()
        case.policies = policies
        found = verdict.judge_report(report, case, self.plan_policies, self.front_figures)
        self.outcome.failures += found
        points = report["points"]
        self.outcome.points = len(points)
        self.outcome.proofs = sum(bool((point["parity"] or {}).get("every_parameter_has_gradient"))
                                  for point in points)
        self.outcome.pairs = len(points) - len({p["identity"]["plan_sha256"] for p in points})
        if self.case.afterwards and not self.outcome.failures:
            self.outcome.failures += COMMANDS[self.case.afterwards](self, report, done.words)

    def make_plan(self, index, plan):
        file = self.folder / f"plan{index}.json"
        done = self.start("plan", *self.model_words(), *self.no_effect(), "--policy",
                          placed(plan.policy, self.folder), "-o", file)
        if done.code == 2:
            self.refuse(plan.policy, done)
            self.outcome.lines.pop()
            return
        found = verdict.judge_ending(done)
        self.outcome.failures += found
        if not found:
            self.add_plan(str(file), read(file)["policy"])

    def add_plan(self, word, policy):
        self.plan_words.append(word)
        self.plan_policies.append(policy)

    def make_front(self, index, plan):
        file = self.folder / f"front{index}.json"
        done = self.start("search", *self.model_words(), *words_of(plan.flags, ""), "-o", file)
        # Exit code 3 means that no plan fits the budget or the slowdown. Even then, the command writes the front.
        has_question = "--budget" in dict(plan.flags) or "--max-slowdown" in dict(plan.flags)
        found = verdict.judge_ending(done, 0, *((3,) if has_question else ()))
        self.outcome.failures += found
        if found:
            return
        points = read(file)["points"]
        chosen = min(int(plan.share * len(points)), len(points) - 1)
        self.add_plan(f"{file}#{chosen}", points[chosen]["policy"])
        flags = dict(plan.flags)
        is_adamw = self.case.flags.get("--optimizer", "adamw").startswith("adamw")
        if is_adamw == (flags["--optimizer"] == "adamw"):
            point = points[chosen]
            self.front_figures[point["plan_sha256"], flags["--schedule"]] = point

    def no_effect(self):
        return ["--allow-no-effect"] if self.case.allows_no_effect() else []

    def refuse(self, policy, done):
        self.outcome.failures += verdict.judge_refusal(done)
        self.outcome.refused.append(done.err.strip().splitlines()[-1])
        if self.case.allows_no_effect() and policy in NEVER_REFUSED:
            self.fail(f"refusal: of {policy}: {done.err.strip()}")

    def without_refused(self, policies, done):
        """Returns the policies that the tool accepts if each is given alone. If a policy is listed twice, drops the
        later entry."""
        if "is listed twice" in done.err:
            return policies[:-1]
        left = []
        for policy in policies:
            alone = self.tool.start("predict", *self.model_words(), *self.no_effect(), "--policy",
                                    placed(policy, self.folder))
            if alone.code == 2:
                self.refuse(policy, alone)
            else:
                self.outcome.failures += verdict.judge_ending(alone)
                left.append(policy)
        return left
