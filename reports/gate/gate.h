// A report to PASS, FAIL or INCONCLUSIVE, for CI: loss parity in three tiers, and plain limits on
// peak, time and executed ops. Fails on what is wrong, and says INCONCLUSIVE where the reports
// cannot tell. Pure: no file, no clock.
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

// Executed ops of all counted steps: "attention_forward", "recompute.matmul", "aten::mm".
struct Expectation {
  std::string name;
  std::int64_t executed = 0;
};

struct GateSettings {
  std::optional<LossTier> loss;
  std::optional<double> max_loss_difference;
  std::optional<double> equivalence_margin;  // T2: least margin; the noise may ask for more
  std::optional<int> window_steps;           // T2: last steps that a run's loss is the mean of
  std::optional<Bytes> max_peak;
  std::optional<double> max_slowdown;  // 1.1: ten percent slower
  std::vector<Expectation> expectations;
  std::vector<std::string> policies;            // only these points; empty: all
  std::optional<std::string> reference_policy;  // hold every point against this one
  bool allow_mixed = false;                     // decide across environments
};

// `reference` null: only limits that need none. It may be `report` itself: then points are held
// against the policy that the report names as its reference.
GateRecord gate_report(const Report& report, const std::string& report_file,
                       const Report* reference, const std::string& reference_file,
                       const GateSettings& settings);

}  // namespace rematch
