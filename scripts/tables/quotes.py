"""Checks that every GPU figure in a README equals a cell of a table that is made from committed reports.

quoted_figures.json lists the quoted figures. In each entry, `text` is the sentence with the figures, exactly as in the
README. Either `cells` names the source of each figure as [figure, table, row, column], or `not_of_a_gpu` says what the
figures are."""

import re

# A paragraph or table row is about a GPU if it contains one of these words, or if the table's header does.
WORDS = re.compile(r"\b(H100|H200|L40S|A100|B200|GPU|MFU)s?\b|\bCUDA\b|PyTorch eager|torch\.compile")
# A figure is a number with a unit, or a decimal fraction. Version numbers and parts of names are not figures.
UNITS = r"\s?(?:ms|us|ns|s|GB/s|TFLOP/s|TFLOP|GB|GiB|MiB|MB)\b|\s?%"
FIGURE = re.compile(rf"(?<![\w.,/:-])(?:\d[\d,]*(?:\.\d+)?(?:{UNITS})|\d+\.\d+(?![\w.]))")
VERSION = re.compile(r"(?:LibTorch|torch|PyTorch|CUDA|cuDNN|Python|GCC|arXiv) \d+(?:\.\d+)+|\d+\.\d+\.\d+")


def paragraphs(text):
    """Yields (line number, header, text) for each paragraph and table row. The header of a paragraph is "". Skips code
    blocks, because they show the output of commands."""
    block, header, is_fenced = [], None, False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.startswith("```"):
            is_fenced = not is_fenced
        is_text = line.strip() and not is_fenced and not line.startswith(("```", "    "))
        if is_text and not line.startswith("|"):
            block.append((number, line))
            continue
        if block:
            yield block[0][0], "", " ".join(line.strip() for _, line in block)
            block = []
        if not line.startswith("|"):
            header = None
        elif header is None:
            header = line
        elif not line.startswith("| ---"):
            yield number, header, line


def figures_about_gpus(text):
    """Yields (line number, text, figures) for each paragraph and table row that is about a GPU and contains figures."""
    for number, header, words in paragraphs(text):
        if WORDS.search(header + words):
            found = [match[0] for match in FIGURE.finditer(VERSION.sub("", words))]
            if found:
                yield number, words, found


def value_of(figure):
    """Returns the number, and its number of digits after the decimal point. Ignores the unit."""
    digits = re.match(r"[\d,]*\.?\d*", figure)[0].replace(",", "")
    return float(digits), len(digits.partition(".")[2])


# Converts units of figures to the units of cells, ms and bytes.
SCALES = {"s": 1e3, "GB": 1e9, "MB": 1e6, "GiB": 2 ** 30, "MiB": 2 ** 20}


def is_rounded(figure, cell):
    """Returns whether the figure equals the cell's number in the figure's unit, rounded to the figure's digits. Ignores
    the sign, because a README writes "higher" or "lower"."""
    value, digits = value_of(figure)
    number = re.match(r"[\d,]+\.?\d*", cell.lstrip("+-"))
    if not number:
        return False
    unit = re.sub(r"^[\d.,\s]+", "", figure)
    is_same_unit = cell.endswith(f" {unit}")
    measured = float(number[0].replace(",", "")) / (1 if is_same_unit else SCALES.get(unit, 1))
    return abs(measured - value) <= 0.5000001 * 10 ** -digits


def problems_of_entry(entry, texts, tables):
    text = texts.get(entry["file"])
    if text is None:
        return [f"{entry['file']} is not a README"]
    joined = " ".join(text.split())
    if entry["text"] not in joined:
        return [f"{entry['file']} does not say: {entry['text']}"]
    if "not_of_a_gpu" in entry:
        return []
    problems = []
    for figure, table, row, column in entry["cells"]:
        cell = tables[table].cell(row, column) if table in tables else None
        if figure not in entry["text"]:
            problems.append(f"{entry['file']}: {figure} is not in: {entry['text']}")
        if cell is None:
            problems.append(f"{entry['file']}: no report has {figure}: table {table} lacks row '{row}' or column "
                            f"'{column}'")
        elif not is_rounded(figure, cell):
            problems.append(f"{entry['file']}: {figure} is {cell} in the reports ({table}, {row}, {column})")
    listed = [cell[0] for cell in entry["cells"]]
    return problems + [f"{entry['file']}: {figure} is quoted, but its entry names no table cell: {entry['text']}"
                       for figure in figures_in(entry["text"]) if not any(covers(shown, figure) for shown in listed)]


def figures_in(text):
    return [match[0] for match in FIGURE.finditer(VERSION.sub("", text))]


def covers(shown, figure):
    return value_of(shown) == value_of(figure)


def problems_of_quotes(texts, entries, tables):
    """`texts` maps README paths to their text. Checks that every figure about a GPU has an entry, and that every entry
    is correct."""
    problems = [problem for entry in entries for problem in problems_of_entry(entry, texts, tables)]
    for file, text in texts.items():
        listed = [entry["text"] for entry in entries if entry["file"] == file]
        for number, words, figures in figures_about_gpus(text):
            known = [figure for text_of in listed if text_of in words for figure in figures_in(text_of)]
            problems += [f"{file}:{number}: '{figure}' has no source in quoted_figures.json"
                         for figure in figures if figure not in known]
    return problems
