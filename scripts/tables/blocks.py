"""Fills the marked blocks of a document: from `<!-- table: NAME -->` to `<!-- end -->`."""

import re

BEGIN = re.compile(r"^<!-- table: (\S+) -->$")
END = "<!-- end -->"


def fill(text, tables):
    """Returns (text with filled blocks, problems)."""
    lines, problems = text.splitlines(), []
    result, index = [], 0
    while index < len(lines):
        line = lines[index]
        result.append(line)
        index += 1
        found = BEGIN.match(line)
        if not found:
            continue
        if END not in lines[index:]:
            problems.append(f"line {index}: table {found[1]} has no {END}")
            continue
        stop = lines.index(END, index)
        if found[1] not in tables:
            problems.append(f"line {index}: no table has the name {found[1]}; the tables are {', '.join(tables)}")
            result += lines[index:stop + 1]
        else:
            result += ["", tables[found[1]].markdown(), "", END]
        index = stop + 1
    return "\n".join(result) + "\n", problems


def hand_made_rows(text):
    """Returns the line numbers of table rows outside of blocks."""
    inside, found = False, []
    for number, line in enumerate(text.splitlines(), 1):
        if BEGIN.match(line):
            inside = True
        elif line == END:
            inside = False
        elif line.startswith("|") and not inside:
            found.append(number)
    return found
