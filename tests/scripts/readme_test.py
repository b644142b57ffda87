"""The top README answers a visitor at once: the question, the table, the five lines of code, all in under 200 lines."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
MAX_LINES = 199


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


if __name__ == "__main__":
    unittest.main()
