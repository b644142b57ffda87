// The decisions of `rematch gate` on a report or on loss curves, as data: every check of every
// point with its reason. Its JSON schema is rematch.gate/1.1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/base/json_fwd.h"
#include "policies/base/record_fields.h"
#include "reports/record/compare.h"

namespace rematch {

// The verdict of a gate or of one of its checks. If there are several verdicts, the worst verdict
// counts.
enum class GateVerdict : std::uint8_t { kPass, kInconclusive, kFail };
template <>
inline constexpr std::array<std::string_view, 3> kWords<GateVerdict> = {"PASS", "INCONCLUSIVE",
                                                                        "FAIL"};

// How much the reference itself varies. The variation limits what a check can detect.
struct NoiseRecord {
  int reference_runs = 1;                    // a single run says nothing about the noise
  std::optional<double> largest_difference;  // largest difference of the loss between any two runs,
                                             // at any step
  std::string detects;                       // what the check can and cannot detect; may be empty
};

// "not_measured" means that the reference ran only once. If the status is "measured" and the
// difference is null, one of the reference's losses is not finite.
template <RecordOf<NoiseRecord> Noise, class Visit>
void visit_fields(Noise& noise, Visit visit) {
  visit("status", [&] { return noise.reference_runs > 1 ? "measured" : "not_measured"; });
  visit("reference_runs", noise.reference_runs);
  visit({"largest_difference", kWholeIfWhole}, noise.largest_difference);
  visit({"detects", kNullIfEmpty}, noise.detects);
}

void read_value(const JsonField& field, NoiseRecord& noise);

struct CheckRecord {
  std::string check;  // "loss_bitwise", "peak_allocated_bytes", "counts.attention_forward"
  std::string tier;   // "T0", "T1", "T2"; empty if the check has no tier
  GateVerdict verdict = GateVerdict::kPass;
  std::string reason;              // the reason, in one line
  std::optional<double> measured;  // in the unit that the check's name gives, such as bytes
  std::optional<double> limit;
  std::optional<int> first_different_step;  // index of the step; the first step is 0
  std::string first_different_tensor;       // name of a tensor, such as "loss" or
                                            // "blocks.0.attention.wq.weight"
  std::optional<NoiseRecord> noise;         // present only for checks on the loss
};

template <RecordOf<CheckRecord> Check, class Visit>
void visit_fields(Check& check, Visit visit) {
  visit("check", check.check);
  visit({"tier", kNullIfEmpty}, check.tier);
  visit("verdict", check.verdict);
  visit("reason", check.reason);
  visit({"measured", kWholeIfWhole}, check.measured);
  visit({"limit", kWholeIfWhole}, check.limit);
  visit("first_different_step", check.first_different_step);
  visit({"first_different_tensor", kNullIfEmpty}, check.first_different_tensor);
  visit("noise", check.noise);
}

struct GatedPoint {
  std::string key;
  std::string model;
  std::string policy;
  Schedule schedule = Schedule::kOnDemand;
  std::string device;
  std::string reference_policy;  // empty without a reference
  std::string reference_key;
  GateVerdict verdict = GateVerdict::kPass;
  std::vector<CheckRecord> checks;
};

template <RecordOf<GatedPoint> Point, class Visit>
void visit_fields(Point& point, Visit visit) {
  visit("key", point.key);
  visit("model", point.model);
  visit("policy", point.policy);
  visit("schedule", point.schedule);
  visit("device", point.device);
  visit({"reference_policy", kNullIfEmpty}, point.reference_policy);
  visit({"reference_key", kNullIfEmpty}, point.reference_key);
  visit("verdict", point.verdict);
  visit("checks", point.checks);
}

// Loss curves that were gated instead of a report.
struct CurvesRecord {
  std::vector<std::string> losses;  // files
  std::vector<std::string> reference_losses;
  std::int64_t compared_steps = 0;  // number of compared steps of the first reference
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  std::vector<CheckRecord> checks;
};

template <RecordOf<CurvesRecord> Curves, class Visit>
void visit_fields(Curves& curves, Visit visit) {
  visit("losses", curves.losses);
  visit("reference_losses", curves.reference_losses);
  visit("compared_steps", curves.compared_steps);
  visit("first_step", curves.first_step);
  visit("last_step", curves.last_step);
  visit("checks", curves.checks);
}

struct GateRecord {
  // for loss curves: the first file's name, and the file's hash as the fingerprint
  SourceRecord report;
  std::optional<SourceRecord> reference;
  std::vector<NamedDifference> environment_differences;
  GateVerdict verdict = GateVerdict::kPass;
  std::vector<GatedPoint> points;
  std::optional<CurvesRecord> curves;
};

template <RecordOf<GateRecord> Record, class Visit>
void visit_fields(Record& record, Visit visit) {
  visit("report", record.report);
  visit("reference", record.reference);
  visit("environment_differences", record.environment_differences);
  visit("verdict", record.verdict);
  visit("points", record.points);
  visit({"curves", kLater}, record.curves);
}

Json gate_to_json(const GateRecord& record);
GateRecord gate_from_json(const Json& json);  // throws FormatError

}  // namespace rematch
