// Checks the five questions that reports/README.md answers: the command for each question, the
// output of that command, and the explanation of the answer.
#include <sstream>
#include <vector>

#include "policies/base/json.h"
#include "tests/harness/cli/command_line.h"
#include "tests/support/catch.h"
#include "tests/support/in_tree.h"
#include "tests/support/scratch_folder.h"

namespace rematch::testing {
namespace {

struct Answer {
  std::string
      reading;  // the paragraph before the command: a question in bold, and how to read the answer
  std::string arguments;  // the arguments as typed, on one line
  std::vector<std::string> lines;
};

constexpr const char* kPrompt = "$ scripts/rematch ";

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Splits a block of the README into a command and its output. A backslash at the end of a line
// continues the command.
Answer answer_in(const std::string& reading, const std::string& block) {
  Answer answer{reading, "", {}};
  bool is_command = true;
  for (std::string line : lines_of(block)) {
    CHECK(line.size() <= 100);
    if (!is_command) {
      answer.lines.push_back(line);
      continue;
    }
    is_command = line.ends_with('\\');
    if (is_command) line.pop_back();
    answer.arguments += line;
  }
  REQUIRE(answer.arguments.starts_with(kPrompt));
  answer.arguments.erase(0, std::string(kPrompt).size());
  return answer;
}

std::vector<Answer> answers() {
  std::string text = text_of(in_tree("reports/README.md"));
  text.erase(0, text.find("## Five questions"));
  text.erase(text.find("\n## ", 1));
  std::vector<Answer> found;
  for (std::size_t at = text.find("\n**"); at != std::string::npos; at = text.find("\n**", at)) {
    const std::size_t open = text.find("```\n", at);
    const std::size_t close = text.find("```", open + 4);
    REQUIRE(close != std::string::npos);
    found.push_back(
        answer_in(text.substr(at + 1, open - at - 1), text.substr(open + 4, close - open - 4)));
    at = close;
  }
  return found;
}

TEST_CASE("each of the README's five answers has a question and an explanation") {
  REQUIRE(answers().size() == 5);
  for (const Answer& answer : answers()) {
    CAPTURE(answer.arguments);
    CHECK_THAT(answer.reading, Catch::Matches("\\*\\*[^\n]*\\?\\*\\* [^\n]+\n\n"));
    CHECK(answer.lines.size() <= 40);
  }
}

// Runs only commands that need no files of the user. Compares only stdout, although some answers in
// the README also show stderr.
TEST_CASE("search and describe print the answers that the README shows") {
  for (const Answer& answer : answers()) {
    if (!answer.arguments.starts_with("search") && !answer.arguments.starts_with("describe")) {
      continue;
    }
    CAPTURE(answer.arguments);
    const ScratchFolder folder;  // working directory, for files that the command writes
    const Outcome printed = rematch(answer.arguments, "cd " + folder.file("") + " && COLUMNS=100 ");
    CHECK(printed.code == 0);
    std::vector<std::string> wanted = answer.lines;
    std::erase_if(wanted, [](const std::string& line) { return line.starts_with("rematch: "); });
    CHECK(lines_of(printed.out) == wanted);
  }
}

// The policy file keeps everything, so it adds only the engine's own cost to a step.
TEST_CASE("a plan that keeps everything runs the same ops as policy none") {
  const Outcome outcome =
      rematch("run --model llama_small --policy none," + in_tree("scripts/gpu/keep_all.json") +
              " --steps 1 --rounds 0 --json");
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const Json report = Json::parse(outcome.out);
  const Json& none = report.at("points").at(0);
  Json keep_all = report.at("points").at(1);
  // The engine recomputes views, which cost nothing.
  CHECK(keep_all["counts"]["recompute"].erase("view") == 1);
  // Only a plan with regions has a schedule.
  CHECK(keep_all.at("identity").at("schedule") == "on_demand");
  CHECK(keep_all.at("counts") == none.at("counts"));
  for (const char* peak : {"peak_allocated_bytes", "after_forward_bytes"}) {
    CHECK(keep_all.at("memory").at(peak) == none.at("memory").at(peak));
  }
  CHECK(keep_all.at("parity").at("gradient_bits_equal") == true);
}

}  // namespace
}  // namespace rematch::testing
