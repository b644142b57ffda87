// Tests that -o never destroys a file that the command reads, or a file with measurements of
// another command.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "policies/base/file.h"
#include "policies/base/hashing.h"
#include "policies/base/json.h"
#include "policies/trace/trace_json.h"
#include "reports/record/json/record_json.h"
#include "tests/harness/cli/command_line.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/toy_trace.h"

namespace rematch::testing {
namespace {

// A folder with a report, a stored trace, a front of the trace, and a text file.
struct Files {
  Files() {
    write_json_file(report, report_to_json({sample_provenance(), {sample_point("none")}, {}}));
    write_json_file(trace, trace_to_json(toy_llama({.layers = 2})));
    std::ofstream(notes) << "Remember the milk.\n";
    REQUIRE(rematch("search --trace " + trace + " --device h100 -o " + front).code == 0);
  }

  ScratchFolder scratch;
  std::string report = scratch.file("report.json");
  std::string trace = scratch.file("trace.json");
  std::string notes = scratch.file("notes.txt");
  std::string front = scratch.file("front.json");
};

// Requires that the command refuses to write to the file and leaves it unchanged.
void check_kept(const std::string& arguments, const std::string& file, const std::string& part) {
  const std::string before = text_of(file);
  check_usage_error(arguments + " -o " + file, part);
  CHECK(text_of(file) == before);
}

TEST_CASE("-o never replaces an input, not even through a link") {
  const Files files;
  const std::string link = files.scratch.file("link.json");
  std::filesystem::create_symlink(files.report, link);
  const std::string is_input = "is an input of this command";
  check_kept("render " + files.report, files.report, is_input);
  check_kept("render " + files.report, link, is_input);
  check_kept("render " + link, files.report, is_input);
  check_kept("compare " + files.report + " " + files.report, files.report, is_input);
  check_kept("gate " + files.report + " --loss bitwise --reference " + files.report, files.report,
             is_input);
  check_kept("merge " + files.report, files.report, is_input);
  check_kept("search --device h100 --trace " + files.trace, files.trace, is_input);
  check_kept("export " + files.front + "#0 --trace " + files.trace, files.front, is_input);
  CHECK(rematch("render " + files.report + " --overwrite -o " + files.report).code == 0);
  CHECK_THAT(text_of(files.report), Catch::StartsWith("<!DOCTYPE html>"));
}

TEST_CASE("-o does not overwrite a file of another kind or of another model") {
  const Files files;
  const std::string search = "search --device h100 --trace " + files.trace;
  check_kept(search, files.report, "is a file of kind report, and this command writes front");
  check_kept(search, files.notes, "is a file of kind text");
  check_kept("plan --policy full --trace " + files.trace, files.front, "of kind front");
  check_kept("render " + files.report, files.front, "this command writes HTML page");
  check_kept("render --markdown " + files.report, files.front, "this command writes text");
  const std::string other = files.scratch.file("other.json");
  Trace another = toy_llama({.layers = 2});
  another.model = "another";
  write_json_file(other, trace_to_json(another));
  check_kept("search --device h100 --trace " + other, files.front,
             "is for model toy_llama, and this command writes a file for model another");
  // The same command may overwrite its own output. A target that is not a regular file is allowed,
  // and --overwrite allows any file.
  CHECK(rematch(search + " -o " + files.front).code == 0);
  CHECK(rematch(search + " -o /dev/null").code == 0);
  CHECK(rematch(search + " --overwrite -o " + files.notes).code == 0);
}

TEST_CASE("an empty or too long file name is refused before any work") {
  const Files files;
  check_usage_error("plan --policy full --trace " + files.trace + " -o ''",
                    "the file name is empty");
  check_usage_error("render " + files.report + " -o ''", "the file name is empty");
  check_usage_error("compare a.json b.json -o ''", "the file name is empty");
  check_usage_error("search --device h100 --trace " + files.trace + " -o ''",
                    "the file name is empty");
  check_usage_error("render " + files.report + " -o " + std::string(300, 'x'),
                    "whose name has 300 bytes; the limit is 200");
  check_usage_error("render " + std::string(300, 'x'), "File name too long");
  check_usage_error("describe --plan " + std::string(300, 'x') + ".json", "File name too long");
}

// The first search reads its trace from a pipe. It blocks until the test writes the trace to the
// pipe.
TEST_CASE("a second command with the same -o file is refused while the first command runs") {
  const Files files;
  const std::string pipe = files.scratch.file("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const std::string lock =
      "'@rematch " + sha256_hex(std::filesystem::weakly_canonical(files.front).string()) + "'";
  const std::string search = " search --device h100 -o " + files.front + " --trace ";
  const Outcome second =
      run_program("{",
                  "until grep -q " + lock + " /proc/net/unix; do sleep 0.02; done; " + binary() +
                      search + files.trace + "; }",
                  binary() + search + pipe + " >/dev/null 2>&1 & ");
  CHECK(second.code == 2);
  CHECK_THAT(second.err, Catch::StartsWith("rematch: another rematch process is writing '"));
  std::ofstream(pipe) << text_of(files.trace);
  // The first search now ends, so another search may write the file again.
  const Outcome third =
      run_program("{", "while grep -q " + lock + " /proc/net/unix; do sleep 0.02; done; " +
                           binary() + search + files.trace + "; }");
  CHECK(third.code == 0);
}

// The two searches write files of the same name, new.json, in different folders. The second search
// runs while the first search still waits for its trace.
TEST_CASE("two commands may write files of the same name in different folders at the same time") {
  const Files files;
  const ScratchFolder here;
  const ScratchFolder there;
  const std::string pipe = files.scratch.file("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const std::string search = std::string(binary()) + " search --device h100 -o new.json --trace ";
  const std::string folder = std::filesystem::canonical(here.file("")).string();
  const std::string lock = "'@rematch " + sha256_hex(folder + "/new.json") + "'";
  const Outcome second = run_program(
      "{",
      "for try in $(seq 500); do grep -q " + lock + " /proc/net/unix && break; sleep 0.02; done; " +
          "grep -q " + lock + " /proc/net/unix && cd " + there.file("") + " && " + search +
          files.trace + "; }",
      "(cd " + here.file("") + " && " + search + pipe + " >/dev/null 2>&1) & ");
  CAPTURE(second.err);
  CHECK(second.code == 0);
  std::ofstream(pipe) << text_of(files.trace);
  const Outcome first =
      run_program("{", "while grep -q " + lock + " /proc/net/unix; do sleep 0.02; done; }");
  CHECK(first.code == 0);
  CHECK(std::filesystem::exists(here.file("new.json")));
}

}  // namespace
}  // namespace rematch::testing
