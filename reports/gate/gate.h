// Judges a report as PASS, FAIL or INCONCLUSIVE, for CI: loss parity in three tiers, and plain
// limits on peak, time and executed ops. Fails on errors, and says INCONCLUSIVE if the reports
// cannot decide. Pure: no file, no clock.
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

// Executed ops over all counted steps: "attention_forward", "recompute.matmul", "aten::mm".
struct Expectation {
  std::string name;
  std::int64_t executed = 0;
};

struct GateSettings {
  std::optional<LossTier> loss;
  std::optional<double> max_loss_difference;
  std::optional<double> equivalence_margin;  // T2: smallest margin; noise may widen it
  std::optional<int> window_steps;  // T2: a run's loss is the mean over this many last steps
  std::optional<Bytes> max_peak;
  std::optional<double> max_slowdown;  // 1.1 allows ten percent slower
  std::vector<Expectation> expectations;
  std::vector<std::string> policies;            // only these points; empty means all
  std::optional<std::string> reference_policy;  // compare every point with this one
  bool allow_mixed = false;                     // decide across environments
};

// A null `reference` allows only limits that need none. `reference` may be `report` itself. Points
// are then compared with the policy that the report names as its reference.
GateRecord gate_report(const Report& report, const std::string& report_file,
                       const Report* reference, const std::string& reference_file,
                       const GateSettings& settings);

}  // namespace rematch
