"""Tests that each check of scripts/check finds a planted error, names its location, and passes without the error."""

import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOOD_HEADER = """// Counts.
#pragma once

namespace rematch {

inline int twice(int count) { return 2 * count; }

}  // namespace rematch
"""
GOOD_SOURCE = """#include "policies/plan/count.h"

namespace rematch {

int four_times(int count) { return twice(twice(count)); }

}  // namespace rematch
"""


class CheckoutTest(unittest.TestCase):
    """A small checkout in which every check passes. Each test plants one error."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="rematch_checks_"))
        self.addCleanup(shutil.rmtree, self.root)
        subprocess.run(["git", "init", "-q", self.root], check=True)
        for name in (".clang-format", ".clang-tidy", ".gitignore"):
            shutil.copy(ROOT / name, self.root / name)
        self.write("policies/plan/count.h", GOOD_HEADER)
        self.write("policies/plan/count.cpp", GOOD_SOURCE)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def check(self, *arguments):
        done = subprocess.run([ROOT / "scripts" / "check", "--root", self.root, *arguments],
                              capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def expect_clean(self, check):
        status, output = self.check(check)
        if " skipped: " in output:
            self.skipTest(output)
        self.assertEqual(status, 0, output)
        self.assertIn("checks: 1 passed, 0 failed, 0 skipped", output)

    def expect_problem(self, check, *parts, deep=False):
        status, output = self.check(check, *(["--deep"] if deep else []))
        if " skipped: " in output:
            self.skipTest(output)
        self.assertEqual(status, 1, output)
        self.assertIn("checks: 0 passed, 1 failed, 0 skipped", output)
        for part in parts:
            self.assertIn(part, output)


class FormatTest(CheckoutTest):
    def test_a_badly_indented_line_is_found_and_repaired(self):
        self.expect_clean("format")
        self.write("policies/plan/count.cpp", GOOD_SOURCE.replace("int four", "  int  four"))
        self.expect_problem("format", "policies/plan/count.cpp:")
        self.check("--fix", "format")
        self.expect_clean("format")
        self.assertEqual((self.root / "policies/plan/count.cpp").read_text(), GOOD_SOURCE)


class LayersTest(CheckoutTest):
    def test_a_tensor_in_policies_is_found(self):
        self.expect_clean("layers")
        self.write("policies/plan/tensor.cpp", "// A.\n#include <ATen/core/Tensor.h>\n")
        self.expect_problem("layers", "policies/plan/tensor.cpp:2:", "(libtorch)")

    def test_a_lower_part_may_not_include_a_higher_one(self):
        self.write("policies/predict/peak.h", GOOD_HEADER)
        self.write("policies/plan/count.cpp", '#include "policies/predict/peak.h"\n')
        self.expect_problem("layers", "policies/plan/count.cpp:1:", "may not include policies/predict")

    def test_a_higher_part_may_include_a_lower_one(self):
        self.write("policies/predict/peak.cpp", '#include "policies/plan/count.h"\n')
        self.expect_clean("layers")

    def test_nothing_includes_tests(self):
        self.write("tests/support/fake.h", GOOD_HEADER)
        self.write("harness/run/point.cpp", '#include "tests/support/fake.h"\n')
        self.expect_problem("layers", "harness/run/point.cpp:1:", "may not include tests/")

    def test_the_whole_of_torch_is_refused_everywhere(self):
        self.write("harness/run/point.cpp", "#include <torch/torch.h>\n")
        self.expect_problem("layers", "harness/run/point.cpp:1:", "narrower headers")

    def test_the_engine_knows_no_clock(self):
        self.write("harness/engine/record.cpp", "#include <chrono>\n")
        self.expect_problem("layers", "harness/engine/record.cpp:1:", "does not use a clock")

    def test_only_one_header_may_use_libtorchs_version_numbers(self):
        line = "#if TORCH_VERSION_MINOR >= 13\n#endif\n"
        self.write("kernels/libtorch/versions.h", GOOD_HEADER + line)
        self.expect_clean("layers")
        self.write("harness/run/point.cpp", line)
        self.expect_problem("layers", "harness/run/point.cpp:1:", "only kernels/libtorch/versions.h may use")

    def test_unpublished_headers_are_private_to_their_folder(self):
        self.write("policies/plan/CMakeLists.txt",
                   "rematch_public_headers(count.h)\nrematch_add_library(plan SOURCES count.cpp)\n")
        self.write("policies/predict/peak.cpp", '#include "policies/plan/count.h"\n')
        self.expect_clean("layers")
        self.write("policies/plan/own.h", GOOD_HEADER)
        self.write("policies/predict/peak.cpp", '#include "policies/plan/count.h"\n#include "policies/plan/own.h"\n')
        self.expect_problem("layers", "policies/predict/peak.cpp:2:", "own.h is private to policies/plan")
        self.write("policies/predict/peak.cpp", "")
        self.expect_problem("layers", "policies/plan/CMakeLists.txt:1:", "no other folder includes policies/plan/count.h")

    def test_an_include_is_written_from_the_root(self):
        self.write("policies/plan/count.cpp", '#include "count.h"\n')
        self.expect_problem("layers", "policies/plan/count.cpp:1:", "from the root")

    def test_a_folder_missing_from_the_table_is_named(self):
        self.write("extras/more.cpp", "#include <vector>\n")
        self.expect_problem("layers", "extras/more.cpp:1:", "belongs to no part")

    def test_a_library_missing_from_the_table_is_named(self):
        self.write("policies/plan/count.cpp", "#include <boost/any.hpp>\n")
        self.expect_problem("layers", "policies/plan/count.cpp:1:", "<boost/any.hpp>")


class NamesTest(CheckoutTest):
    def test_two_types_with_one_name_are_found(self):
        self.write("harness/run/kind.h", GOOD_HEADER.replace("inline", "struct Kind {};\ninline"))
        self.expect_clean("names")
        self.write("reports/render/kind.cpp", "namespace rematch {\nstruct Kind {\n  int more;\n};\n}\n")
        self.expect_problem("names", "reports/render/kind.cpp:2: rematch::Kind is also",
                            "harness/run/kind.h")

    def test_unnamed_namespaces_and_declarations_do_not_conflict(self):
        self.write("harness/run/kind.h", GOOD_HEADER.replace("inline", "struct Kind {};\ninline"))
        self.write("reports/render/kind.cpp",
                   "namespace rematch {\nnamespace {\nstruct Kind {\n};\n}  // namespace\n}\n")
        self.write("reports/render/kind.h", "namespace rematch {\nstruct Kind;\n}\n")
        self.expect_clean("names")


class HeadersTest(CheckoutTest):
    def test_a_header_that_needs_another_before_it_is_found(self):
        self.expect_clean("headers")
        self.write("policies/plan/list.h", "#pragma once\nstd::vector<int> counts();\n")
        self.expect_problem("headers", "policies/plan/list.h:1: does not compile alone")

    def test_a_header_without_a_guard_is_found(self):
        self.write("policies/plan/twice.h", "struct Twice {};\n")
        self.expect_problem("headers", "policies/plan/twice.h:1:", "redefinition")

    def test_headers_of_tests_are_checked_too(self):
        self.expect_clean("headers")
        self.write("tests/support/twice.h", "struct Twice {};\n")
        self.expect_problem("headers", "tests/support/twice.h:1:", "redefinition")

    def test_an_error_in_an_included_header_is_found_even_if_the_header_passed_before(self):
        self.write("policies/plan/upper.h", '#pragma once\n#include "policies/plan/count.h"\n'
                                            "inline int eight() { return rematch::twice(4); }\n")
        self.expect_clean("headers")
        self.write("policies/plan/count.h", GOOD_HEADER.replace("twice", "thrice"))
        self.expect_problem("headers", "policies/plan/upper.h:1:")

    def test_an_include_of_one_header_does_not_serve_another_header_of_the_same_compilation(self):
        self.write("policies/plan/lower.h", "#pragma once\ninline std::vector<int> three() { return {1, 2, 3}; }\n")
        self.write("policies/plan/upper.h", '#pragma once\n#include <vector>\n'
                                            '#include "policies/plan/count.h"\n#include "policies/plan/lower.h"\n')
        self.expect_problem("headers", "policies/plan/lower.h:1: does not compile alone")


class TextTest(CheckoutTest):
    def test_a_character_outside_ascii_is_found(self):
        self.expect_clean("text")
        self.write("README.md", "one\ntwo \N{EM DASH} three\n")
        self.expect_problem("text", "README.md:2:", "U+2014")

    def test_a_large_file_is_found(self):
        self.write("notes.txt", "a\n" * 150_000)
        self.expect_problem("text", "notes.txt:1: 300000 bytes")

    def test_a_report_of_a_gpu_may_be_larger(self):
        self.write("reports/results/gpu/h100/x.report.json", "a\n" * 150_000)
        self.expect_clean("text")
        self.write("reports/results/gpu/h100/x.report.json", "a\n" * 600_000)
        self.expect_problem("text", "x.report.json:1: 1200000 bytes")

    def test_a_path_of_one_machine_is_found(self):
        self.write("README.md", "see /" + "home/somebody/notes\n")
        self.expect_problem("text", "README.md:1:", "one machine")

    def test_a_comment_that_begins_as_a_fragment_is_found(self):
        self.write("policies/plan/count.cpp", GOOD_SOURCE + "// Those of counts\n// that are even.\n")
        self.expect_problem("text", "policies/plan/count.cpp:8: a comment begins with 'Those'")
        self.write("policies/plan/count.cpp", GOOD_SOURCE + "// Those2 counts.\n// What is said on a second line passes.\n")
        self.expect_clean("text")
        self.write("scripts/count.py", 'def count():\n    """What there is."""\n')
        self.expect_problem("text", "scripts/count.py:2: a comment begins with 'What'")

    def test_a_long_sentence_of_a_markdown_file_is_found(self):
        self.write("README.md", "# Counts\n\nIt counts.\nThe " + 33 * "word " + "end. More.\n")
        self.expect_clean("text")
        self.write("README.md", "# Counts\n\nIt counts.\n\n" + 35 * "word " + "end.\n")
        self.expect_problem("text", "README.md:5: a sentence of 36 words, the limit is 35")
        self.write("README.md", "`" + 36 * "word " + "`.\n\n```\n" + 36 * "word " + "\n```\n| " + 36 * "cell " + "|\n")
        self.expect_clean("text")

    def test_a_long_commit_subject_gives_a_warning(self):
        self.commit(72 * "a")
        self.assertNotIn("warning", self.check("text")[1])
        self.commit(73 * "b")
        status, output = self.check("text")
        self.assertEqual(status, 0, output)
        self.assertRegex(output, "warning: commit [0-9a-f]+: its subject has 73 characters, at most 72 are usual: bbb")
        self.assertIn("0 problems, 1 warning\nchecks: 1 passed", output)
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")
        self.assertNotIn("warning", self.check("text")[1])

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=self.root, check=True)

    def commit(self, subject):
        self.git("commit", "-q", "--allow-empty", "-m", subject)

    def test_ignored_files_are_not_checked(self):
        self.write("results/report.txt", "\N{EM DASH}\n")
        self.expect_clean("text")


class TidyTest(CheckoutTest):
    def setUp(self):
        super().setUp()
        self.compile_sources("policies/plan/count.cpp")
        self.write("CMakePresets.json", json.dumps({"version": 3, "configurePresets": [{
            "name": "lite", "generator": "Ninja", "cacheVariables": {
                "CMAKE_EXPORT_COMPILE_COMMANDS": "ON", "CMAKE_CXX_COMPILER_WORKS": "ON"}}]}))

    def compile_sources(self, *names):
        self.write("CMakeLists.txt", f"""cmake_minimum_required(VERSION 3.25)
project(checkout CXX)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_UNITY_BUILD ON)
add_library(checkout STATIC {" ".join(names)})
target_include_directories(checkout PRIVATE .)
""")

    def test_a_name_in_the_wrong_case_is_found_in_source_and_header(self):
        self.expect_clean("tidy")
        self.write("policies/plan/count.cpp", GOOD_SOURCE.replace("four_times", "FourTimes"))
        self.expect_problem("tidy", "policies/plan/count.cpp:5:", "readability-identifier-naming")
        self.write("policies/plan/count.cpp", GOOD_SOURCE.replace("twice", "Twice"))
        self.write("policies/plan/count.h", GOOD_HEADER.replace("twice", "Twice"))
        self.expect_problem("tidy", "policies/plan/count.h:6:", "readability-identifier-naming")

    def test_a_bug_is_found_with_deep(self):
        self.write("policies/plan/count.cpp", GOOD_SOURCE.replace(
            "return twice(twice(count))", "int* lost = nullptr;\n  return *lost + count"))
        self.expect_clean("tidy")
        self.expect_problem("tidy", "policies/plan/count.cpp:", "clang-analyzer", deep=True)

    def test_a_long_function_is_found(self):
        body = "  count += 1;\n" * 80
        self.write("policies/plan/count.cpp", GOOD_SOURCE.replace(
            "{ return twice", "{\n" + body + "  return twice"))
        self.expect_problem("tidy", "policies/plan/count.cpp:5:", "readability-function-size")

    def test_each_source_of_a_unit_is_checked(self):
        self.write("policies/plan/lost.cpp", GOOD_SOURCE.replace("four_times", "lost").replace(
            "return twice(twice(count))", "int* lost = nullptr;\n  return *lost + count"))
        self.write("policies/plan/named.cpp", GOOD_SOURCE.replace("four_times", "FourTimes"))
        self.compile_sources("policies/plan/count.cpp", "policies/plan/lost.cpp", "policies/plan/named.cpp")
        self.expect_problem("tidy", "policies/plan/lost.cpp:", "clang-analyzer",
                            "policies/plan/named.cpp:5:", "readability-identifier-naming", deep=True)

    def test_a_source_that_is_not_compiled_is_found(self):
        self.write("policies/plan/forgotten.cpp", GOOD_SOURCE)
        self.expect_problem("tidy", "policies/plan/forgotten.cpp:1:")

    def test_an_added_source_is_checked(self):
        self.expect_clean("tidy")
        self.write("policies/plan/added.cpp", GOOD_SOURCE.replace("four_times", "FourTimes"))
        self.compile_sources("policies/plan/count.cpp", "policies/plan/added.cpp")
        self.expect_problem("tidy", "policies/plan/added.cpp:5:", "readability-identifier-naming")


class CommandTest(CheckoutTest):
    def test_an_unknown_check_is_a_usage_error_that_lists_the_checks(self):
        status, output = self.check("layerz")
        self.assertEqual(status, 2)
        self.assertIn("unknown check 'layerz'; the checks are format layers", output)


if __name__ == "__main__":
    unittest.main()
