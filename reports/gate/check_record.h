// Builds the records of the gate's checks. Pure.
#pragma once

#include <array>
#include <cstdio>
#include <string>
#include <utility>

#include "reports/gate/loss_arms.h"
#include "reports/record/gate.h"

namespace rematch {

inline CheckRecord decided(std::string check, GateVerdict verdict, std::string reason) {
  CheckRecord record;
  record.check = std::move(check);
  record.verdict = verdict;
  record.reason = std::move(reason);
  return record;
}

inline CheckRecord& decide(CheckRecord& check, GateVerdict verdict, std::string reason) {
  check.verdict = verdict;
  check.reason = std::move(reason);
  return check;
}

// Makes a loss check without a verdict. Sets only its name, tier and the noise of the reference's
// runs.
inline CheckRecord loss_check(std::string check, std::string tier, const LossArm& reference) {
  CheckRecord record;
  record.check = std::move(check);
  record.tier = std::move(tier);
  record.noise =
      NoiseRecord{static_cast<int>(reference.runs.size()), largest_difference(reference.runs), {}};
  return record;
}

// Formats a number with four significant digits, for the reason of a check.
inline std::string number_text(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.4g", value);
  return text.data();
}

}  // namespace rematch
