"""The top README answers a visitor at once: the question, the table, the five lines of code, all in under 200 lines.
Every command of every README is typed, and must print what the README shows. readme_commands.json lists the commands that
are not typed here, why not, and what runs them instead."""

import itertools
import json
import os
import pathlib
import re
import subprocess
import unittest

import readme_blocks
import readme_shell

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
MAX_LINES = 199
# `begins` is how a command begins, `why` is why this test does not type it, and `see` is the file that runs it.
NOT_TYPED = json.loads((ROOT / "tests" / "scripts" / "readme_commands.json").read_text(encoding="utf-8"))
# Blocks that show no output.
PICTURES = {"policies/README.md": ["models -> harness/trace"]}
OMITTED = "..."  # a line of a README that stands for any lines of the output


def readmes():
    """Returns {path in the tree: text} of every README. Golden files and evidence in reports/results are no READMEs."""
    names = subprocess.run(["git", "ls-files", "*README.md", "CONTRIBUTING.md"], cwd=ROOT, capture_output=True, text=True,
                           check=True).stdout.split()
    return {name: (ROOT / name).read_text(encoding="utf-8") for name in names}


def reason_not_to_type(command):
    """Returns the entry whose `begins` are the first words of the command. A folder begins every path in it."""
    for entry in NOT_TYPED:
        after = (command.text + "\n").removeprefix(entry["begins"])
        if after != command.text + "\n" and (entry["begins"][-1] in "/\n" or after[0].isspace()):
            return entry
    return None


class ReadmeTest(unittest.TestCase):
    def test_it_begins_with_the_question_the_table_and_five_lines_of_code(self):
        intro = TEXT[:TEXT.index("\n## ")]
        self.assertRegex(intro, r"\A# rematch\n\nWhich .+\?\n")
        rows = re.findall(r"^\| `.+$", intro, re.MULTILINE)
        self.assertGreaterEqual(len(rows), 4)
        (code,) = re.findall(r"```python\n(.*?)```", intro, re.DOTALL)
        self.assertEqual(len(code.splitlines()), 5)
        self.assertLess(intro.index("?"), intro.index(rows[0]))
        self.assertLess(intro.index(rows[-1]), intro.index(code))

    def test_it_is_short(self):
        self.assertLessEqual(len(TEXT.splitlines()), MAX_LINES)

    def test_it_says_in_five_lines_what_rematch_is_not(self):
        section = re.search(r"^## What this is not\n\n(.+?)\n\n", TEXT, re.MULTILINE | re.DOTALL)[1]
        lines = section.splitlines()
        self.assertEqual(len(lines), 5)
        for line in lines:
            self.assertRegex(line, r"^- A .+: .*[uU]se ")

    def test_every_linked_file_exists(self):
        links = re.findall(r"\]\(([^)#]+)[^)]*\)", TEXT)
        self.assertGreater(len(links), 15)
        for link in links:
            self.assertTrue((ROOT / link).exists(), link)


class BlocksTest(unittest.TestCase):
    def test_every_block_is_commands_output_or_a_known_picture(self):
        for name, text in readmes().items():
            with self.subTest(readme=name):
                self.assertLessEqual({block.language for block in readme_blocks.blocks(text)}, set(readme_blocks.LANGUAGES))
                _, pictures = readme_blocks.commands(text)
                known = PICTURES.get(name, [])
                self.assertEqual(len(pictures), len(known), [block.line for block in pictures])
                for block, begins in zip(pictures, known):
                    self.assertTrue(block.body.startswith(begins))

    def test_what_is_not_typed_names_a_file_that_runs_it(self):
        commands = [command for text in readmes().values() for command in readme_blocks.commands(text)[0]]
        self.assertGreater(len(commands), 100)
        used = [reason_not_to_type(command) for command in commands]
        for entry in NOT_TYPED:
            with self.subTest(begins=entry["begins"]):
                self.assertTrue(entry in used, "no README has this command")
                self.assertTrue((ROOT / entry["see"]).is_file())

    def test_scripts_and_presets_that_commands_name_exist(self):
        presets = json.loads((ROOT / "CMakePresets.json").read_text(encoding="utf-8"))["configurePresets"]
        names = {preset["name"] for preset in presets}
        for name, text in readmes().items():
            for command in readme_blocks.commands(text)[0]:
                with self.subTest(readme=name, line=command.line):
                    for script in re.findall(r"(?<!\S)scripts/[\w./]+", command.text):
                        self.assertTrue((ROOT / script).is_file(), script)
                    for preset in re.findall(r"--preset (\S+)", command.text):
                        self.assertIn(preset, names)

    def test_blocks_are_read_as_a_reader_reads_them(self):
        text = ("# One\n\n```sh\nmake it   # exit 3: it is broken\n        # a second line of the comment\n"
                "for i in 1; do\n  echo $i\ndone\n```\n\nIt prints:\n\n```\n1\n```\n\n"
                "## Two\n\n```\na -> b\n```\n\n```\n$ compare a \\\n    b  # exit 3 if it differs\nsame\n```\n")
        commands, pictures = readme_blocks.commands(text)
        self.assertEqual([command.text.splitlines()[0] for command in commands],
                         ["make it   # exit 3: it is broken", "for i in 1; do", "compare a \\"])
        self.assertEqual([command.exit_codes for command in commands], [{3}, {0}, {0, 3, 4}])
        self.assertEqual([command.shown for command in commands], [None, "1\n", "same\n"])
        self.assertEqual([command.line for command in commands], [4, 6, 23])
        self.assertEqual([block.body for block in pictures], ["a -> b\n"])
        with self.assertRaisesRegex(ValueError, "line 1: not a whole command: for"):
            readme_blocks.commands("```sh\nfor i in 1; do\n```\n")


def is_shown(shown, printed):
    """Returns whether the README shows the output. A line `...` of the README stands for any lines."""
    wanted, lines = shown.splitlines(), printed.splitlines()
    pieces = [list(piece) for is_gap, piece in itertools.groupby(wanted, key=lambda line: line == OMITTED) if not is_gap]
    at = 0
    for piece in pieces:
        starts = range(at, len(lines) - len(piece) + 1) if at or wanted[0] == OMITTED else [0]
        start = next((start for start in starts if lines[start:start + len(piece)] == piece), None)
        if start is None:
            return False
        at = start + len(piece)
    return at == len(lines) or wanted[-1] == OMITTED


class TypedTest(unittest.TestCase):
    """Types the commands of each README in order, in a folder of its own."""

    def type_commands_of(self, name):
        if os.environ.get("REMATCH_PRESET") not in ("dev", "cuda"):
            self.skipTest("only preset dev has all commands")
        shell = readme_shell.Shell(ROOT)
        self.addCleanup(shell.close)
        for command in readme_blocks.commands(readmes()[name])[0]:
            with self.subTest(line=f"{name}:{command.line}", command=command.text):
                entry = reason_not_to_type(command)
                if entry is not None:
                    self.skipTest(f"{name}:{command.line}: {entry['why']}; see {entry['see']}: {command.text}")
                if "cuda-dry" in command.text and not (ROOT / "build" / "dev" / "dry_cuda").is_dir():
                    self.skipTest(f"{name}:{command.line}: scripts/setup dry has not run: {command.text}")
                done = shell.type(command)
                self.assertIn(done.returncode, command.exit_codes, done.stdout + done.stderr)
                if command.shown is not None:
                    self.assertTrue(is_shown(command.shown, done.stdout), f"printed:\n{done.stdout}\nshown:\n{command.shown}")

    def test_lines_may_be_omitted_only_where_the_readme_says_so(self):
        for shown, is_right in (("a\nb\nc\n", True), ("a\nb\n", False), ("b\nc\n", False), ("a\n...\nc\n", True), ("...\nc\n", True),
                                ("a\n...\n", True), ("...\nc\n...\nb\n", False), ("a\nc\n", False), ("...\nb\n...\n", True)):
            with self.subTest(shown=shown):
                self.assertEqual(is_shown(shown, "a\nb\nc\n"), is_right)


def _add_a_test_for_each_readme():
    for name in readmes():
        def test(self, name=name):
            self.type_commands_of(name)
        setattr(TypedTest, "test_" + re.sub(r"\W", "_", name), test)


_add_a_test_for_each_readme()

if __name__ == "__main__":
    unittest.main()
