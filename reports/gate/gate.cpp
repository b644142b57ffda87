#include "reports/gate/gate.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "reports/compare/differences.h"
#include "reports/gate/check_record.h"
#include "reports/gate/limit_checks.h"
#include "reports/gate/loss_arms.h"
#include "reports/gate/loss_checks.h"

namespace rematch {
namespace {

// Gates one report. run() makes all checks.
class Gate {
 public:
  Gate(const Report& report, const Report* reference, const GateSettings& settings)
      : report_(report),
        reference_(reference),
        settings_(settings),
        origins_(report),
        reference_origins_(reference != nullptr ? *reference : report),
        environments_(reference != nullptr ? *reference : report, report),
        arms_(report),
        reference_arms_(reference != nullptr ? *reference : report) {
    for (const Expectation& expectation : settings.expectations) {
      if (is_unknown_op(expectation.name, report, reference)) unknown_ops_.insert(expectation.name);
    }
    if (reference == nullptr) return;
    for (const PointRecord& point : reference->points) {
      by_training_[training_label(point.identity, point.policy)].push_back(&point);
    }
  }

  GateRecord run() {
    for (const PointRecord& point : report_.points) {
      if (is_wanted(point)) gate_point(point);
    }
    if (reference_ != nullptr) {
      list_missing();
      record_.environment_differences = environments_.all();
    }
    for (const GatedPoint& point : record_.points) {
      record_.verdict = std::max(record_.verdict, point.verdict);
    }
    if (record_.points.empty()) record_.verdict = GateVerdict::kInconclusive;
    return std::move(record_);
  }

 private:
  bool is_wanted(const PointRecord& point) const;
  bool is_asked_for(const PointRecord& point) const;
  bool needs_reference() const;
  const PointRecord* reference_of(const PointRecord& point) const;
  std::string reference_name(const PointRecord& point) const;
  void gate_point(const PointRecord& point);
  void list_missing();
  bool is_gated(const std::string& policy) const;
  void add_status(GatedPoint& gated, const PointRecord& point) const;
  void add_limits(GatedPoint& gated, const PointRecord& point) const;
  void add_against(GatedPoint& gated, const PointRecord& point, const PointRecord& reference);
  void add_loss(GatedPoint& gated, const PointRecord& point, const PointRecord& reference);
  bool is_of_one_environment(const PointRecord& point, const PointRecord& reference) const {
    return origins_.fingerprint_of(point) == reference_origins_.fingerprint_of(reference);
  }
  bool comparable(const PointRecord& point, const PointRecord& reference) {
    return settings_.allow_mixed || environments_.between(reference, point).empty();
  }
  Measured measured(const PointRecord& point, const PointRecord& reference) {
    if (!comparable(point, reference)) return Measured::kApart;
    if (&report_ != reference_) return Measured::kInOneEnvironment;
    return origins_.is_merged() ? Measured::kInMergedReport : Measured::kInOneReport;
  }

  const Report& report_;
  const Report* reference_;
  const GateSettings& settings_;
  std::unordered_map<std::string, std::vector<const PointRecord*>> by_training_;
  PointOrigins origins_;
  PointOrigins reference_origins_;
  PointEnvironments environments_;
  LossArms arms_;
  LossArms reference_arms_;
  // ops that --expect names, but that are unknown to the reports and to this build
  std::set<std::string> unknown_ops_;
  // training_label() of each reference point that was compared with a point of another policy
  std::unordered_set<std::string> stand_ins_;
  GateRecord record_;
};

bool Gate::is_wanted(const PointRecord& point) const {
  if (&report_ == reference_ && settings_.policies.empty() && report_.points.size() > 1 &&
      point.policy == reference_name(point)) {
    return false;  // otherwise the point would be compared with itself
  }
  return is_asked_for(point);
}

bool Gate::is_asked_for(const PointRecord& point) const {
  return settings_.policies.empty() ||
         std::find(settings_.policies.begin(), settings_.policies.end(), point.policy) !=
             settings_.policies.end();
}

bool Gate::needs_reference() const {
  return settings_.loss || settings_.max_loss_difference || settings_.max_slowdown;
}

// Returns the name of the point's reference policy. If the reference is another report,
// reference_of() looks for the point's own policy first.
std::string Gate::reference_name(const PointRecord& point) const {
  if (settings_.reference_policy) return *settings_.reference_policy;
  return point.parity ? point.parity->reference : "none";
}

const PointRecord* Gate::reference_of(const PointRecord& point) const {
  const auto find = [&](const std::string& policy, bool any_schedule) -> const PointRecord* {
    const auto group = by_training_.find(training_label(point.identity, policy));
    if (group == by_training_.end()) return nullptr;
    const PointRecord* found = nullptr;
    for (const PointRecord* other : group->second) {
      if (!any_schedule && other->identity.schedule != point.identity.schedule) continue;
      if (is_of_one_environment(point, *other)) return other;
      if (found == nullptr) found = other;
    }
    return found;
  };
  if (!settings_.reference_policy && &report_ != reference_) {
    if (const PointRecord* same = find(point.policy, false)) return same;
  }
  const std::string name = reference_name(point);
  const PointRecord* same_schedule = find(name, false);
  return same_schedule != nullptr ? same_schedule : find(name, true);
}

GatedPoint describe(const PointRecord& point) {
  GatedPoint gated;
  gated.key = point_key(point.identity);
  gated.model = point.identity.model;
  gated.policy = point.policy;
  gated.schedule = point.identity.schedule;
  gated.device = point.device;
  return gated;
}

void Gate::gate_point(const PointRecord& point) {
  GatedPoint gated = describe(point);
  add_status(gated, point);
  add_limits(gated, point);
  if (needs_reference()) {
    const PointRecord* reference = reference_ != nullptr ? reference_of(point) : nullptr;
    if (reference == nullptr) {
      gated.checks.push_back(decided("reference", GateVerdict::kInconclusive,
                                     "the reference has no point of policy " +
                                         reference_name(point) +
                                         " with this model, data, seed, dtype and optimizer"));
    } else {
      if (reference->policy != point.policy) {
        stand_ins_.insert(training_label(reference->identity, reference->policy));
      }
      gated.reference_policy = reference->policy;
      gated.reference_key = point_key(reference->identity);
      if (reference->status == PointStatus::kOk) {
        add_against(gated, point, *reference);
      } else {
        gated.checks.push_back(
            decided("reference", GateVerdict::kInconclusive,
                    "the reference's own point " + end_of(reference->status, reference->reason)));
      }
    }
  }
  for (const CheckRecord& check : gated.checks)
    gated.verdict = std::max(gated.verdict, check.verdict);
  record_.points.push_back(std::move(gated));
}

bool Gate::is_gated(const std::string& policy) const {
  return std::any_of(record_.points.begin(), record_.points.end(),
                     [&](const GatedPoint& point) { return point.policy == policy; });
}

// Lists points that the reference finished and that the report lacks. Skips reference points that
// were compared with points of another policy. If no check needs a reference, or if
// --reference-policy is given, lists only requested policies that occur nowhere in the report.
void Gate::list_missing() {
  if (&report_ == reference_) return;
  const bool is_measure = needs_reference() && !settings_.reference_policy;
  if (!is_measure && settings_.policies.empty()) return;
  const auto with_schedule = [](std::string label, const PointRecord& point) {
    return label.append("|").append(to_string(point.identity.schedule));
  };
  std::unordered_set<std::string> there;
  for (const PointRecord& point : report_.points) {
    there.insert(with_schedule(training_label(point.identity, point.policy), point));
  }
  for (const PointRecord& point : reference_->points) {
    const std::string label = training_label(point.identity, point.policy);
    if (point.status != PointStatus::kOk || !is_asked_for(point) || stand_ins_.contains(label) ||
        there.contains(with_schedule(label, point)) || (!is_measure && is_gated(point.policy))) {
      continue;
    }
    GatedPoint gated = describe(point);
    gated.reference_policy = point.policy;
    gated.reference_key = gated.key;
    gated.verdict = GateVerdict::kInconclusive;
    gated.checks.push_back(
        decided("missing", gated.verdict,
                "the report lacks this point of the reference; run it, or select the "
                "gated policies with --policy"));
    record_.points.push_back(std::move(gated));
  }
}

void Gate::add_status(GatedPoint& gated, const PointRecord& point) const {
  if (point.status != PointStatus::kOk) {
    gated.checks.push_back(
        decided("status", GateVerdict::kFail, end_of(point.status, point.reason)));
  }
  if (auto check = check_finite(arms_.arm_of(point))) gated.checks.push_back(*std::move(check));
  if (auto check = check_prediction(point)) gated.checks.push_back(*std::move(check));
}

void Gate::add_limits(GatedPoint& gated, const PointRecord& point) const {
  if (settings_.max_peak) gated.checks.push_back(check_peak(point, *settings_.max_peak));
  for (const Expectation& expectation : settings_.expectations) {
    const bool is_vain = expectation.executed == 0 && unknown_ops_.contains(expectation.name);
    gated.checks.push_back(is_vain ? refuse_unknown_op(expectation, report_)
                                   : check_expectation(point, expectation));
  }
}

void Gate::add_against(GatedPoint& gated, const PointRecord& point, const PointRecord& reference) {
  if (settings_.loss || settings_.max_loss_difference) add_loss(gated, point, reference);
  if (settings_.max_slowdown) {
    gated.checks.push_back(
        check_slowdown(point, reference, *settings_.max_slowdown, measured(point, reference)));
  }
}

// If the environments differ, different bits prove nothing. Equal bits prove nothing either,
// because they may be equal by chance.
void guard_environment(CheckRecord& check, const std::vector<NamedDifference>& differences) {
  if (differences.empty() || check.tier == "T2") return;
  check.verdict = GateVerdict::kInconclusive;
  check.reason += "; measured in different environments: " + describe(differences) +
                  "; add --allow-mixed to decide anyway";
}

void Gate::add_loss(GatedPoint& gated, const PointRecord& point, const PointRecord& reference) {
  const LossArm own = arms_.arm_of(point);
  for (const std::string& end : own.unfinished) {
    gated.checks.push_back(decided("status", GateVerdict::kFail, "a repeat " + end));
  }
  if (auto check = check_gradients(own)) gated.checks.push_back(*std::move(check));
  if (auto check = check_proof(point)) gated.checks.push_back(*std::move(check));
  const LossArm other = reference_arms_.arm_of(reference);
  std::vector<CheckRecord> checks;
  if (settings_.loss == LossTier::kBitwise) {
    CheckRecord& check = checks.emplace_back(check_bitwise(own, other));
    if (is_exact(point)) {
      hold_to_parity(check, point, reference);
    } else {
      decide(check, GateVerdict::kInconclusive,
             "the plan keeps values in " + point.effect->inexact_store +
                 ", which does not preserve all bits; use --loss envelope or --loss equivalence");
    }
  }
  if (settings_.loss == LossTier::kEnvelope) checks.push_back(check_envelope(own, other));
  if (settings_.loss == LossTier::kEquivalence) {
    checks.push_back(
        check_equivalence(own, other, settings_.equivalence_margin, settings_.window_steps));
  }
  if (settings_.max_loss_difference) {
    checks.push_back(check_difference(own, other, *settings_.max_loss_difference));
  }
  for (CheckRecord& check : checks) {
    check.reason += unmatched_steps(own, other);
    if (!settings_.allow_mixed) guard_environment(check, environments_.between(reference, point));
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
