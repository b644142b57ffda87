// Judges a report as PASS, FAIL or INCONCLUSIVE, for CI. Checks loss parity in three tiers, and
// limits on peak, time and executed ops. Fails if a point ended in an error. Pure: no file, no
// clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/base/words.h"
#include "reports/record/gate.h"
#include "reports/record/report.h"

namespace rematch {

enum class LossTier : std::uint8_t { kBitwise, kEnvelope, kEquivalence };
template <>
inline constexpr std::array<std::string_view, 3> kWords<LossTier> = {"bitwise", "envelope",
                                                                     "equivalence"};

// Expected numbers of executed ops over all counted steps. Examples of keys are
// "attention_forward", "recompute.matmul" and "aten::mm".
struct Expectation {
  std::string name;
  std::int64_t executed = 0;
};

struct GateSettings {
  std::optional<LossTier> loss;
  std::optional<double> max_loss_difference;
  std::optional<double> equivalence_margin;  // tier T2: the requested margin, which noise may widen
  std::optional<int> window_steps;  // tier T2: number of last steps that a run's mean loss covers
  std::optional<Bytes> max_peak;
  std::optional<double> max_slowdown;  // for example, 1.1 allows a step to be ten percent slower
  std::vector<Expectation> expectations;
  std::vector<std::string> policies;  // checks only these policies; if empty, all policies
  std::optional<std::string> reference_policy;  // compares every point with this policy
  bool allow_mixed = false;                     // gives a verdict even if the environments differ
};

// If `reference` is null, only limits that need no reference are allowed. `reference` may be
// `report` itself. Points are then compared with the policy that the report names as its reference.
GateRecord gate_report(const Report& report, const std::string& report_file,
                       const Report* reference, const std::string& reference_file,
                       const GateSettings& settings);

}  // namespace rematch
