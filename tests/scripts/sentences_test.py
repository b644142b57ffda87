"""Tests that scripts/checks/sentences.py finds whole comments, printed strings and README sentences, and samples them
by a seed."""

import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
from checks import sentences  # noqa: E402

SOURCE = '''// Counts
// regions.
//
// Note [Counting]
#include "a header of four words.h"

int count = 0;  // regions that ran,
                // without empty ones
int next = 0;   // another comment

throw Refused("region " + name + " needs "
              "a plan of its own");  // NOLINT
const char* raw = R"(// no comment, and a raw string)";
}  // namespace rematch
'''
PYTHON = '''"""Counts regions."""
LIMIT = 3  # regions at most
KEY = "a_key_of_words"


def count():
    """Returns a number."""
    raise ValueError("there are too many regions")
'''
README = '''# A heading is no sentence

The first sentence
goes on. The second ends here.

- An item of a list
- Another item

| a | table |
```
A line of code. Another.
```
'''


class SentencesTest(unittest.TestCase):
    def test_comments_of_a_source_are_joined_line_by_line(self):
        self.assertEqual(sentences.comments("count.cpp", SOURCE),
                         [(1, "Counts regions."), (4, "Note [Counting]"), (7, "regions that ran, without empty ones"),
                          (9, "another comment")])

    def test_a_test_has_names_and_messages_and_a_product_has_all_strings(self):
        text = ('TEST_CASE(\n    "a count is "\n    "doubled once more") {\n'
                '  CHECK(error == "the count of two is too large");\n  INFO("while the counts are doubled");\n}\n')
        names = [(2, "a count is doubled once more"), (5, "while the counts are doubled")]
        self.assertEqual(sentences.strings("tests/policies/count_test.cpp", text), names)
        self.assertEqual(sentences.strings("policies/count.cpp", text),
                         [names[0], (4, "the count of two is too large"), names[1]])
        self.assertEqual(sentences.strings("tests/scripts/count_test.py", 'X = "the count of two is too large"\n'), [])

    def test_a_program_inside_a_shell_script_has_no_comments(self):
        self.assertEqual(sentences.comments("scripts/count.sh", "#include <count>\n#if TWO\n# Counts to two.\n#endif\n"),
                         [(3, "Counts to two.")])

    def test_strings_of_a_source_are_joined_and_short_ones_left_out(self):
        self.assertEqual(sentences.strings("count.cpp", SOURCE),
                         [(11, "needs a plan of its own"), (13, "// no comment, and a raw string")])

    def test_docstrings_are_comments_and_keys_are_not_strings(self):
        self.assertEqual(sentences.comments("count.py", PYTHON),
                         [(1, "Counts regions."), (2, "regions at most"), (7, "Returns a number.")])
        self.assertEqual(sentences.strings("count.py", PYTHON), [(8, "there are too many regions")])

    def test_a_template_that_python_cannot_parse_has_only_comments(self):
        self.assertEqual(sentences.comments("count.py", "x = @HERE@  \n# Filled in later.\n"), [(2, "Filled in later.")])
        self.assertEqual(sentences.strings("count.py", "x = @HERE@ 'a string of words'\n"), [])

    def test_comments_of_other_files_begin_with_a_hash(self):
        self.assertEqual(sentences.comments("CMakeLists.txt", "# Adds\n# a test.\nadd_test()\n"), [(1, "Adds a test.")])
        self.assertEqual(sentences.comments("data.json", "# no comment\n"), [])

    def test_sentences_of_a_readme_leave_out_headings_tables_and_code(self):
        self.assertEqual(sentences.readme_sentences(README),
                         [(3, "The first sentence goes on."), (3, "The second ends here."), (6, "An item of a list"),
                          (7, "Another item")])


class SampleTest(unittest.TestCase):
    def draw(self, *arguments):
        return subprocess.run([ROOT / "scripts" / "checks" / "sample_sentences.py", *arguments], capture_output=True,
                              text=True)

    def test_a_seed_always_draws_the_same_sentences_and_seeds_draw_different_ones(self):
        first, again, other = (self.draw(seed, "--count", "20", "--under", "policies").stdout for seed in ("7", "7", "8"))
        self.assertEqual(first, again)
        self.assertNotEqual(first.splitlines()[1:], other.splitlines()[1:])
        self.assertEqual(len(first.splitlines()), 42)
        for line in first.splitlines():
            self.assertRegex(line, r"^(# (comments|strings), seed 7|policies/\S+:[0-9]+: .+)$")

    def test_sentences_of_readmes_are_drawn_alone(self):
        heading, *lines = self.draw("7", "--of", "readmes", "--count", "30").stdout.splitlines()
        self.assertEqual((heading, len(lines)), ("# readmes, seed 7", 30))
        for line in lines:
            self.assertRegex(line, r"^(\S+/)?(README|CONTRIBUTING)\.md:[0-9]+: .+$")

    def test_bad_input_gets_one_line(self):
        for arguments, message in ((["7", "--count", "0"], "--count is 0; it must be at least 1"),
                                   (["7", "--under", "nowhere"], "--under nowhere has no files")):
            done = self.draw(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(message, done.stderr.splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
