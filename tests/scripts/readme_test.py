"""Tests that the README in the root begins with a question, a table and five lines of code, and has under 200 lines.
Runs every command of every README, and checks that it prints what the README shows. readme_commands.json lists the
commands that are not run here, with the reason and the file that runs them instead."""

import dataclasses
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
# Each entry: `begins` is the start of a command, `why` says why this test does not run it, and `see` names the file
# that does.
NOT_TYPED = json.loads((ROOT / "tests" / "scripts" / "readme_commands.json").read_text(encoding="utf-8"))
# Blocks of READMEs that are neither commands nor output.
PICTURES = {"policies/README.md": ["models -> harness/trace"]}
OMITTED = "..."  # in a README, matches any lines of output
# Compares measured times, so noise may change its verdict.
MEASURED = "scripts/rematch compare before.json after.json"


# In a README, the table below this command repeats figures from the command's output.
TABLE_BELOW = "scripts/rematch search --model llama3_8b --tokens 8192 --dtype bf16 --parallel fsdp=8"
# The columns of the README's first table that contain no measured times.
EXACT_COLUMNS = ("policy", "attention", "matmul", "peak", "vs none")


def readmes():
    """Returns {path in the tree: text} of every README. Excludes golden files and the evidence in reports/results."""
    names = subprocess.run(["git", "ls-files", "*README.md", "CONTRIBUTING.md"], cwd=ROOT, capture_output=True, text=True,
                           check=True).stdout.split()
    return {name: (ROOT / name).read_text(encoding="utf-8") for name in names}


def reason_not_to_type(command):
    """Returns the entry of NOT_TYPED whose `begins` is the start of the command, or None. A folder in `begins` matches
    every path in the folder."""
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

    def test_every_link_of_every_readme_leads_to_a_file_and_a_heading(self):
        links = [(name, *link) for name, text in readmes().items() for link in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", text)]
        self.assertGreater(len(links), 60)
        for name, target, anchor in links:
            with self.subTest(readme=name, link=f"{target}#{anchor}"):
                path = (ROOT / name).parent / target if target else ROOT / name
                self.assertTrue(path.exists())
                if anchor:
                    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
                    self.assertIn(anchor, [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings])


class PathsTest(unittest.TestCase):
    def test_every_file_that_a_readme_names_with_its_folder_exists(self):
        """A README may name a file from its own folder, from the root, or from a folder that the sentence is about."""
        tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
        ends = {"/".join(parts[at:]) for parts in (name.split("/") for name in tracked) for at in range(len(parts))}
        named = [(name, path) for name, text in readmes().items() for path in re.findall(r"`([\w./-]+/[\w-]+\.\w+)`", text)
                 if not re.search(r"\b(NAME|ID)\b|NAME_|^(rematch\.|/)|^(build|results)/", path)]
        self.assertGreater(len(named), 150)
        for name, path in named:
            with self.subTest(readme=name):
                self.assertTrue(path.removeprefix("./") in ends or (ROOT / name).parent.joinpath(path).exists(), path)


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


def listing(command):
    """For a command that runs tests, returns a command that only lists these tests. Returns None for other commands."""
    listed = re.sub(r"ctest (--preset dev|--test-dir build/dev)", "ctest -N --test-dir tests_of_dev", command.text)
    listed = re.sub(r"^build/dev/tests/\S+_test", r"\g<0> --list-tests", listed)
    return None if listed == command.text else dataclasses.replace(command, text=listed)


def is_shown(shown, printed):
    """Returns whether the README shows the output. A line `...` of the README matches any lines."""
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


def cells(line):
    return [re.sub(r"^`(.*)`$", r"\1", cell.strip()) for cell in line.strip("|").split("|")]


def compared(text):
    """Returns the rows of `rematch compare`, without the step time."""
    rows = re.findall(r"^(\S+) +(whole_region|on_demand) .*?((?: +same){5})$", text, re.MULTILINE)
    return [(policy, schedule, same.split()) for policy, schedule, same in rows]


def figures_below(text, line):
    """Returns the sizes and times in the first table below the given line."""
    below = "\n".join(text.splitlines()[line:])
    table = re.search(r"(?:^\|.*\n)+", below, re.MULTILINE)[0]
    return re.findall(r"(?<= )([\d.]+) (GiB|ms)(?= \|)", table)


def is_printed(figure, unit, printed):
    """Returns whether the output contains the figure, possibly with more digits."""
    digits = len(figure.partition(".")[2])
    return any(f"{float(each):.{digits}f}" == figure for each in re.findall(rf"(?<![\d.])(\d[\d.]*) {unit}\b", printed))


def promises(text):
    """Returns (line, output) for each sentence of the form "... prints `output`"."""
    found = []
    for match in re.finditer(r"prints\s+`([^`]+)`", text):
        found.append((text.count("\n", 0, match.start()) + 1, match[1]))
    return found


class TypedTest(unittest.TestCase):
    """Runs the commands of each README in order, in a separate folder for each README."""

    def new_shell(self):
        if os.environ.get("REMATCH_PRESET") not in ("dev", "cuda"):
            self.skipTest("only preset dev has all commands")
        shell = readme_shell.Shell(ROOT)
        self.addCleanup(shell.close)
        # ctest overwrites its logs, so it must not run in the build folder of the current test run.
        (shell.folder / "tests_of_dev").mkdir()
        (shell.folder / "tests_of_dev" / "CTestTestfile.cmake").write_text(f'subdirs("{ROOT / "build" / "dev"}")\n')
        return shell

    def type_commands_of(self, name):
        shell, text = self.new_shell(), readmes()[name]
        printed = []  # (line of the command, its output)
        for command in readme_blocks.commands(text)[0]:
            with self.subTest(line=f"{name}:{command.line}", command=command.text):
                entry = reason_not_to_type(command)
                if entry is not None:
                    printed.append((command.line, (ROOT / entry["see"]).read_text(encoding="utf-8")))
                    self.skipTest(f"{name}:{command.line}: {entry['why']}; see {entry['see']}: {command.text}")
                if "cuda-dry" in command.text and not (ROOT / "build" / "dev" / "dry_cuda").is_dir():
                    self.skipTest(f"{name}:{command.line}: scripts/setup dry has not run: {command.text}")
                if listing(command) is not None:
                    self.assertRegex(shell.type(listing(command)).stdout, r"Total Tests: [1-9]|\n[1-9]\d* matching test case")
                    continue
                done = shell.type(command)
                printed.append((command.line, done.stdout))
                if command.text.startswith(MEASURED):
                    self.assertIn(done.returncode, (0, 3, 4), done.stderr)
                    self.assertEqual(compared(done.stdout), compared(command.shown))
                    self.assertTrue(compared(done.stdout))
                    continue
                self.assertIn(done.returncode, command.exit_codes, done.stdout + done.stderr)
                if command.text.startswith(TABLE_BELOW):
                    figures = figures_below(text, command.line)
                    self.assertEqual(len(figures), 8)
                    for figure, unit in figures:
                        self.assertTrue(is_printed(figure, unit, done.stdout), f"{figure} {unit}")
                if command.shown is not None:
                    self.assertTrue(is_shown(command.shown, done.stdout), f"printed:\n{done.stdout}\nshown:\n{command.shown}")
        for line, output in promises(text):
            with self.subTest(line=f"{name}:{line}", prints=output):
                section = readme_blocks.section_of(text, line)
                self.assertTrue(any(output in all_printed for at, all_printed in printed if section < at < line))

    def test_the_table_at_the_top_is_what_its_command_prints(self):
        shell = self.new_shell()
        command = re.search(r"Reproduce with: `(scripts/rematch run [^`]+)`", TEXT)[1]
        short = re.sub("--steps 8 --rounds 3", "--steps 2 --rounds 0", " ".join(command.split()))
        self.assertIn("--rounds 0", short)
        done = shell.type(readme_blocks.Command(0, short + " -o report.json", columns=200))
        self.assertEqual(done.returncode, 0, done.stderr)
        markdown = shell.type(readme_blocks.Command(0, "scripts/rematch render report.json --markdown")).stdout
        printed, shown = ([cells(line) for line in text.splitlines() if line.startswith("|")] for text in (markdown, TEXT))
        columns = [printed[0].index(column) for column in EXACT_COLUMNS]
        rows = {row[columns[0]]: [row[column] for column in columns] for row in printed[2:]}
        heads = shown[0]
        self.assertEqual(len(rows), 5)
        for row in shown[2:2 + len(rows)]:
            with self.subTest(policy=row[0]):
                self.assertEqual([row[heads.index(column)] for column in EXACT_COLUMNS], rows[row[0]])
                self.assertIn(row[-1], ("reference", "equal"))

    def test_lines_may_be_omitted_only_where_the_readme_says_so(self):
        for shown, is_right in (("a\nb\nc\n", True), ("a\nb\n", False), ("b\nc\n", False), ("a\n...\nc\n", True), ("...\nc\n", True),
                                ("a\n...\n", True), ("...\nc\n...\nb\n", False), ("a\nc\n", False), ("...\nb\n...\n", True)):
            with self.subTest(shown=shown):
                self.assertEqual(is_shown(shown, "a\nb\nc\n"), is_right)


class FiguresTest(unittest.TestCase):
    """Checks sentences and tables of READMEs that repeat figures of an output. TypedTest checks the output itself."""

    def test_the_bullets_under_the_front_follow_from_its_rows(self):
        text = readmes()["policies/search/README.md"]
        (command,) = [each for each in readme_blocks.commands(text)[0] if each.shown]
        row = re.compile(r"^(\S+) +([\d.]+) GiB +backward loss +\S+ % +(\d+) ms +([-+][\d.]+) % +\S+ %? +(\d+)$", re.MULTILINE)
        rows = {name: (float(peak), int(step), slower, int(ops)) for name, peak, step, slower, ops in row.findall(command.shown)}
        peak, step, slower, ops = ({name: values[at] for name, values in rows.items()} for at in range(4))
        last, knee = max(name for name in rows if name.isdigit()), "5"
        said = " ".join(text[text.index(command.shown) + len(command.shown):text.index("\n## What a card has")].split())
        none = re.search(r"`none`, whose peak is ([\d.]+) GiB and whose step is (\d+) ms", said)
        for sentence in (
                f"needs {peak['full'] - peak['0']:.1f} GiB less than `full`",
                f"Point 1 has the peak of `full` and takes {step['full'] - step['1']} ms less",
                f"Point 2 has the peak of `attn_only` and takes {step['attn_only'] - step['2']} ms less",
                f"Point 3 takes {peak['3'] - peak['2']:.1f} GiB more than point 2 and {step['2'] - step['3']} ms less",
                f"Point 4 is {slower['4'].lstrip('+')} % slower than `none`, and `sac_titan` is {slower['sac_titan'].lstrip('+')} %",
                f"a GiB saves {(step['0'] - step[knee]) / (peak[knee] - peak['0']):.0f} ms",
                f"beyond it, {(step[knee] - step[last]) / (peak[last] - peak[knee]):.1f} ms"):
            self.assertIn(sentence, said)
        self.assertEqual((peak["1"], peak["2"], peak["4"]), (peak["full"], peak["attn_only"], peak["sac_titan"]))
        # the README says: "a third fewer ops are repeated"
        self.assertAlmostEqual(ops["3"] / ops["2"], 2 / 3, delta=0.05)
        for baseline in ("save_mm", "nth_first(2)", "first_n(16)"):
            self.assertTrue(peak[knee] <= peak[baseline] and step[knee] < step[baseline])
        self.assertAlmostEqual(step["6"] / int(none[2]), 1 + float(slower["6"]) / 100, delta=0.001)
        self.assertAlmostEqual(step[last] / int(none[2]), 1 + float(slower[last]) / 100, delta=0.001)
        self.assertEqual(ops[last], 0)


def _add_a_test_for_each_readme():
    for name in readmes():
        def test(self, name=name):
            self.type_commands_of(name)
        setattr(TypedTest, "test_" + re.sub(r"\W", "_", name), test)


_add_a_test_for_each_readme()

if __name__ == "__main__":
    unittest.main()
