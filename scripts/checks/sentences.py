"""Finds the text that people read in the sources: comments, printed strings, and sentences of READMEs."""

import ast
import dataclasses
import io
import re
import tokenize

CPP = (".h", ".cpp", ".cu", ".cuh")
HASH = (".sh", ".cmake", "CMakeLists.txt")
# Shorter strings and comments are not sentences, so they are skipped.
MIN_WORDS_OF_STRING, MIN_WORDS_OF_COMMENT = 4, 2

_CPP_TOKEN = re.compile(r'''//[^\n]*|/\*.*?\*/|R"([^()\\ ]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+\'''', re.DOTALL)
_CODE_IN_COMMENT = re.compile(r"^(clang-format|namespace|NOLINT|IWYU|noqa|type:|pragma|shellcheck|!)")
# Shell scripts may contain a C++ program between these lines.
_PREPROCESSOR = re.compile(r"\s*#(if|ifdef|ifndef|elif|else|endif|include|define)\b")
_NAME_OF_TEST = re.compile(r"\b(TEST_CASE|REMATCH_LAYOUT_TEST|SECTION|INFO|FAIL|hazard)\(\s*$")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\[])")


@dataclasses.dataclass(frozen=True)
class _Comment:
    line: int
    column: int
    is_alone: bool  # only white space precedes the comment on its line
    text: str


def comments(name, text):
    """Returns (line, comment) for each comment of a source. Joins the lines of one comment by spaces."""
    if name.endswith(CPP):
        found = _cpp_comments(text)
    elif is_python(name, text):
        found = _python_comments(text)
    elif name.endswith((*HASH, ".py")) or text.startswith("#!"):
        found = [_Comment(number, line.index("#"), True, line.strip()[1:])
                 for number, line in enumerate(text.splitlines(), 1)
                 if line.lstrip().startswith("#") and not _PREPROCESSOR.match(line)]
    else:
        return []
    return [(line, words) for line, words in _joined(found)
            if len(words.split()) >= MIN_WORDS_OF_COMMENT and not _CODE_IN_COMMENT.match(words)]


def strings(name, text):
    """Returns (line, string) for each string literal of at least MIN_WORDS_OF_STRING words. Joins adjacent literals.
    From tests, returns only names and messages."""
    is_test = name.startswith("tests/")
    if name.endswith(CPP):
        found = _cpp_strings(text, is_test)
    elif is_python(name, text) and not is_test:
        found = [(node.lineno, node.value) for node in ast.walk(ast.parse(text))
                 if isinstance(node, ast.Constant) and isinstance(node.value, str) and not _is_docstring(node, text)]
    else:
        return []
    return [(line, " ".join(each.split())) for line, each in found
            if len(re.findall(r"(?<!\S)[A-Za-z][A-Za-z'-]+(?=[\s.,:;)]|$)", each)) >= MIN_WORDS_OF_STRING]


def readme_sentences(text):
    """Returns (line, sentence) for each sentence of a Markdown file. Skips code, tables and headings."""
    found, paragraph, start, in_code = [], [], 0, False

    def finish():
        found.extend((start, each) for each in _SENTENCE_END.split(" ".join(paragraph)) if each)
        paragraph.clear()

    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("```"):
            in_code = not in_code
        is_prose = not in_code and stripped and not stripped.startswith(("```", "|", "#", "<", ">"))
        starts_item = re.match(r"([-*]|[0-9]+\.) ", stripped)
        if not is_prose or starts_item:
            finish()
        if is_prose:
            start = start if paragraph else number
            paragraph.append(stripped[starts_item.end():] if starts_item else stripped)
    finish()
    return found


def is_python(name, text):
    """Returns whether the file is valid Python. Templates of Python files are not."""
    if not (name.endswith(".py") or text.startswith("#!/usr/bin/env python")):
        return False
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _cpp_comments(text):
    found = []
    for match in _CPP_TOKEN.finditer(text):
        if not match[0].startswith("//"):
            continue
        before = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        line = text.count("\n", 0, match.start()) + 1
        found.append(_Comment(line, len(before), not before.strip(), match[0][2:]))
    return found


def _cpp_strings(text, is_test):
    """Joins string literals that are separated only by white space."""
    found, end = [], -1
    for match in _CPP_TOKEN.finditer(text):
        if match[0][0] not in '"R':
            continue
        line_start = text.rfind("\n", 0, match.start()) + 1
        if text[line_start:match.start()].lstrip().startswith("#"):
            continue  # this string is the path in an #include
        value = match[0][1:-1] if match[0][0] == '"' else match[0][match[0].index("(") + 1:match[0].rindex(")")]
        if end >= 0 and not text[end:match.start()].strip():
            found[-1] = (*found[-1][:2], found[-1][2] + value)
        else:
            is_named = not is_test or _NAME_OF_TEST.search(text, max(0, line_start - 80), match.start())
            found.append((text.count("\n", 0, match.start()) + 1, is_named, value))
        end = match.end()
    return [(line, value) for line, is_named, value in found if is_named]


def _python_comments(text):
    found = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            line, column = token.start
            found.append(_Comment(line, column, not token.line[:column].strip(), token.string[1:]))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            document = ast.get_docstring(node)
            if document:
                found.append(_Comment(node.body[0].lineno, 0, False, document))
    return sorted(found, key=lambda each: each.line)


def _is_docstring(node, text):
    line = text.splitlines()[node.lineno - 1].lstrip()
    return line.startswith('"""')


def _joined(found):
    """Returns (line, words) of whole comments. Joins a comment to the comment on the line above if both begin at the
    same column. An empty comment ends a paragraph."""
    joined, last = [], None
    for each in found:
        words = " ".join(each.text.split())
        continues = last is not None and each.is_alone and each.line == last.line + 1 and each.column == last.column
        if continues and words and joined[-1][1]:
            joined[-1] = (joined[-1][0], joined[-1][1] + " " + words)
        else:
            joined.append((each.line, words))
        last = each
    return joined
