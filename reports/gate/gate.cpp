#include "reports/gate/gate.h"

#include <algorithm>
#include <unordered_map>

#include "reports/compare/environment_difference.h"
#include "reports/gate/limit_checks.h"
#include "reports/gate/loss_checks.h"

namespace rematch {
namespace {

// What must be equal for losses to be: everything but how the plan, the machine and its threads go
// about it; and the policy that is looked for.
std::string training_label(const PointIdentity& identity, const std::string& policy) {
  std::string label = identity.model + "|" + identity.data + "|" + std::to_string(identity.seed) +
                      "|" + identity.dtype + "|" + identity.optimizer;
  for (const auto& [name, value] : identity.dimensions) {
    label.append("|").append(name).append(" ").append(std::to_string(value));
  }
  return label.append("|").append(policy);
}

using Repeats = std::unordered_map<std::string, std::vector<const RepeatRecord*>>;  // by key

// A point and its repeats that finished.
LossArm arm_of(const PointRecord& point, const Repeats& repeats) {
  LossArm arm{{point.steps}, point.policy, point.identity.deterministic};
  const auto found = repeats.find(point_key(point.identity));
  if (found == repeats.end()) return arm;
  for (const RepeatRecord* repeat : found->second) {
    const bool same = repeat->policy == point.policy && repeat->status == PointStatus::kOk;
    if (same) arm.runs.push_back(repeat->steps);
  }
  return arm;
}

// One report under the gate. Reads as its steps, in run().
class Gate {
 public:
  Gate(const Report& report, const Report* reference, const GateSettings& settings)
      : report_(report), reference_(reference), settings_(settings) {
    for (const RepeatRecord& repeat : report.repeats) {
      report_repeats_[repeat.key].push_back(&repeat);
    }
    if (reference == nullptr) return;
    for (const PointRecord& point : reference->points) {
      by_training_[training_label(point.identity, point.policy)].push_back(&point);
    }
    for (const RepeatRecord& repeat : reference->repeats) {
      reference_repeats_[repeat.key].push_back(&repeat);
    }
  }

  GateRecord run() {
    if (reference_ != nullptr) {
      record_.environment_differences =
          environment_differences(reference_->provenance, report_.provenance);
    }
    for (const PointRecord& point : report_.points) {
      if (is_wanted(point)) gate_point(point);
    }
    for (const GatedPoint& point : record_.points) {
      record_.verdict = std::max(record_.verdict, point.verdict);
    }
    if (record_.points.empty()) record_.verdict = GateVerdict::kInconclusive;
    return std::move(record_);
  }

 private:
  bool is_wanted(const PointRecord& point) const;
  bool needs_reference() const;
  const PointRecord* reference_of(const PointRecord& point) const;
  std::string reference_name(const PointRecord& point) const;
  void gate_point(const PointRecord& point);
  void add_status(GatedPoint& gated, const PointRecord& point) const;
  void add_limits(GatedPoint& gated, const PointRecord& point) const;
  void add_against(GatedPoint& gated, const PointRecord& point, const PointRecord& reference) const;
  void add_loss(GatedPoint& gated, const PointRecord& point, const PointRecord& reference) const;
  void guard_environment(CheckRecord& check) const;
  bool comparable() const {
    return record_.environment_differences.empty() || settings_.allow_mixed;
  }

  const Report& report_;
  const Report* reference_;
  const GateSettings& settings_;
  std::unordered_map<std::string, std::vector<const PointRecord*>> by_training_;
  Repeats report_repeats_;
  Repeats reference_repeats_;
  GateRecord record_;
};

bool Gate::is_wanted(const PointRecord& point) const {
  if (&report_ == reference_ && settings_.policies.empty() && report_.points.size() > 1 &&
      point.policy == reference_name(point)) {
    return false;  // it would be held against itself
  }
  return settings_.policies.empty() ||
         std::find(settings_.policies.begin(), settings_.policies.end(), point.policy) !=
             settings_.policies.end();
}

bool Gate::needs_reference() const {
  return settings_.loss || settings_.max_loss_difference || settings_.max_slowdown;
}

// The policy to hold a point against if the same one is not to be.
std::string Gate::reference_name(const PointRecord& point) const {
  if (settings_.reference_policy) return *settings_.reference_policy;
  return point.parity ? point.parity->reference : "none";
}

const PointRecord* Gate::reference_of(const PointRecord& point) const {
  const auto find = [&](const std::string& policy, bool any_schedule) -> const PointRecord* {
    const auto group = by_training_.find(training_label(point.identity, policy));
    if (group == by_training_.end()) return nullptr;
    for (const PointRecord* other : group->second) {
      if (any_schedule || other->identity.schedule == point.identity.schedule) return other;
    }
    return nullptr;
  };
  if (!settings_.reference_policy && &report_ != reference_) {
    if (const PointRecord* same = find(point.policy, false)) return same;
  }
  const std::string name = reference_name(point);
  const PointRecord* same_schedule = find(name, false);
  return same_schedule != nullptr ? same_schedule : find(name, true);
}

CheckRecord failed_check(const std::string& name, GateVerdict verdict, std::string reason) {
  CheckRecord check;
  check.check = name;
  check.verdict = verdict;
  check.reason = std::move(reason);
  return check;
}

void Gate::gate_point(const PointRecord& point) {
  GatedPoint gated;
  gated.key = point_key(point.identity);
  gated.model = point.identity.model;
  gated.policy = point.policy;
  gated.schedule = point.identity.schedule;
  gated.device = point.device;
  add_status(gated, point);
  add_limits(gated, point);
  if (needs_reference()) {
    const PointRecord* reference = reference_ != nullptr ? reference_of(point) : nullptr;
    if (reference == nullptr) {
      gated.checks.push_back(failed_check("reference", GateVerdict::kInconclusive,
                                          "the reference has no point of policy " +
                                              reference_name(point) +
                                              " with this model, data, seed, dtype and optimizer"));
    } else {
      gated.reference_policy = reference->policy;
      gated.reference_key = point_key(reference->identity);
      add_against(gated, point, *reference);
    }
  }
  for (const CheckRecord& check : gated.checks)
    gated.verdict = std::max(gated.verdict, check.verdict);
  record_.points.push_back(std::move(gated));
}

void Gate::add_status(GatedPoint& gated, const PointRecord& point) const {
  if (point.status != PointStatus::kOk) {
    gated.checks.push_back(failed_check("status", GateVerdict::kFail,
                                        "ended " + std::string(to_string(point.status)) +
                                            (point.reason.empty() ? "" : ": " + point.reason)));
  }
  if (auto check = check_finite(arm_of(point, report_repeats_)))
    gated.checks.push_back(*std::move(check));
}

void Gate::add_limits(GatedPoint& gated, const PointRecord& point) const {
  if (settings_.max_peak) gated.checks.push_back(check_peak(point, *settings_.max_peak));
  for (const Expectation& expectation : settings_.expectations) {
    gated.checks.push_back(check_expectation(point, expectation));
  }
}

void Gate::add_against(GatedPoint& gated, const PointRecord& point,
                       const PointRecord& reference) const {
  if (settings_.loss || settings_.max_loss_difference) add_loss(gated, point, reference);
  if (settings_.max_slowdown) {
    gated.checks.push_back(check_slowdown(point, reference, *settings_.max_slowdown, comparable()));
  }
}

// Elsewhere other bits prove nothing; neither do equal ones that someone happened to get.
void Gate::guard_environment(CheckRecord& check) const {
  if (comparable() || settings_.loss == LossTier::kEquivalence) return;
  check.verdict = GateVerdict::kInconclusive;
  check.reason +=
      "; measured in different environments: " + describe(record_.environment_differences) +
      "; --allow-mixed decides all the same";
}

void Gate::add_loss(GatedPoint& gated, const PointRecord& point,
                    const PointRecord& reference) const {
  const LossArm own = arm_of(point, report_repeats_);
  if (auto check = check_gradients(own)) gated.checks.push_back(*std::move(check));
  if (point.parity && point.parity->every_parameter_has_gradient == false) {
    gated.checks.push_back(failed_check("gradients", GateVerdict::kInconclusive,
                                        "no proof: parameter " +
                                            point.parity->first_parameter_without_gradient +
                                            " got no gradient"));
  }
  const LossArm other = arm_of(reference, reference_repeats_);
  std::vector<CheckRecord> checks;
  if (settings_.loss == LossTier::kBitwise) checks.push_back(check_bitwise(own, other));
  if (settings_.loss == LossTier::kEnvelope) checks.push_back(check_envelope(own, other));
  if (settings_.loss == LossTier::kEquivalence) {
    checks.push_back(
        check_equivalence(own, other, settings_.equivalence_margin, settings_.window_steps));
  }
  if (settings_.max_loss_difference) {
    checks.push_back(check_difference(own, other, *settings_.max_loss_difference));
  }
  for (CheckRecord& check : checks) {
    guard_environment(check);
    const auto& parity = point.parity;
    const bool named = parity && parity->reference == reference.policy && &report_ == reference_ &&
                       parity->first_different_step == check.first_different_step;
    if (named && check.first_different_step) {
      check.first_different_tensor = parity->first_different_tensor;
    }
    gated.checks.push_back(std::move(check));
  }
}

}  // namespace

GateRecord gate_report(const Report& report, const std::string& report_file,
                       const Report* reference, const std::string& reference_file,
                       const GateSettings& settings) {
  GateRecord record = Gate(report, reference, settings).run();
  record.report = describe_source(report.provenance, report_file);
  if (reference != nullptr) {
    record.reference = describe_source(reference->provenance, reference_file);
  }
  return record;
}

}  // namespace rematch
