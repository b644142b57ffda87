#include "reports/gate/limit_checks.h"

#include <algorithm>
#include <set>

#include "policies/base/format.h"
#include "policies/base/text.h"
#include "policies/trace/by_phase.h"
#include "policies/trace/collective.h"
#include "policies/trace/op_class.h"
#include "reports/gate/check_record.h"
#include "reports/record/amount_of.h"
#include "reports/record/unplanned_counts.h"
#include "reports/statistics/statistics.h"

namespace rematch {
namespace {

// The parts of a name such as "recompute.aten::mm". A name without a phase stands for the sum over
// all phases.
struct ExpectedName {
  std::optional<Phase> phase;
  std::string op;
};

ExpectedName expected_name(const std::string& name) {
  const std::size_t dot = name.find('.');
  const std::optional<Phase> phase = from_string<Phase>(std::string_view(name).substr(0, dot));
  if (dot == std::string::npos || !phase) return {std::nullopt, name};
  return {phase, name.substr(dot + 1)};
}

// Counts the ops that start collectives of this kind. Ops that wait for a collective do not count.
std::int64_t executed_of_kind(const std::map<std::string, std::int64_t>& ops, CollectiveKind kind) {
  std::int64_t sum = 0;
  for (const auto& [op, executed] : ops) {
    if (collective_kind(op) == kind) sum += executed;
  }
  return sum;
}

std::int64_t executed(const CountsRecord& counts, const std::string& name) {
  const auto [phase, op] = expected_name(name);
  const std::optional<OpClass> op_class = from_string<OpClass>(op);
  const std::optional<CollectiveKind> kind = from_string<CollectiveKind>(op);
  std::int64_t sum = 0;
  for (const Phase each : kPhases) {
    if (phase && each != *phase) continue;
    const auto index = static_cast<std::size_t>(each);
    if (op_class) {
      sum += amount_of(counts.by_class.at(index), *op_class);
    } else if (kind) {
      sum += executed_of_kind(counts.by_op.at(index), *kind);
    } else {
      sum += amount_of(counts.by_op.at(index), op);
    }
  }
  return sum;
}

bool runs(const Report& report, const std::string& op) {
  return std::any_of(report.points.begin(), report.points.end(), [&](const PointRecord& point) {
    return point.counts && std::any_of(point.counts->by_op.begin(), point.counts->by_op.end(),
                                       [&](const auto& ops) { return ops.contains(op); });
  });
}

std::optional<std::string> nearest_op(const Report& report, const std::string& op) {
  std::set<std::string_view> ops;
  for (const PointRecord& point : report.points) {
    if (!point.counts) continue;
    for (const auto& phase : point.counts->by_op) {
      for (const auto& [name, executed] : phase) ops.insert(name);
    }
  }
  return nearest_name(op, {ops.begin(), ops.end()});
}

Rounds rounds_of(const PointRecord& point) {
  Rounds rounds;
  if (!point.time) return rounds;
  for (const auto& samples : point.time->samples) {
    std::vector<double> round;
    for (const auto sample : samples) {
      if (sample.count() > 0) round.push_back(static_cast<double>(sample.count()));
    }
    if (!round.empty()) rounds.push_back(std::move(round));
  }
  return rounds;
}

// True if the rounds of the two points alternated. In this case, both points have the same
// reference and the same start times. Reports of earlier builds contain no start times.
bool took_turns(const PointRecord& point, const PointRecord& reference, Measured measured) {
  const bool is_one_report = measured == Measured::kInOneReport;
  if (!is_one_report && measured != Measured::kInMergedReport) return false;
  if (!point.time || !point.time->ratio || !reference.time || !reference.time->ratio) return false;
  return point.time->ratio->reference == reference.policy &&
         reference.time->ratio->reference == reference.policy &&
         point.time->starts == reference.time->starts &&
         (is_one_report || !point.time->starts.empty());
}

std::optional<Estimate> slowdown(const PointRecord& point, const PointRecord& reference,
                                 Measured measured) {
  if (&point == &reference) return Estimate{1, Interval{1, 1}};
  const bool by_turns = took_turns(point, reference, measured);
  const Rounds above = rounds_of(point);
  const Rounds below = rounds_of(reference);
  if (above.empty() || below.empty()) return std::nullopt;
  // Pairs rounds only if every round has a time, because one missing time would shift all later
  // pairs.
  const bool has_pairs = by_turns && above.size() == point.time->samples.size() &&
                         below.size() == reference.time->samples.size() &&
                         above.size() == below.size();
  return has_pairs ? paired_ratio(above, below) : ratio_of_medians(above, below);
}

}  // namespace

CheckRecord check_peak(const PointRecord& point, Bytes limit) {
  const std::string name = "peak_allocated_bytes";
  if (!point.memory || !point.memory->peak_allocated) {
    return decided(name, GateVerdict::kInconclusive, "the peak was not measured");
  }
  const Bytes peak = *point.memory->peak_allocated;
  const bool has_several = point.ranks && point.ranks->ranks.size() > 1;
  const std::string whose =
      has_several ? " on rank " + std::to_string(point.ranks->worst_rank) + ", the highest" : "";
  CheckRecord check = decided(name, peak <= limit ? GateVerdict::kPass : GateVerdict::kFail,
                              format_bytes(peak) + whose + "; allowed: " + format_bytes(limit));
  check.measured = static_cast<double>(peak.count);
  check.limit = static_cast<double>(limit.count);
  return check;
}

CheckRecord check_expectation(const PointRecord& point, const Expectation& expectation) {
  const std::string name = "counts." + expectation.name;
  if (!point.counts) return decided(name, GateVerdict::kInconclusive, "ops were not counted");
  if (from_string<CollectiveKind>(expected_name(expectation.name).op) && !point.ranks) {
    return decided(name, GateVerdict::kInconclusive, "the point ran on one rank");
  }
  const std::int64_t found = executed(*point.counts, expectation.name);
  CheckRecord check = decided(
      name, found == expectation.executed ? GateVerdict::kPass : GateVerdict::kFail,
      "executed " + std::to_string(found) + " in " + std::to_string(point.counts->counted_steps) +
          " steps; expected " + std::to_string(expectation.executed));
  check.measured = static_cast<double>(found);
  check.limit = static_cast<double>(expectation.executed);
  return check;
}

bool is_unknown_op(const std::string& name, const Report& report, const Report* reference) {
  const std::string op = expected_name(name).op;
  if (from_string<OpClass>(op) || from_string<CollectiveKind>(op) ||
      op_class_of(op) != OpClass::kOther || runs(report, op)) {
    return false;
  }
  return reference == nullptr || !runs(*reference, op);
}

CheckRecord refuse_unknown_op(const Expectation& expectation, const Report& report) {
  const std::string op = expected_name(expectation.name).op;
  const auto nearest = nearest_op(report, op);
  return decided("counts." + expectation.name, GateVerdict::kInconclusive,
                 "op " + in_quotes(op) +
                     " is neither in the report nor known to this build; expecting " +
                     std::to_string(expectation.executed) + " executions would prove nothing" +
                     (nearest ? "; did you mean '" + *nearest + "'?" : ""));
}

CheckRecord check_slowdown(const PointRecord& point, const PointRecord& reference, double limit,
                           Measured measured) {
  const std::string name = "step_time_ratio";
  const std::optional<Estimate> ratio = slowdown(point, reference, measured);
  if (!ratio) return decided(name, GateVerdict::kInconclusive, "times were not measured");
  std::string reason = number_text(ratio->value);
  if (ratio->interval) {
    reason +=
        " [" + number_text(ratio->interval->low) + " " + number_text(ratio->interval->high) + "]";
  }
  reason += " of " + reference.policy + "'s step time; allowed: " + number_text(limit);
  GateVerdict verdict = GateVerdict::kInconclusive;
  if (measured == Measured::kApart) {
    reason += "; measured in different environments";
  } else if (!ratio->interval) {
    reason += "; one round does not show the noise";
  } else if (ratio->interval->low > limit) {
    verdict = GateVerdict::kFail;
  } else if (ratio->interval->high <= limit) {
    verdict = GateVerdict::kPass;
  } else {
    reason += "; too noisy to decide";
  }
  CheckRecord check = decided(name, verdict, reason);
  check.measured = ratio->value;
  check.limit = limit;
  return check;
}

std::optional<CheckRecord> check_prediction(const PointRecord& point) {
  if (point.status != PointStatus::kOk) return std::nullopt;
  const std::optional<std::string> problem = unplanned_counts(point);
  if (!problem || problem->empty()) return std::nullopt;
  return decided("predicted_counts", GateVerdict::kFail, *problem);
}

}  // namespace rematch
