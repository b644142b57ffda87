#include "reports/gate/gate_curves.h"

#include <algorithm>
#include <optional>

#include "reports/gate/check_record.h"
#include "reports/gate/loss_arms.h"
#include "reports/gate/loss_checks.h"
#include "reports/gate/loss_fall.h"

namespace rematch {
namespace {

const LossPoint* find_step(const RunLosses& curve, std::int64_t step) {
  const auto found = std::lower_bound(
      curve.points.begin(), curve.points.end(), step,
      [](const LossPoint& point, std::int64_t wanted) { return point.step < wanted; });
  return found != curve.points.end() && found->step == step ? &*found : nullptr;
}

// The steps that the other curve contains but this curve lacks.
struct MissingSteps {
  std::size_t count = 0;
  const LossPoint* first = nullptr;  // the other curve's point at the first missing step
};

MissingSteps missing_steps(const RunLosses& curve, const RunLosses& other) {
  MissingSteps missing;
  for (const LossPoint& point : other.points) {
    if (find_step(curve, point.step) != nullptr) continue;
    if (missing.count++ == 0) missing.first = &point;
  }
  return missing;
}

std::string missing_steps_text(const MissingSteps& missing, const RunLosses& curve,
                               const RunLosses& other) {
  const std::int64_t step = missing.first->step;
  const auto empty = std::find_if(curve.empty.begin(), curve.empty.end(),
                                  [step](const EmptyLoss& one) { return one.step == step; });
  const std::string where = empty == curve.empty.end()
                                ? ""
                                : " (line " + std::to_string(empty->line) + " is empty there)";
  return curve.file + " has no loss at step " + std::to_string(step) + where + ", but " +
         place_of(other, *missing.first) + " has one; " + curve.file + " lacks " +
         std::to_string(missing.count) + " of " + std::to_string(other.points.size()) + " steps";
}

// Gates loss curves. run() makes all checks.
class CurveGate {
 public:
  CurveGate(const std::vector<RunLosses>& candidates, const std::vector<RunLosses>& references,
            const GateSettings& settings)
      : candidates_(candidates), references_(references), settings_(settings) {}

  std::variant<GateRecord, NoCommonSteps> run() {
    for (const std::vector<RunLosses>* side : {&candidates_, &references_}) {
      for (const RunLosses& curve : *side) {
        if (const auto apart = without_common_step(curve)) return *apart;
      }
    }
    describe_curves();
    add_not_finite();
    add_missing_steps();
    if (is_comparable_) add_tiers();
    for (const CheckRecord& check : curves_.checks) {
      record_.verdict = std::max(record_.verdict, check.verdict);
    }
    record_.curves = std::move(curves_);
    return std::move(record_);
  }

 private:
  const RunLosses& base() const { return references_.front(); }
  std::optional<NoCommonSteps> without_common_step(const RunLosses& curve) const;
  void describe_curves();
  void add_not_finite();
  void add_missing_steps();
  void add_tiers();
  static void require_fall(CheckRecord& check, const LossArm& reference);
  LossArm arm_of(const std::vector<RunLosses>& curves) const;
  std::string steps_beyond() const;

  const std::vector<RunLosses>& candidates_;
  const std::vector<RunLosses>& references_;
  const GateSettings& settings_;
  // True if every curve has a finite loss at each step of the first reference.
  bool is_comparable_ = true;
  CurvesRecord curves_;
  GateRecord record_;
};

std::optional<NoCommonSteps> CurveGate::without_common_step(const RunLosses& curve) const {
  if (missing_steps(curve, base()).count < base().points.size()) return std::nullopt;
  const auto range = [](const RunLosses& of) {
    return of.file + " has steps " + std::to_string(of.points.front().step) + " to " +
           std::to_string(of.points.back().step);
  };
  return NoCommonSteps{"the curves have no common step: " + range(curve) + ", " + range(base()) +
                       "; count steps from the same start and log them at the same interval"};
}

void CurveGate::describe_curves() {
  record_.report.file = candidates_.front().file;
  record_.report.fingerprint = candidates_.front().sha256;
  SourceRecord& reference = record_.reference.emplace();
  reference.file = base().file;
  reference.fingerprint = base().sha256;
  for (const RunLosses& curve : candidates_) curves_.losses.push_back(curve.file);
  for (const RunLosses& curve : references_) curves_.reference_losses.push_back(curve.file);
  curves_.compared_steps = static_cast<std::int64_t>(base().points.size());
  curves_.first_step = base().points.front().step;
  curves_.last_step = base().points.back().step;
}

void CurveGate::add_not_finite() {
  const auto first_of = [](const RunLosses& curve) {
    return std::find_if(curve.points.begin(), curve.points.end(),
                        [](const LossPoint& point) { return !point.loss; });
  };
  for (const RunLosses& curve : candidates_) {
    const auto point = first_of(curve);
    if (point == curve.points.end()) continue;
    curves_.checks.push_back(decided("loss_finite", GateVerdict::kFail,
                                     place_of(curve, *point) + ": the loss of step " +
                                         std::to_string(point->step) + " is not finite"));
  }
  for (const RunLosses& curve : references_) {
    const auto point = first_of(curve);
    if (point == curve.points.end()) continue;
    is_comparable_ = false;
    curves_.checks.push_back(decided(
        "reference", GateVerdict::kInconclusive,
        place_of(curve, *point) + ": the reference's loss of step " + std::to_string(point->step) +
            " is not finite, so nothing can be compared with that loss"));
  }
}

// All references must have the same steps. A candidate may have more steps.
void CurveGate::add_missing_steps() {
  const auto require = [this](const RunLosses& curve, const RunLosses& other) {
    const MissingSteps missing = missing_steps(curve, other);
    if (missing.count == 0) return;
    is_comparable_ = false;
    curves_.checks.push_back(
        decided("steps", GateVerdict::kInconclusive, missing_steps_text(missing, curve, other)));
  };
  for (const RunLosses& curve : references_) {
    require(curve, base());
    require(base(), curve);
  }
  for (const RunLosses& curve : candidates_) require(curve, base());
}

void CurveGate::add_tiers() {
  const LossArm own = arm_of(candidates_);
  const LossArm other = arm_of(references_);
  const bool asks = settings_.loss || settings_.max_loss_difference;
  if (!asks || settings_.loss == LossTier::kEnvelope) {
    curves_.checks.push_back(check_envelope(own, other));
  }
  if (settings_.loss == LossTier::kEquivalence) {
    curves_.checks.push_back(
        check_equivalence(own, other, settings_.equivalence_margin, settings_.window_steps));
  }
  if (settings_.max_loss_difference) {
    curves_.checks.push_back(check_difference(own, other, *settings_.max_loss_difference));
  }
  const std::string beyond = steps_beyond();
  for (CheckRecord& check : curves_.checks) {
    require_fall(check, other);
    check.reason += beyond;
  }
}

// If the reference's loss does not fall, an equal curve proves nothing, so a passed check becomes
// inconclusive.
void CurveGate::require_fall(CheckRecord& check, const LossArm& reference) {
  if (check.verdict != GateVerdict::kPass) return;
  const std::string why = explain_no_fall(reference, check.limit.value_or(0));
  if (!why.empty()) decide(check, GateVerdict::kInconclusive, check.reason + "; but " + why);
}

// Drops steps that the first reference does not contain, so that all curves have the same step at
// each index.
LossArm CurveGate::arm_of(const std::vector<RunLosses>& curves) const {
  LossArm arm;
  arm.policy = curves.front().file;
  arm.more_runs = "give more curves to --losses and --reference-losses";
  arm.place = [this, &curves](std::size_t run, std::size_t step) {
    const LossPoint* point = find_step(curves[run], base().points[step].step);
    return "step " + std::to_string(point->step) + ", " + place_of(curves[run], *point);
  };
  for (const RunLosses& curve : curves) {
    Steps& steps = arm.runs.emplace_back();
    steps.reserve(base().points.size());
    for (const LossPoint& point : base().points) {
      steps.emplace_back().loss = find_step(curve, point.step)->loss;
    }
  }
  return arm;
}

// Returns text such as "; 3 steps of mine.csv have no counterpart", or "" if every step has one.
std::string CurveGate::steps_beyond() const {
  for (const RunLosses& curve : candidates_) {
    const std::size_t count = missing_steps(base(), curve).count;
    if (count == 0) continue;
    return "; " + std::to_string(count) + (count == 1 ? " step of " : " steps of ") + curve.file +
           (count == 1 ? " has" : " have") + " no counterpart";
  }
  return "";
}

}  // namespace

std::variant<GateRecord, NoCommonSteps> gate_curves(const std::vector<RunLosses>& candidates,
                                                    const std::vector<RunLosses>& references,
                                                    const GateSettings& settings) {
  return CurveGate(candidates, references, settings).run();
}

}  // namespace rematch
