// Passes broken, huge, deeply nested and hostile files to every subcommand that reads reports. The
// subcommand must exit with code 2 and write no file. It must print only one line, on stderr, and
// name the file there.
#include <filesystem>
#include <fstream>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "reports/record/json/record_json.h"
#include "tests/harness/cli/command_line.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace rematch::testing {
namespace {

constexpr std::size_t kHuge = 100'000'000;
constexpr std::size_t kLong = 10'000'000;  // length of a long string in a bad file

struct BadFile {
  const char* name;
  std::string text;
  const char* message;  // a part of the error message
};

Json report_json() {
  return report_to_json(
      Report{sample_provenance(), {sample_point("none"), sample_point("full")}, {}, {}});
}

std::string replaced(const std::string& text, const std::string& from, const std::string& to) {
  std::string result = text;
  const std::size_t found = result.find(from);
  if (found == std::string::npos) throw std::logic_error("nothing to replace: " + from);
  return result.replace(found, from.size(), to);
}

std::vector<BadFile> bad_files() {
  const std::string good = report_json().dump(1);
  return {
      {"empty", "", "is empty"},
      {"zeros", std::string(10, '\0'), "malformed JSON"},
      {"not JSON", "<html></html>", "malformed JSON at line 1, column 1"},
      {"truncated", good.substr(0, good.size() / 2), "malformed JSON at line"},
      {"text after the end", good + "{}", "malformed JSON at line"},
      {"a list", "[1, 2]", "object"},
      {"no schema", "{}", "schema"},
      {"other kind", "{\"schema\": \"rematch.plan/1.0\"}", ""},
      {"other version", replaced(good, "rematch.report/1.0", "rematch.report/2.0"),
       "rematch.report/2.0"},
      {"no points", "{\"schema\": \"rematch.report/1.0\"}", ""},
      {"duplicate key", replaced(good, "\"seed\":", "\"seed\": 1, \"seed\":"),
       "key \"seed\" appears twice"},
      {"NaN", replaced(good, "\"seed\": 1", "\"seed\": NaN"), "malformed JSON at line"},
      {"out of range", replaced(good, "\"seed\": 1", "\"seed\": 1e999"),
       "number '1e999' is out of range"},
      {"larger than a double holds",
       replaced(good, "\"seed\": 1", "\"seed\": 18446744073709551615"), "seed"},
      {"negative", replaced(good, "\"counted_steps\": 10", "\"counted_steps\": -10"),
       "counted_steps"},
      {"wrong type", replaced(good, "\"points\": [", "\"points\": 3, \"other\": ["), "points"},
      {"not UTF-8", replaced(good, "Made-up", "Made\xff\xfeup"), "malformed JSON at line"},
      {"a lone surrogate", replaced(good, "Made-up", "Made\\ud800up"), "malformed JSON at line"},
      {"deep", std::string(100'000, '['), "nested deeper than 100 levels"},
      {"a known key with a deeply nested value",
       replaced(good, "\"seed\": 1", "\"seed\": " + std::string(200, '[')),
       "nested deeper than 100 levels"},
  };
}

std::string write(const ScratchFolder& scratch, const std::string& text) {
  const std::string file = scratch.file("bad.json");
  std::ofstream(file, std::ios::binary) << text;
  return file;
}

void check_refused(const std::string& arguments, const std::string& file, const char* message) {
  const Outcome outcome = rematch(arguments);
  CAPTURE(arguments, outcome.err.substr(0, 300), outcome.out.substr(0, 300));
  CHECK(outcome.code == 2);
  CHECK(is_one_clear_line(outcome));
  CHECK_THAT(outcome.err, Catch::Contains(file) && Catch::Contains(message));
  CHECK(outcome.err.size() < 400);
}

// Commands that read the bad file. Some also read a good report, and some would write an output
// file.
const std::vector<std::string> kReaders = {
    "validate {bad}",
    "compare {good} {bad} -o {out}",
    "compare {bad} {good}",
    "gate {bad} --max-peak-bytes 1GiB -o {out}",
    "gate {good} --loss bitwise --reference {bad}",
    "render {bad} -o {out}",
};

}  // namespace

TEST_CASE(
    "every subcommand that reads reports refuses a bad file with a one-line error that names the "
    "file") {
  const ScratchFolder scratch;
  const std::string good = scratch.file("good.json");
  const std::string output = scratch.file("output");
  write_json_file(good, report_json());
  const std::vector<BadFile> files = bad_files();
  for (const BadFile& bad : files) {
    CAPTURE(bad.name);
    const std::string file = write(scratch, bad.text);
    for (std::string reader : kReaders) {
      // `render` is skipped for this file, because it also accepts other kinds of files than
      // reports.
      if (reader.rfind("render", 0) == 0 && std::string(bad.name) == "other kind") continue;
      reader = replaced(reader, "{bad}", file);
      if (reader.find("{good}") != std::string::npos) reader = replaced(reader, "{good}", good);
      if (reader.find("{out}") != std::string::npos) reader = replaced(reader, "{out}", output);
      check_refused(reader, file, bad.message);
      CHECK_FALSE(std::filesystem::exists(output));
    }
  }
}

TEST_CASE("validate prints the path of an unreadable file only once") {
  const ScratchFolder scratch;
  const std::string file = scratch.file("none.json");
  const Outcome outcome = rematch("validate " + file);
  CHECK(outcome.code == 2);
  CHECK(outcome.err == "rematch: cannot read '" + file + "': No such file or directory\n");
}

TEST_CASE("files of 100 MB in another format are refused without being read whole") {
  const ScratchFolder scratch;
  for (const BadFile& bad :
       {BadFile{"one string", "{\"schema\": \"" + std::string(kHuge, 'a') + "\"}", "schema"},
        BadFile{"open brackets", std::string(kHuge, '['), "nested deeper"},
        BadFile{"spaces", std::string(kHuge, ' '), "is empty"}}) {
    CAPTURE(bad.name);
    const std::string file = write(scratch, bad.text);
    check_refused("validate " + file, file, bad.message);
    check_refused("gate " + file + " --max-peak-bytes 1GiB", file, bad.message);
  }
}

// The file has 21 million numbers. Without a limit, each number would be stored three times: in the
// JSON tree, in the record and in a copy of the record.
TEST_CASE("a report with too many values is refused before it fills memory") {
  const ScratchFolder scratch;
  std::string numbers(42'000'000, '0');
  for (std::size_t comma = 1; comma < numbers.size(); comma += 2) numbers[comma] = ',';
  const std::string text =
      replaced(report_json().dump(1), "\"samples_ns\": [", "\"samples_ns\": [[" + numbers + "0],");
  const std::string file = write(scratch, text);
  check_refused("gate " + file + " --max-peak-bytes 1GiB", file, "more than 20000000 values");
}

TEST_CASE("an error about a file is short even if the file contains long texts") {
  const ScratchFolder scratch;
  const std::string good = report_json().dump(1);
  const std::string long_text(kLong, 'y');
  const std::string long_key = "\"" + long_text.substr(0, kLong / 2) + "\": 1,";
  const std::string twice = long_key + long_key;
  for (const BadFile& bad :
       {BadFile{"a string without an end", good.substr(0, good.size() - 3) + "\"" + long_text,
                "malformed JSON"},
        BadFile{"a long duplicate key", replaced(good, "\"seed\":", twice + " \"seed\":"),
                "appears twice"},
        BadFile{"a long number",
                replaced(good, "\"seed\": 1", "\"seed\": " + std::string(kLong, '1')),
                "is out of range"},
        BadFile{"a long kind", "{\"schema\": \"rematch." + long_text + "/1.0\"}", "schema"},
        BadFile{"a value under a long key",
                replaced(good, "\"OMP_NUM_THREADS\": \"2\"", "\"" + long_text + "\": 1"),
                "environment.variables.y"}}) {
    CAPTURE(bad.name);
    const std::string file = write(scratch, bad.text);
    for (const char* reader : {"validate ", "gate --max-peak-bytes 1GiB ", "render "}) {
      check_refused(reader + file, file, bad.message);
    }
  }
}

TEST_CASE("markup in names is escaped in the HTML page") {
  const ScratchFolder scratch;
  Report report{sample_provenance(), {sample_point("none")}, {}, {}};
  const std::string script = "</title><script>alert(1)</script>\" onload=\"x";
  report.points[0].policy = script;
  report.points[0].identity.model = script;
  report.points[0].reason = script;
  report.provenance.reproduce = script;
  const std::string file = scratch.file("report.json");
  write_json_file(file, report_to_json(report));
  for (const char* format : {"", " --markdown", " --svg front"}) {
    const Outcome page = rematch("render " + file + format);
    CAPTURE(format, page.err);
    CHECK(page.code == 0);
    CHECK(page.out.find("<script>alert") == std::string::npos);
    if (std::string(format) != " --markdown") {
      CHECK(page.out.find("\" onload=") == std::string::npos);
    }
  }
  const Outcome compared = rematch("compare " + file + " " + file + " --markdown");
  CHECK(compared.out.find("<script>alert") == std::string::npos);
  CHECK_THAT(compared.out, Catch::Contains("&lt;script&gt;"));
  const Outcome gated = rematch("gate " + file + " --max-peak-bytes 1GiB --markdown");
  CHECK(gated.out.find("<script>alert") == std::string::npos);
  CHECK_THAT(gated.out, Catch::Contains("&lt;script&gt;"));
}

}  // namespace rematch::testing
