// Tests `rematch gate --losses` with a table of edited loss curves. At least one command must show
// each edit by its exit code or output.
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <sstream>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "tests/harness/cli/command_line.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace rematch::testing {
namespace {

using Lines = std::vector<std::string>;

std::string exact(double number) {
  std::ostringstream text;
  text.precision(17);
  text << number;
  return text.str();
}

std::string row_of(int step, double loss) { return std::to_string(step) + "," + exact(loss); }

// The losses of steps 0 to 7 fall from 4 to 2.25, by 0.25 per step. At odd steps, run number k adds
// k thousandths.
double loss_of(int step, int run) { return 4 - 0.25 * step + (step % 2 == 1 ? 0.001 * run : 0); }

Lines curve(int run) {
  Lines lines = {"step,loss"};
  for (int step = 0; step < 8; ++step) lines.push_back(row_of(step, loss_of(step, run)));
  return lines;
}

// Files with curves. B0 to B2 are identical. N0 to N3 differ by at most 0.003. C1 to C3 are copies
// of N1 to N3, for use as candidates. E is an edited copy of run 0. Before the edit, line s + 2 has
// step s.
class Curves {
 public:
  Curves() {
    for (int run = 0; run < 3; ++run) write("B" + std::to_string(run), curve(0));
    for (int run = 0; run < 4; ++run) write("N" + std::to_string(run), curve(run));
    for (int run = 1; run < 4; ++run) write("C" + std::to_string(run), curve(run));
  }
  void write(const std::string& name, const Lines& lines) const {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    write_file_atomically(file(name), text);
  }
  std::string file(const std::string& name) const { return scratch_.file(name + ".csv"); }
  // In a command, replaces the name of each curve file, such as E or N0, by the file's path.
  std::string expand(const std::string& line) const {
    std::istringstream words(line);
    std::string expanded;
    for (std::string word; words >> word;) {
      const bool is_name = word == "E" || (word.size() == 2 && std::isdigit(word[1]) != 0);
      expanded += (is_name ? file(word) : word) + " ";
    }
    return expanded;
  }

 private:
  ScratchFolder scratch_;
};

struct GateCommand {
  const char* name;
  const char* line;
};
constexpr std::array kGateCommands = {
    GateCommand{"T1", "--losses E --reference-losses N0 N1 N2 N3"},
    GateCommand{"exact", "--losses E --reference-losses B0 B1 B2 --loss envelope"},
    GateCommand{"T2", "--losses E C1 C2 C3 --reference-losses N0 N1 N2 N3 --loss equivalence"},
    GateCommand{"threshold", "--losses E --reference-losses B0 --max-loss-difference 0.001"},
    GateCommand{"equal", "--losses E --reference-losses B0 --max-loss-difference 0"},
    GateCommand{"swapped", "--losses B0 --reference-losses E --max-loss-difference 0.001"},
};

struct CurveRow {
  const char* what;
  void (*edit)(Lines&);
  const char* codes;  // one exit code per command, in the order of the commands
  std::map<std::string, const char*> says;
};

// clang-format off: a row takes two lines, so that the codes are aligned
const std::vector<CurveRow> kRows = {
    {"nothing",
     [](Lines&) {},
     "000000",
     {{"T1", "PASS: "}, {"T2", "4 curves against 4 curves over 8 steps, 0 to 7"}}},
    {"one loss changed by one ulp",
     [](Lines& lines) { lines[4] = row_of(3, std::nextafter(loss_of(3, 0), 9)); },
     "030030",
     {{"exact", "(step 3, "}, {"equal", "largest difference 4.441e-16 (step 3, "}}},
    // --loss equivalence averages over four steps and four runs, so the mean changes by only a
    // sixteenth of the edit.
    {"one loss changed by a tenth",
     [](Lines& lines) { lines[7] = row_of(6, 2.6); },
     "330333",
     {{"T1", "E.csv:8:3) from the nearest of 4 reference runs"},
      {"T2", "mean losses differ by 0.00625"}}},
    {"all losses changed by a tenth",
     [](Lines& lines) {
       for (int step = 0; step < 8; ++step) lines[step + 1] = row_of(step, loss_of(step, 0) + 0.1);
     },
     "334333",
     {{"T2", "vary more"}}},
    {"not a number",
     [](Lines& lines) { lines[4] = "3,nan"; },
     "333334",
     {{"T1", "E.csv:5:3: the loss of step 3 is not finite"},
      {"swapped", "so nothing can be compared with that loss"}}},
    {"infinite",
     [](Lines& lines) { lines[8] = "7,inf"; },
     "333334",
     {{"T2", "E.csv:9:3: the loss of step 7 is not finite"}}},
    {"one row without a loss",
     [](Lines& lines) { lines[4] = "3,"; },
     "444440",
     {{"T1", "E.csv has no loss at step 3 (line 5 is empty there)"}}},
    {"a missing step in the middle",
     [](Lines& lines) { lines.erase(lines.begin() + 4); },
     "444440",
     {{"threshold", "E.csv lacks 1 of 8 steps"}, {"swapped", "no counterpart"}}},
    {"two missing steps at the end",
     [](Lines& lines) { lines.resize(7); },
     "444440",
     {{"T2", "no loss at step 6"}, {"swapped", "2 steps of "}}},
    {"an additional step",
     [](Lines& lines) { lines.push_back("8,2"); },
     "000004",
     {{"T1", "1 step of "}, {"swapped", " lacks 1 of 9 steps"}}},
    {"an additional step with a loss of NaN",
     [](Lines& lines) { lines.push_back("8,nan"); },
     "333334",
     {}},
    {"every second step",
     [](Lines& lines) {
       lines = {lines[0], lines[1], lines[3], lines[5], lines[7]};
     },
     "444440",
     {{"T1", " lacks 4 of 8 steps"}}},
    {"steps counted from 1",
     [](Lines& lines) {
       for (int step = 0; step < 8; ++step) lines[step + 1] = row_of(step + 1, loss_of(step, 0));
     },
     "444444",
     {{"T1", "no loss at step 0"}}},
    {"steps 8 to 15 instead of 0 to 7",
     [](Lines& lines) {
       for (int step = 0; step < 8; ++step) lines[step + 1] = row_of(step + 8, loss_of(step, 0));
     },
     "666666",
     {{"T1", "the curves have no common step"}}},
    {"two losses exchanged",
     [](Lines& lines) {
       lines[6] = row_of(5, loss_of(6, 0));
       lines[7] = row_of(6, loss_of(5, 0));
     },
     "330333",
     {}},
    {"two rows exchanged", [](Lines& lines) { std::swap(lines[4], lines[5]); }, "000000", {}},
    {"a duplicate step",
     [](Lines& lines) { lines.push_back(lines[4]); },
     "222222",
     {{"T1", "E.csv:10:3: step 3 appears twice, first in line 5"}}},
    {"a header without a column of losses",
     [](Lines& lines) { lines[0] = "step,value"; },
     "222222",
     {{"T1", "E.csv:1:1: the header has no column 'loss'"}}},
    {"no header", [](Lines& lines) { lines.erase(lines.begin()); }, "222222", {}},
    {"a word instead of a loss",
     [](Lines& lines) { lines[4] = "3,N/A"; },
     "222222",
     {{"T1", "E.csv:5:3: 'N/A' is not a valid loss"}}},
    {"a row cut off",
     [](Lines& lines) { lines[8] = "7"; },
     "222222",
     {{"T1", "E.csv:9:1: this row has 1 cell"}}},
    {"nothing left", [](Lines& lines) { lines.clear(); }, "222222", {{"T1", "is empty"}}},
};
// clang-format on

// Removes white space, because tables are wrapped and paths are long.
std::string dense(std::string text) {
  std::erase_if(text, [](unsigned char letter) { return std::isspace(letter) != 0; });
  return text;
}

}  // namespace

TEST_CASE("gate --losses detects each edit of a loss curve") {
  const Curves curves;
  for (const CurveRow& row : kRows) {
    Lines lines = curve(0);
    row.edit(lines);
    curves.write("E", lines);
    for (std::size_t index = 0; index < kGateCommands.size(); ++index) {
      const GateCommand& command = kGateCommands[index];
      const Outcome outcome = rematch("gate " + curves.expand(command.line));
      CAPTURE(row.what, command.name, outcome.out, outcome.err);
      CHECK(outcome.code == row.codes[index] - '0');
      if (outcome.code == 2 || outcome.code == 6) CHECK(is_one_clear_line(outcome));
      const auto part = row.says.find(command.name);
      if (part == row.says.end()) continue;
      CHECK_THAT(dense(outcome.out + outcome.err), Catch::Contains(dense(part->second)));
    }
  }
}

// In these five runs the optimizer does nothing. A candidate with the same losses therefore proves
// nothing.
TEST_CASE("constant curves are inconclusive and the message says what to do") {
  const Curves curves;
  Lines dead = {"step,loss"};
  for (int step = 0; step < 20; ++step) dead.push_back(std::to_string(step) + ",10.373490");
  for (int run = 0; run < 5; ++run) curves.write("D" + std::to_string(run), dead);
  for (const char* checks : {"", "--loss equivalence", "--max-loss-difference 0.01"}) {
    CAPTURE(checks);
    const std::string line =
        std::string("gate --losses D0 --reference-losses D1 D2 D3 D4 ") + checks;
    const Outcome outcome = rematch(curves.expand(line));
    CHECK(outcome.code == 4);
    if (std::string(checks) != "--loss equivalence") {
      CHECK_THAT(outcome.out, Catch::Contains("10.37 at all"));
      CHECK_THAT(dense(outcome.out), Catch::Contains(dense("check that the")));
    }
  }
}

TEST_CASE("too few reference runs are inconclusive, and the message names the flag to use") {
  const Curves curves;
  const Outcome two = rematch(curves.expand("gate --losses C1 --reference-losses N0 N1"));
  CHECK(two.code == 4);
  CHECK_THAT(two.out, Catch::Contains("--reference-losses"));
  CHECK(rematch(curves.expand("gate --losses C1 --reference-losses N0 N1 N2 --loss equivalence"))
            .code == 4);
}

TEST_CASE("a record of gated curves is valid JSON on stdout and in a file") {
  const Curves curves;
  const ScratchFolder scratch;
  const std::string file = scratch.file("gate.json");
  const Outcome outcome =
      rematch(curves.expand("gate --losses C1 --reference-losses N0 N1 N2 --json -o ") + file);
  CHECK(outcome.code == 0);
  CHECK(parse_json(outcome.out, "stdout") == read_json_file(file));
  CHECK(parse_json(outcome.out, "stdout")["curves"]["losses"].size() == 1);
  CHECK(rematch("validate " + file).code == 0);
}

TEST_CASE("flags that do not apply to loss curves are rejected with exit code 2") {
  const Curves curves;
  const auto refuses = [&](const std::string& arguments, const std::string& part) {
    check_usage_error(curves.expand("gate " + arguments), part);
  };
  refuses("--json", "give a REPORT to judge, or loss curves with --losses");
  refuses("--losses C1", "needs --reference-losses");
  refuses("--reference-losses C1 --loss envelope", "--reference-losses needs --losses");
  refuses("--loss-column Value --loss envelope", "--loss-column needs --losses");
  refuses("--losses C1 --reference-losses N0 --loss bitwise", "holds the bits");
  refuses("--losses C1 --reference-losses N0 N1 C1", "is given twice");
  refuses("--losses C1 --reference-losses N0 N1 N0", "is given twice");
  refuses("--losses C1 --reference-losses N0 --max-slowdown 2",
          "--max-slowdown cannot be used with");
  refuses("--losses C1 --reference-losses N0 --reference x.json",
          "--reference cannot be used with");
  refuses("--losses C1 --reference-losses nowhere.csv", "cannot read 'nowhere.csv'");
  refuses("--losses C1 --reference-losses N0 --margin 1", "require --loss equivalence");
  refuses("--losses C1 --reference-losses N0 --loss equivalence --window 9", "allowed: 1 to 8");
  refuses("--losses C1 --reference-losses N0 --step-column stp", "no column 'stp'");
}

}  // namespace rematch::testing
