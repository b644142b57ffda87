"""Reads the commands of a README, and the output that the README shows for them.

A block marked `sh` has commands. A block without a mark that begins with "$ " has one command and its output. Any other
block without a mark is the output of the last command or program above it in the same section. If there is none, the
block is a picture."""

import dataclasses
import re
import subprocess

_FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
LANGUAGES = ("sh", "python", "cpp", "json", "")


@dataclasses.dataclass
class Command:
    line: int
    text: str  # the text that a reader copies, including comments
    shown: str | None = None  # the output in the README
    columns: int | None = None  # the width of the terminal that the output needs

    @property
    def exit_codes(self):
        """`# exit 3: why` requires exit code 3. `# exit 3 if ...` allows 0, 3 and 4 (inconclusive)."""
        promise = re.search(r"# exit (?P<code>\d)(?P<condition> if\b)?", self.text)
        if promise is None:
            return {0}
        code = int(promise["code"])
        return {0, code, 4} if promise["condition"] else {code}


@dataclasses.dataclass
class Block:
    line: int
    language: str
    body: str


def blocks(text):
    return [Block(text.count("\n", 0, match.start()) + 1, match["language"], match["body"]) for match in _FENCE.finditer(text)]


def section_of(text, line):
    """Returns the number of the line with the heading above the given line."""
    prose = _FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)  # a comment in a program is not a heading
    return max((number for number, each in enumerate(prose.splitlines(), 1) if each.startswith("#") and number < line), default=0)


def commands(text):
    """Returns the commands of a README in order, and its pictures. A picture is a block without a mark that is not the
    output of a command or program in the same section."""
    found, other, program = [], [], None
    for block in blocks(text):
        section = section_of(text, block.line)
        if block.language == "sh":
            found += _split(block)
        elif block.language:
            program = block
        elif block.body.startswith("$ "):
            typed, shown = _split_output(block.body)
            found.append(Command(block.line, typed, shown, max(map(len, shown.splitlines()), default=0)))
        elif found and found[-1].line > section and found[-1].shown is None:
            found[-1].shown = block.body
        elif program is None or program.line <= section:
            other.append(block)
    return found, other


def _split_output(body):
    lines = body.splitlines(keepends=True)
    end = 1
    while lines[end - 1].endswith("\\\n"):
        end += 1
    return "".join(lines[:end])[2:].rstrip("\n"), "".join(lines[end:])


def _split(block):
    """A command ends where bash has a whole command. A line that is only a comment belongs to the command above it."""
    found, pending = [], []
    for number, line in enumerate(block.body.splitlines(), block.line + 1):
        if not pending and line.lstrip().startswith("#") and found:
            found[-1].text += "\n" + line
            continue
        pending.append(line)
        text = "\n".join(pending)
        if not line.endswith("\\") and subprocess.run(["bash", "-n", "-c", text], capture_output=True).returncode == 0:
            found.append(Command(number - len(pending) + 1, text))
            pending = []
    if pending:
        raise ValueError(f"line {block.line}: not a whole command: {pending[0]}")
    return found
