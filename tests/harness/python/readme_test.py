"""Runs the programs of harness/python/README.md unchanged, and its shell commands in a Python without the library. The
output must equal the README, except figures that depend on measured times."""

import importlib.metadata
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import rematch

ROOT = pathlib.Path(__file__).resolve().parents[3]
README = (ROOT / "harness" / "python" / "README.md").read_text(encoding="utf-8")
BINARY = os.environ.get("REMATCH_BINARY", str(ROOT / "build" / "dev" / "harness" / "cli" / "lite" / "rematch"))
sys.path[:0] = [str(ROOT / "tests" / "scripts")]

import readme_blocks  # noqa: E402
import readme_shell  # noqa: E402


def programs():
    """Returns the README's programs as (program, output shown in the README or None). A program begins with imports."""
    found, blocks = [], readme_blocks.blocks(README)
    for block, after in zip(blocks, blocks[1:]):
        if block.language == "python" and block.body.startswith("import rematch"):
            found.append((block.body, after.body if after.language == "" else None))
    return found


def without_figures(text):
    return re.sub(r"\d+(\.\d+)?", "N", " ".join(text.split()))


class ReadmeTest(unittest.TestCase):
    def need(self, *packages):
        for package in packages:
            if importlib.util.find_spec(package) is None:
                self.skipTest(f"{package} is not installed")

    def has_versions_of_the_readme(self, *packages):
        """Returns whether the installed packages have the versions in scripts/python.txt. With other versions, models
        may run different ops."""
        pins = dict(re.findall(r"^(\w+)==(\S+)$", (ROOT / "scripts" / "python.txt").read_text(encoding="utf-8"), re.MULTILINE))
        return all(importlib.metadata.version(package).split("+")[0] == pins[package] for package in ("torch", *packages))

    def done_after(self, program):
        """Runs the program, and checks that it writes its HTML pages."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, os.environ.get(
            "PYTHONPATH", "").split(os.pathsep))))}
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True,
                                  text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            for page in re.findall(r'rematch.render\(checkpoint.front, "(.*)"\)', program):
                self.assertTrue((pathlib.Path(folder) / page).exists())
        return done

    def run_program(self, package):
        """In the table, only the row `with the plan` depends on measured times. Everything else must equal the
        README."""
        self.need(package)
        ((program, shown),) = [each for each in programs() if f"from {package} import" in each[0]]
        done = self.done_after(program)
        without = re.search(r"^\| without a plan \| (\d+)/0/(\d+) \| .* \| reference \|$", done.stdout, re.MULTILINE)
        planned = re.search(r"^\| with the plan \| (\d+)/[1-9]\d*/(\d+) \| .* \| equal \|$", done.stdout, re.MULTILINE)
        self.assertTrue(without and planned, done.stdout)
        self.assertEqual(without.groups(), planned.groups())
        self.assertIn("ran the plan once: bits equal", done.stderr)
        *before, last = shown.splitlines()
        if self.has_versions_of_the_readme(package):
            self.assertIn("\n".join([*before, ""]), done.stdout)
        self.assertEqual(without_figures(planned[0]), without_figures(last))
        return done.stdout

    def test_a_llama_of_transformers(self):
        self.assertRegex(self.run_program("transformers"), r"loss \d")

    def test_a_trainer_with_padded_batches_and_evaluation(self):
        self.need("transformers", "accelerate")
        ((program, shown),) = [each for each in programs() if "transformers.Trainer" in each[0]]
        done = self.done_after(program)
        for step in (1, 2):
            self.assertIn(f"step {step} of 2: ran the plan once: bits equal", done.stderr)
        self.assertNotIn("left its plan", done.stderr)
        self.assertEqual(len(re.findall("'eval_loss'", done.stdout + done.stderr)), 2)
        row = re.compile(r"^\| (\d) \| \d+ \| (\d+) \| (\d+) \|", re.MULTILINE)
        self.assertEqual({left for _, _, left in row.findall(done.stdout)}, {"0"})
        # The plan depends on measured times, so the number of regions for each shape may differ from the README. The
        # number of batches of each shape must not differ.
        self.assertIn(shown[:shown.index("\n| 0 ")], done.stdout)
        steps = dict(re.findall(r"shape (\d) ran in (\d+) of the 16 batches", " ".join(README.split())))
        self.assertEqual(sum(map(int, steps.values())), 16)
        for table in (done.stdout, shown):
            rows = row.findall(table)
            self.assertEqual({shape for shape, _, _ in rows}, set(steps))
            for shape, passes, _ in rows:
                self.assertIn(int(passes), [layers * int(steps[shape]) for layers in (1, 2, 3, 4)])

    def test_a_wan_of_diffusers(self):
        self.run_program("diffusers")

    def test_a_compiled_llama(self):
        self.need("transformers")
        ((program, _),) = [each for each in programs() if "rematch.compile(" in each[0]]
        budget = float(re.search(r'budget="([\d.]+)MiB"', program)[1])
        said = re.search(r"compiled plan for ([\d.]+) MiB: .*; predicted peak ([\d.]+) MiB instead of ([\d.]+) MiB",
                         self.done_after(program).stderr)
        self.assertEqual(float(said[1]), budget)
        self.assertLessEqual(float(said[2]), budget)
        self.assertGreater(float(said[3]), budget)

    def test_functions_that_the_readme_names_exist(self):
        names = set(re.findall(r"\brematch\.([a-z_]\w*)\(", README))
        self.assertGreaterEqual(names, {"apply", "auto", "compile", "opaque", "opaque_module", "keep_op"})
        for name in names:
            self.assertTrue(callable(getattr(rematch, name, None)), name)
        for block in readme_blocks.blocks(README):
            if block.language == "python":
                compile(block.body, f"README.md:{block.line}", "exec")


class WithoutTheLibraryTest(unittest.TestCase):
    def test_the_commands_print_the_table_of_the_readme(self):
        section = README[README.index("## Without the library"):]
        (model,) = [block.body for block in readme_blocks.blocks(section) if block.language == "python"]
        commands, _ = readme_blocks.commands(section)
        self.assertEqual(len(commands), 4)
        shell = readme_shell.Shell(ROOT, BINARY)
        self.addCleanup(shell.close)
        (shell.folder / "model.py").write_text(model, encoding="utf-8")
        shell.add("python", sys.executable)
        for command in commands:
            with self.subTest(command=command.text):
                done = shell.type(command)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(without_figures(done.stdout), without_figures(commands[-1].shown))
        self.assertRegex(done.stdout, r"\nrecomputed ops  0 +([1-9]\d*) +\1\n")


if __name__ == "__main__":
    unittest.main()
