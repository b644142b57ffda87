// Tests what gate and compare print for edited reports. Each row of a table has an edit, the
// expected exit codes and expected words. At least one command must show the edit.
#include <cmath>
#include <limits>
#include <map>
#include <sstream>

#include "policies/base/file.h"
#include "tests/harness/cli/command_line.h"
#include "tests/harness/cli/edited_reports.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace rematch::testing {
namespace {

// In these commands, B is the original report and E the edited report. Bn and En are reports with
// noise: the losses of a policy's runs differ.
struct Command {
  const char* name;
  const char* line;
};
constexpr std::array kCommands = {
    Command{"T0", "gate E --reference B --loss bitwise"},
    Command{"T1", "gate En --reference Bn --loss envelope"},
    Command{"T2", "gate En --reference Bn --loss equivalence"},
    Command{"threshold", "gate E --reference B --max-loss-difference 0.001"},
    Command{"slowdown", "gate E --reference B --max-slowdown 10%"},
    Command{"peak limit", "gate E --max-peak-bytes 100MiB"},
    Command{"expect", "gate E --policy full --expect recompute.attention_forward=80"},
    Command{"compare", "compare B E"},
    Command{"slower", "compare B E --fail-on slower"},
    Command{"peak", "compare B E --fail-on peak"},
    Command{"counts", "compare B E --fail-on counts"},
    Command{"loss", "compare B E --fail-on loss"},
    Command{"missing", "compare B E --fail-on missing"},
    Command{"failed", "compare B E --fail-on failed"},
};

using Edit = void (*)(Json&);
constexpr const char* kRefused = "2222 222 2222222";

struct Row {
  const char* what;
  Edit edit;
  // Exit codes in the order of kCommands, in three groups: gate with losses, gate with limits, and
  // compare.
  const char* codes;
  std::map<std::string, const char*> says;  // maps a command's name to a part of its output
  bool edits_base = false;                  // if true, B is edited and E is not
};

Json& step_of(Json& report, std::size_t step) { return full_of(report)["steps"][step]; }

void set_gradient_norm(Json& report, std::size_t step, const char* bits) {
  step_of(report, step)["gradient_norm_bits"] = bits;
}

void edit_identities(Json& report, const char* name, const Json& value) {
  for (Json& point : report["points"]) {
    point["identity"][name] = value;
    make_key(point);
  }
}

void end_badly(Json& point, const char* status) {
  point["status"] = status;
  point["reason"] = "made up";
}

// clang-format off: a row takes two lines, so that the codes are aligned
const std::vector<Row> kLossRows = {
    {"nothing",
     [](Json&) {},
     "0000 000 0000000",
     {{"T0", "PASS: 2 of 2"}, {"compare", "2 rows, no difference"}}},
    {"one loss changed by one ulp",
     [](Json& report) { set_loss(step_of(report, 2), std::nextafter(1.0F, 2.0F)); },
     "3000 000 0000300",
     {{"T0", "first differs at step 2 in loss"},
      {"threshold", "largest difference 1.192e-07"},
      {"compare", "loss: first differs at step 2"}}},
    {"one loss changed by a tenth",
     [](Json& report) { set_loss(step_of(report, 3), 0.85F); },
     "3343 000 0000300",
     {{"T1", "largest difference 0.099"},
      {"T2", "run more repeats"},
      {"threshold", "largest difference 0.1"}}},
    {"the number of a loss changed, but not its bits",
     [](Json& report) { step_of(report, 1)["loss"] = 1.2500001; },
     kRefused,
     {{"T1", "steps[1].loss: differs from \"loss_bits\""}}},
    {"the bits of a loss changed, but not its number",
     [](Json& report) { change_last_digit(step_of(report, 1)["loss_bits"]); },
     kRefused,
     {{"compare", "was the file edited?"}}},
    {"not a number",
     [](Json& report) { set_loss(step_of(report, 1), std::nanf("")); },
     "3333 333 0000300",
     {{"T1", "the loss of step 1 is not finite"}, {"compare", "loss: not finite at step 1"}}},
    {"infinite",
     [](Json& report) { set_loss(step_of(report, 3), std::numeric_limits<float>::infinity()); },
     "3333 333 0000300",
     {{"T0", "the loss of step 3 is not finite"}}},
    {"a missing last step",
     [](Json& report) { full_of(report)["steps"].erase(3); },
     "4444 000 0000400",
     {{"T0", "has 3 of 4 steps"},
      {"loss", "equal over the 3 steps that both have; the candidate lacks 1"}}},
    {"a missing step in the middle",
     [](Json& report) { full_of(report)["steps"].erase(1); },
     "3444 000 0000300",
     {{"T0", "first differs at step 1 in loss"}}},
    {"no steps",
     [](Json& report) { full_of(report)["steps"] = Json::array(); },
     "4444 000 0000400",
     {{"loss", "loss was not measured in the candidate"}}},
    {"an additional step",
     [](Json& report) { full_of(report)["steps"].push_back(step_of(report, 3)); },
     "0000 000 0000000",
     {{"T0", "the candidate's last step has no counterpart"},
      {"compare", "equal over the 4 steps that both have"}}},
    {"two steps exchanged",
     [](Json& report) { std::swap(step_of(report, 1), step_of(report, 2)); },
     "3343 000 0000300",
     {{"T0", "step 1 in loss"},
      {"T2", "the candidate's runs vary more than the reference's"},
      {"threshold", "largest difference 0.25"}}},
    {"zero gradients",
     [](Json& report) { set_gradient_norm(report, 3, "0x0000000000000000"); },
     "3333 000 0000300",
     {{"T2", "gradients of step 3 are all zero"}, {"loss", "gradients are all zero at step 3"}}},
    {"gradients that are not finite",
     [](Json& report) { set_gradient_norm(report, 3, "0x7ff8000000000000"); },
     "3333 000 0000300",
     {{"T1", "gradients of step 3 are not finite"},
      {"compare", "gradients are not finite at step 3"}}},
    {"a gradient norm changed by one ulp",
     [](Json& report) { change_last_digit(step_of(report, 1)["gradient_norm_bits"]); },
     "3000 000 0000300",
     {{"T0", "step 1 in gradient norm"},
      {"compare", "the bits of gradient norm first differ at step 1"}}},
    {"a different gradient",
     [](Json& report) { change_last_digit(step_of(report, 2)["gradient_hashes"]["head"]); },
     "3000 000 0000300",
     {{"T0", "step 2 in head"}, {"compare", "the bits of head first differ at step 2"}}},
    {"a missing gradient",
     [](Json& report) { step_of(report, 2)["gradient_hashes"].erase("embed"); },
     "3000 000 0000300",
     {{"T0", "step 2 in embed"}}},
    {"different parameters after the last step",
     [](Json& report) { change_last_digit(step_of(report, 3)["parameter_hash"]); },
     "3000 000 0000300",
     {{"T0", "step 3 in parameters"}, {"compare", "parameters first differ at step 3"}}},
    {"a different generator state",
     [](Json& report) { change_last_digit(step_of(report, 3)["generator_hash"]); },
     "3000 000 0000300",
     {{"T0", "step 3 in generator state"}}},
    {"parameter bits that were not recorded",
     [](Json& report) { step_of(report, 3)["parameter_hash"] = nullptr; },
     "4000 000 0000400",
     {{"T0", "no bits of the parameters were recorded at step 3"},
      {"loss", "has no bits of the parameters at step 3"}}},
    {"parity that contradicts the steps",
     [](Json& report) { full_of(report)["parity"]["gradient_bits_equal"] = false; },
     "3000 000 0000300",
     {{"T0", "the point's own parity record says that its bits differ"},
      {"compare", "the candidate records that its bits differ from reference none"}}},
    {"no parity",
     [](Json& report) { full_of(report)["parity"] = nullptr; },
     "4444 000 0000000",
     {{"T0", "does not say whether every parameter got a gradient"},
      {"compare", "differs in parity"}}},
    {"a parameter without a gradient",
     [](Json& report) { full_of(report)["parity"]["every_parameter_has_gradient"] = false; },
     "4444 000 0000000",
     {{"T1", "no proof"}, {"compare", "parity.every_parameter_has_gradient"}}},
    {"a repeat that did not finish",
     [](Json& report) { end_badly(report["reference_repeats"][4], "oom"); },
     "3333 000 0000000",
     {{"T0", "a repeat ended oom: made up"}}},
    {"a repeat that is not finite",
     [](Json& report) { set_loss(report["reference_repeats"][4]["steps"][0], std::nanf("")); },
     "3333 333 0000000",
     {{"T0", "step 0 in repeat 2 is not finite"}}},
    {"no repeats of the reference",
     [](Json& report) { report["reference_repeats"] = Json::array(); },
     "0440 000 0000000",
     {{"T1", "1 reference run; at least 3 are needed"}, {"threshold", "noise: not measured"}},
     true},
    {"a loss of the reference is NaN",
     [](Json& report) { set_loss(step_of(report, 1), std::nanf("")); },
     "4444 000 0000300",
     {{"T0", "refused: run 2 of the reference differs"},
      {"T1", "a loss of the reference is not finite"}},
     true},
    {"the reference's point failed",
     [](Json& report) { end_badly(full_of(report), "crash"); },
     "4444 400 0000000",
     {{"T0", "the reference's own point ended crash"}, {"compare", "1 failed"}},
     true},
};

const std::vector<Row> kFigureRows = {
    {"a class's count",
     [](Json& report) { full_of(report)["counts"]["recompute"]["attention_forward"] = 81; },
     "3333 333 0003000",
     {{"expect", "executed 81"},
      {"T0", "the plan predicts 80"},
      {"compare", "different counts of class attention_forward in recompute"}}},
    {"an op's count",
     [](Json& report) { full_of(report)["ops"]["recompute"]["aten::mm"] = 170; },
     "0000 000 0003000",
     {{"compare", "recomputed ops 24 to 25"}}},
    {"an op counted in a different phase",
     [](Json& report) {
       auto& ops = full_of(report)["ops"];
       ops["forward"]["aten::mm"] = ops["recompute"]["aten::mm"];
       ops["recompute"].erase("aten::mm");
     },
     "0000 000 0003000",
     {{"compare", "the same number of ops, but different counts by name: aten::mm in forward"}}},
    {"a class's prediction",
     [](Json& report) { full_of(report)["predicted_counts"]["recompute"]["matmul"] = 161; },
     "3333 333 0000000",
     {{"T0", "executed 160 matmul in recompute; the plan predicts 161"},
      {"compare", "differs in predicted_counts"}}},
    {"the report says that counts differ from the prediction",
     [](Json& report) { full_of(report)["effect"]["counts_equal_prediction"] = false; },
     "3333 333 0000000",
     {{"peak limit", "executed ops differ from the prediction"},
      {"compare", "effect.counts_equal_prediction"}}},
    {"a different number of counted steps",
     [](Json& report) { full_of(report)["counted_steps"] = 20; },
     "0000 000 0003000",
     {{"compare", "differs in counted_steps"}}},
    {"no counts",
     [](Json& report) { full_of(report)["counts"] = nullptr; },
     "0000 004 0004000",
     {{"expect", "ops were not counted"}, {"compare", "executed ops: measured only in the base"}}},
    {"one more kernel of a class",
     [](Json& report) { full_of(report)["kernels"]["kernel_count"]["forward"]["matmul"] = 130; },
     "0000 000 0003000",
     {{"compare", "kernel count 73 to 74"}}},
    {"peak + 1 byte",
     [](Json& report) {
       auto& peak = point_of(report, "none")["memory"]["peak_allocated_bytes"];
       peak = peak.get<std::int64_t>() + 1;
     },
     "0000 030 0030000",
     {{"compare", "(+1 B)"}}},
    {"peak - 1 byte",
     [](Json& report) {
       auto& peak = full_of(report)["memory"]["peak_allocated_bytes"];
       peak = peak.get<std::int64_t>() - 1;
     },
     "0000 000 0000000",
     {{"compare", "(-1 B)"}}},
    {"no peak",
     [](Json& report) { full_of(report)["memory"]["peak_allocated_bytes"] = nullptr; },
     "0000 040 0040000",
     {{"peak limit", "the peak was not measured"},
      {"peak", "peak allocated was not measured in the candidate"}}},
    {"a reserved peak only in the candidate",
     [](Json& report) { full_of(report)["memory"]["peak_reserved_bytes"] = 7; },
     "0000 000 0040000",
     {{"peak", "peak reserved was not measured in the base"}}},
    {"different bytes after forward",
     [](Json& report) { full_of(report)["memory"]["after_forward_bytes"] = 7; },
     "0000 000 0000000",
     {{"compare", "differs in memory.after_forward_bytes"}}},
    {"different bytes of a holder at the peak",
     [](Json& report) { full_of(report)["memory"]["holders_at_peak"]["other"] = 7; },
     "0000 000 0000000",
     {{"compare", "differs in memory.holders_at_peak"}}},
    {"a different predicted peak",
     [](Json& report) { full_of(report)["memory"]["predicted_peak_allocated_bytes"] = 7; },
     "0000 000 0000000",
     {{"compare", "memory.predicted_peak_allocated_bytes"}}},
    {"more recomputed flops",
     [](Json& report) { full_of(report)["recomputed_step_flops"] = 7; },
     "0000 000 0000000",
     {{"compare", "recomputed flops: 1 higher"}}},
    {"step time x 3",
     [](Json& report) {
       set_rounds(full_of(report), {30000, 30100, 29900, 30050});
     },
     "0000 300 0300000",
     {{"slowdown", "of full's step time; allowed: 1.1"}, {"compare", "slower"}}},
    {"step time x 3, with two noisy rounds",
     [](Json& report) {
       set_rounds(full_of(report), {20000, 45000});
     },
     "0000 400 0400000",
     {{"slowdown", "too noisy to decide"}, {"slower", "is within noise for full on_demand"}}},
    {"step time x 3, with a single round",
     [](Json& report) { set_rounds(full_of(report), {30000}); },
     "0000 400 0400000",
     {{"slowdown", "one round does not show the noise"}, {"slower", "only one round on one side"}}},
    {"step time x 1.8, within the noise of the rounds",
     [](Json& report) {
       set_rounds(full_of(report), {7000, 48000, 18000, 18000});
     },
     "0000 400 0400000",
     {{"slower", "step time ratio 1.80 [0.38 8.59] is within noise"}}},
    {"step time / 3",
     [](Json& report) {
       set_rounds(full_of(report), {3000, 3010, 2990, 3005});
     },
     "0000 000 0000000",
     {{"compare", "step time: 1 faster"}}},
    {"step times x 3, but an unchanged median",
     [](Json& report) {
       const Json median = full_of(report)["time"]["step_median_ns"];
       set_rounds(full_of(report), {30000, 30100, 29900, 30050});
       full_of(report)["time"]["step_median_ns"] = median;
     },
     kRefused,
     {{"slower", "step_median_ns: is not the median"}}},
    {"a step that takes no time",
     [](Json& report) { full_of(report)["time"]["samples_ns"][1][0] = 0; },
     kRefused,
     {{"slowdown", "samples_ns[1][0]: must be above 0, because a step takes time"}}},
    {"no times",
     [](Json& report) { full_of(report)["time"] = nullptr; },
     "0000 400 0400000",
     {{"slowdown", "times were not measured"},
      {"compare", "step time: measured only in the base"}}},
    {"a different device at one point",
     [](Json& report) { full_of(report)["device"] = "meta"; },
     "0000 000 0000000",
     {{"compare", "differs in device"}}},
    {"swapped arguments, slower and larger",
     [](Json& report) {
       set_rounds(full_of(report), {30000, 30100, 29900, 30050});
       point_of(report, "none")["memory"]["peak_allocated_bytes"] = 104857601;
     },
     "0000 000 0000000",
     {{"compare", "step time: 1 faster; peak allocated: 1 lower"}},
     true},
};

const std::vector<Row> kPointRows = {
    {"a point that failed",
     [](Json& report) { end_badly(full_of(report), "oom"); },
     "3333 333 0444403",
     {{"T0", "ended oom: made up"}, {"slower", "full on_demand ended oom in the candidate"}}},
    {"a skipped point",
     [](Json& report) { end_badly(full_of(report), "skipped"); },
     "3333 333 0444403",
     {{"peak limit", "ended skipped: made up"}}},
    {"a missing point",
     [](Json& report) { report["points"].erase(1); },
     "4444 402 0444430",
     {{"T0", "the report lacks this point of the reference"},
      {"peak", "full on_demand is not in the candidate"},
      {"expect", "does not occur in the report"}}},
    {"no points",
     [](Json& report) { report["points"] = Json::array(); },
     "4444 442 4444434",
     {{"compare", "no point finished in both reports"}, {"failed", "the candidate has no points"}}},
    {"no points in the base",
     [](Json& report) { report["points"] = Json::array(); },
     "4444 400 4444440",
     {{"missing", "the base has no points"}},
     true},
    {"a duplicate point",
     [](Json& report) { report["points"].push_back(full_of(report)); },
     kRefused,
     {{"compare", "points[2]: repeats points[1], full;"}}},
    {"a duplicate point with a higher peak",
     [](Json& report) {
       Json again = full_of(report);
       again["memory"]["peak_allocated_bytes"] = 200000000;
       report["points"].push_back(again);
     },
     kRefused,
     {{"peak limit", "repeats points[1]"}}},
    {"an additional point that failed",
     [](Json& report) {
       Json other = full_of(report);
       other["policy"] = "save_mm";
       other["identity"]["plan_sha256"] = std::string(64, 'e');
       make_key(other);
       end_badly(other, "crash");
       report["points"].push_back(other);
     },
     "3333 330 0000003",
     {{"failed", "1 extra"}}},
    {"another model's policies",
     [](Json& report) { edit_identities(report, "model", "wan_large"); },
     "4444 400 4444430",
     {{"T0", "the reference has no point of policy"},
      {"slower", "no point finished in both reports"}}},
    {"another seed",
     [](Json& report) { edit_identities(report, "seed", 2); },
     "4444 400 4444430",
     {{"compare", "seed 1 in the base, 2 in the candidate"}}},
    {"another schedule",
     [](Json& report) {
       full_of(report)["identity"]["schedule"] = "whole_region";
       make_key(full_of(report));
     },
     "4444 400 0444430",
     {{"missing", "schedule on_demand in the base, whole_region in the candidate"}}},
    {"an identity that does not match its key",
     [](Json& report) { full_of(report)["identity"]["seed"] = 2; },
     kRefused,
     {{"compare", "does not match the hash of \"identity\""}}},
    {"two policies with exchanged names",
     [](Json& report) {
       Json& none = point_of(report, "none");
       Json& full = full_of(report);
       none["policy"] = "full";
       full["policy"] = "none";
     },
     "0040 003 0033000",
     {{"T2", "1 and 4 runs"}, {"compare", "the policy resolves to a different plan"}}},
    {"a different version of LibTorch",
     [](Json& report) { report["environment"]["libtorch_version"] = "2.12.0"; },
     "4404 400 6666666",
     {{"T0", "measured in different environments: libtorch_version unknown and 2.12.0"}}},
    {"a different environment variable that changes bits",
     [](Json& report) { report["environment"]["variables"]["NVIDIA_TF32_OVERRIDE"] = "1"; },
     "4404 400 6666666",
     {{"compare", "NVIDIA_TF32_OVERRIDE unset and 1"}}},
    {"a different number of threads",
     [](Json& report) { report["environment"]["threads"] = 3; },
     "4404 400 6666666",
     {{"slower", "threads 2 and 3"}}},
    {"a different execution mode",
     [](Json& report) { report["execution"] = "compiled"; },
     "4404 400 6666666",
     {{"T0", "execution eager and compiled"}}},
    {"a newer major version",
     [](Json& report) { report["schema"] = "rematch.report/2.0"; },
     kRefused,
     {{"T0", "this build reads 'rematch.report/1.x'"}}},
    {"a word instead of a number",
     [](Json& report) { full_of(report)["memory"]["peak_allocated_bytes"] = "much"; },
     kRefused,
     {{"peak", "expected a whole number"}}},
    {"a negative count",
     [](Json& report) { full_of(report)["counts"]["forward"]["matmul"] = -1; },
     kRefused,
     {{"counts", "counts.forward.matmul"}}},
};
// clang-format on

class EditedReports {
 public:
  EditedReports() {
    write("as_was", measured_report(RunNoise::kNone));
    write("as_was_n", measured_report(RunNoise::kSome));
  }

  void edit(const Row& row) {
    for (const RunNoise noise : {RunNoise::kNone, RunNoise::kSome}) {
      Json report = measured_report(noise);
      row.edit(report);
      write(noise == RunNoise::kNone ? "edited" : "edited_n", report);
    }
  }

  // Replaces the words B, E, Bn and En in a command by the paths of the files.
  std::string arguments(const Command& command, const Row& row) const {
    const std::string base = row.edits_base ? "edited" : "as_was";
    const std::string other = row.edits_base ? "as_was" : "edited";
    std::string line = std::string(command.line) + " ";
    for (const auto& [letter, name] : {std::pair('B', base), std::pair('E', other)}) {
      replace(line, std::string(" ") + letter + "n ", scratch_.file(name + "_n.json"));
      replace(line, std::string(" ") + letter + " ", scratch_.file(name + ".json"));
    }
    return line;
  }

 private:
  static void replace(std::string& line, const std::string& word, const std::string& file) {
    const std::size_t at = line.find(word);
    if (at != std::string::npos) line.replace(at, word.size(), " " + file + " ");
  }
  void write(const std::string& name, const Json& report) const {
    write_json_file(scratch_.file(name + ".json"), report);
  }

  ScratchFolder scratch_;
};

// Tables are as wide as the terminal, so their lines may break anywhere.
std::string in_one_line(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line.append(line.empty() ? "" : " ").append(word);
  return line;
}

void check_rows(const std::vector<Row>& rows) {
  EditedReports reports;
  for (const Row& row : rows) {
    reports.edit(row);
    std::string codes;
    bool is_said = false;
    for (const Command& command : kCommands) {
      if (&command == &kCommands[4] || &command == &kCommands[7]) codes += ' ';
      const Outcome outcome = rematch(reports.arguments(command, row));
      codes += std::to_string(outcome.code);
      is_said = is_said || outcome.code != 0;
      const auto part = row.says.find(command.name);
      if (part == row.says.end()) continue;
      is_said = true;
      CAPTURE(row.what, command.name, outcome.out, outcome.err);
      CHECK_THAT(in_one_line(outcome.out + outcome.err), Catch::Contains(part->second));
    }
    CAPTURE(row.what);
    CHECK(codes == row.codes);
    CHECK(is_said);
  }
}

}  // namespace

TEST_CASE("gate and compare detect edited losses, gradients and bits") { check_rows(kLossRows); }
TEST_CASE("gate and compare detect edited counts, bytes and times") { check_rows(kFigureRows); }
TEST_CASE("gate and compare detect edited points, identities and environments") {
  check_rows(kPointRows);
}

}  // namespace rematch::testing
