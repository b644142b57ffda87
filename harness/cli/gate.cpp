#include "reports/gate/gate.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>

#include "harness/cli/commands.h"
#include "harness/cli/files/input_files.h"
#include "harness/cli/files/output.h"
#include "harness/cli/flags/flag_values.h"
#include "harness/cli/flags/shared_flags.h"
#include "harness/cli/gate_curves.h"
#include "policies/base/json.h"
#include "policies/base/text.h"
#include "policies/catalogue/catalogue.h"
#include "policies/trace/by_phase.h"
#include "policies/trace/collective.h"
#include "policies/trace/op_class.h"
#include "reports/render/tables/gate_table.h"

namespace rematch {
namespace {

struct GateFlags : RecordFlags {
  explicit GateFlags(CLI::App& app) : curves(app) {
    app.add_option("report", report, "Report to judge; or give --losses");
    app.add_option("--reference", reference, "Report to compare with; may be the same file");
    app.add_option("--reference-policy", reference_policy,
                   "Policy that every point is compared with (default: the same policy in the "
                   "reference; if both reports are one file, its reference policy)");
    app.add_option("--policy", policies,
                   "Gate only points of these policies, separated by commas (default: all)");
    app.add_option(
        "--loss", loss,
        "Test of the losses: bitwise, envelope or equivalence (default: envelope with --losses, "
        "else none)");
    app.add_option("--max-loss-difference", max_loss_difference,
                   "Largest allowed difference of the loss at any step, in units of the loss");
    app.add_option("--margin", margin,
                   "With equivalence: largest allowed difference of mean losses, in "
                   "units of the loss (default: 4 standard deviations of the mean loss)");
    app.add_option("--window", window,
                   "With equivalence: number of final steps over which a run's mean loss is "
                   "computed (default: the second half of the steps)")
        ->default_str("")
        ->check(CLI::Range(1, kMaxSteps));
    app.add_option("--max-peak-bytes", max_peak,
                   "Largest allowed peak of allocated bytes, such as 24GiB");
    app.add_option("--max-slowdown", max_slowdown,
                   "Largest allowed step time relative to the reference's, such as 1.1 or 10%");
    app.add_option("--expect", expect,
                   "Required numbers of executed ops over all steps, such as "
                   "attention_forward=600,recompute.matmul=0");
    app.add_flag("--allow-mixed", allow_mixed, "Decide even if the environments differ");
    add_record_flags(app, schema_name(kGateSchema));
  }
  CurveFlags curves;
  std::string report;
  std::string reference;
  std::string reference_policy;
  std::vector<std::string> policies;
  std::string loss;
  std::string max_loss_difference;
  std::string margin;
  int window = 0;
  std::string max_peak;
  std::string max_slowdown;
  std::vector<std::string> expect;
  bool allow_mixed = false;
};

void require_op_name(const std::string& name) {
  // Names in the dispatcher's form, such as aten::mm, are not checked.
  if (name.find("::") != std::string::npos) return;
  const std::size_t dot = name.find('.');
  const bool has_phase = dot != std::string::npos && from_string<Phase>(name.substr(0, dot));
  const std::string op = has_phase ? name.substr(dot + 1) : name;
  if (from_string<OpClass>(op) || from_string<CollectiveKind>(op)) return;
  std::vector<std::string_view> known = all_words<OpClass>();
  known.insert(known.end(), kWords<CollectiveKind>.begin(), kWords<CollectiveKind>.end());
  throw UsageError(
      "--expect '" + name + "' is not an op class or a kind of collective" +
      did_you_mean(op, known) +
      "; write a single op as aten::mm; a phase may precede it, as in recompute.matmul");
}

Expectation parse_expectation(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  Expectation expectation;
  const auto count = equals == std::string::npos
                         ? std::nullopt
                         : parse_number<std::int64_t>(std::string_view(text).substr(equals + 1));
  if (!count || *count < 0) {
    throw UsageError("--expect '" + text +
                     "' is not of the form NAME=COUNT, such as attention_forward=600");
  }
  expectation.executed = *count;
  expectation.name = text.substr(0, equals);
  require_op_name(expectation.name);
  return expectation;
}

double parse_slowdown(const std::string& text) {
  return text.ends_with('%') ? 1 + parse_percent(text) : parse_positive(text);
}

GateSettings settings_of(const GateFlags& flags) {
  GateSettings settings;
  if (!flags.loss.empty()) settings.loss = parse_word<LossTier>("--loss", flags.loss);
  if (!flags.max_loss_difference.empty()) {
    const std::string& text = flags.max_loss_difference;
    settings.max_loss_difference = text == "0" ? 0 : parse_positive(text);
  }
  if (!flags.margin.empty()) settings.equivalence_margin = parse_positive(flags.margin);
  if (flags.window > 0) settings.window_steps = flags.window;
  if (!flags.max_peak.empty()) settings.max_peak = parse_bytes(flags.max_peak);
  if (!flags.max_slowdown.empty()) settings.max_slowdown = parse_slowdown(flags.max_slowdown);
  for (const std::string& list : flags.expect) {
    for (const std::string& part : parse_list(list)) {
      settings.expectations.push_back(parse_expectation(part));
    }
  }
  if (!flags.reference_policy.empty()) settings.reference_policy = flags.reference_policy;
  settings.allow_mixed = flags.allow_mixed;
  return settings;
}

void require_use(const GateFlags& flags, const GateSettings& settings) {
  const bool equivalence = settings.loss == LossTier::kEquivalence;
  if (!equivalence && (settings.equivalence_margin || settings.window_steps)) {
    throw UsageError("--margin and --window require --loss equivalence");
  }
  flags.require_one_format();
  if (flags.curves.are_given()) return;
  if (flags.report.empty()) {
    throw UsageError("give a REPORT to judge, or loss curves with --losses; see --help");
  }
  const bool against = settings.loss || settings.max_loss_difference || settings.max_slowdown;
  if (against && flags.reference.empty()) {
    throw UsageError(
        "--loss, --max-loss-difference and --max-slowdown need --reference REPORT; it may be the "
        "report itself");
  }
  if (!against && !settings.max_peak && settings.expectations.empty()) {
    throw UsageError(
        "nothing to gate on: give --loss, --max-peak-bytes, --max-slowdown or --expect");
  }
}

// Returns a policy in the spelling that reports use. For example `nth_last( 2 )` becomes
// nth_last(2).
std::string canonical_policy(const std::string& text) {
  const auto parsed = parse_policy(text);
  const auto* policy = std::get_if<Policy>(&parsed);
  return policy != nullptr ? policy->name : text;
}

// Returns the policies that a flag names. Throws UsageError unless each policy occurs in at least
// one of `reports`.
std::vector<std::string> require_policies(const std::string& flag,
                                          const std::vector<std::string>& lists,
                                          const std::vector<const Report*>& reports) {
  std::set<std::string> known;
  for (const Report* report : reports) {
    for (const PointRecord& point : report->points) known.insert(point.policy);
  }
  std::vector<std::string> policies;
  for (const std::string& list : lists) {
    for (const std::string& text : parse_list(list)) {
      const std::string name = known.contains(text) ? text : canonical_policy(text);
      if (!known.contains(name)) {
        throw UsageError(flag + " '" + text + "' does not occur in the report" +
                         did_you_mean(text, std::vector<std::string>(known.begin(), known.end())));
      }
      policies.push_back(name);
    }
  }
  return policies;
}

std::size_t most_steps(const std::vector<const Report*>& reports) {
  std::size_t most = 0;
  for (const Report* report : reports) {
    for (const PointRecord& point : report->points) most = std::max(most, point.steps.size());
  }
  return most;
}

GateRecord gate_with(const GateFlags& flags, GateSettings settings, const Report& report,
                     const Report* reference) {
  std::vector<const Report*> reports = {&report};
  if (reference != nullptr && reference != &report) reports.push_back(reference);
  settings.policies = require_policies("--policy", flags.policies, reports);
  if (settings.reference_policy && reference != nullptr) {
    settings.reference_policy =
        require_policies("--reference-policy", {*settings.reference_policy}, {reference}).at(0);
  }
  // Points may have different numbers of steps. Rejects a window that is longer than every point.
  const std::size_t most = most_steps(reports);
  if (most > 0) require_window(settings, "the runs have", most);
  return gate_report(report, flags.report, reference, flags.reference, settings);
}

std::variant<GateRecord, NoCommonSteps> decide(const GateFlags& flags,
                                               const GateSettings& settings) {
  if (flags.curves.are_given()) return gate_curve_files(flags.curves, settings);
  if (flags.reference.empty()) {
    return gate_with(flags, settings, read_report(flags.report), nullptr);
  }
  if (flags.reference == flags.report) {
    const Report report = read_report(flags.report);
    return gate_with(flags, settings, report, &report);
  }
  const auto [report, reference] = read_two_reports(flags.report, flags.reference);
  return gate_with(flags, settings, report, &reference);
}

ExitCode exit_code_of(GateVerdict verdict) {
  constexpr std::array kCodes = {ExitCode::kOk, ExitCode::kInconclusive, ExitCode::kGateFailed};
  return kCodes.at(static_cast<std::size_t>(verdict));
}

std::vector<std::string> inputs_of(const GateFlags& flags) {
  std::vector<std::string> inputs = flags.curves.losses;
  inputs.insert(inputs.end(), flags.curves.references.begin(), flags.curves.references.end());
  inputs.push_back(flags.report);
  inputs.push_back(flags.reference);
  return inputs;
}

ExitCode run(const GateFlags& flags) {
  const GateSettings settings = settings_of(flags);
  require_curve_flags(flags.curves, settings);
  require_use(flags, settings);
  const OutputFile output(flags.request({file_kind::kGate}, inputs_of(flags)));
  const auto decision = decide(flags, settings);
  if (const auto* apart = std::get_if<NoCommonSteps>(&decision)) {
    return end_with(ExitCode::kFingerprintMismatch, apart->message);
  }
  const GateRecord& record = std::get<GateRecord>(decision);
  flags.show_record(
      [&] { return gate_to_json(record); },
      [&](TableFormat format) { return render_gate(record, format, terminal_columns()); });
  return exit_code_of(record.verdict);
}

}  // namespace

void add_gate(CLI::App& app, Action& action) {
  add_command<GateFlags>(
      app, action, "gate",
      "PASS, FAIL or INCONCLUSIVE for CI: loss parity, peak, slowdown, executed ops", run,
      "Tiers of --loss: bitwise compares the bits of loss, gradient norm, parameters and\n"
      "generators at every step. envelope allows twice the largest difference between two runs\n"
      "of the reference, and needs at least three such runs; rematch run --repeat-reference makes\n"
      "four more. If the candidate has four runs too, envelope allows 2.4 times that difference.\n"
      "equivalence tests mean losses, with four runs on both sides. With --losses a test passes\n"
      "only if the reference's loss falls by more than its noise and more than the test allows.\n"
      "Otherwise a run that learns nothing would pass.\n"
      "Examples:\n"
      "  rematch gate report.json --reference report.json --loss bitwise\n"
      "  rematch gate new.json --reference old.json --loss envelope --max-slowdown 5%\n"
      "  rematch gate new.json --reference old.json --max-loss-difference 0.001\n"
      "  rematch gate report.json --policy attn_only --expect attention_forward=600 \\\n"
      "      --max-peak-bytes 24GiB\n"
      "  rematch gate --losses mine.csv --reference-losses base*.csv     # any trainer's curves\n"
      "  rematch gate --losses run*.jsonl --reference-losses base*.csv --loss equivalence\n"
      "  rematch gate --losses mine.csv --reference-losses base.csv --loss-column Value \\\n"
      "      --max-loss-difference 0.02\n"
      "Exit codes: 0 PASS, 2 a file or flag cannot be used, 3 FAIL, 4 INCONCLUSIVE, 6 loss curves\n"
      "without a step in common.");
}

}  // namespace rematch
