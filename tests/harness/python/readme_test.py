"""Runs the programs of harness/python/README.md unchanged."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

README = pathlib.Path(__file__).resolve().parents[3] / "harness" / "python" / "README.md"


def programs():
    """Returns the programs that are complete: they begin with their imports."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    return [block for block in blocks if block.startswith("import rematch")]


class ReadmeTest(unittest.TestCase):
    def need(self, *packages):
        for package in packages:
            if importlib.util.find_spec(package) is None:
                self.skipTest(f"{package} is not installed")

    def done_after(self, program):
        """Runs the program to its end. The program must have written the pages that it renders."""
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
        self.need(package)
        (program,) = [each for each in programs() if f"from {package} import" in each]
        done = self.done_after(program)
        self.assertRegex(done.stdout, r"\| without a plan \| \d+/0/\d+ \| .* \| reference \|")
        self.assertRegex(done.stdout, r"\| with the plan \| \d+/[1-9]\d*/\d+ \| .* \| equal \|")
        self.assertIn("ran it once: bits equal", done.stderr)
        return done.stdout

    def test_a_llama_of_transformers(self):
        self.assertRegex(self.run_program("transformers"), r"loss \d")

    def test_a_trainer_with_padded_batches_and_evaluation(self):
        self.need("transformers", "accelerate")
        (program,) = [each for each in programs() if "transformers.Trainer" in each]
        done = self.done_after(program)
        for step in (1, 2):
            self.assertIn(f"step {step} of 2: ran it once: bits equal", done.stderr)
        self.assertNotIn("left its plan", done.stderr)
        self.assertEqual(len(re.findall("'eval_loss'", done.stdout + done.stderr)), 2)
        rows = re.findall(r"^\| (\d) \| \d+ \| (\d+) \| (\d+) \|", done.stdout, re.MULTILINE)
        self.assertEqual({shape for shape, _, _ in rows}, {"0", "1"})
        self.assertEqual({left for _, _, left in rows}, {"0"})

    def test_a_wan_of_diffusers(self):
        self.run_program("diffusers")


if __name__ == "__main__":
    unittest.main()
