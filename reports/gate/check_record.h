// A check of the gate, written down with its verdict. Pure.
#pragma once

#include <array>
#include <cstdio>
#include <string>

#include "reports/record/gate.h"

namespace rematch {

struct LossArm;

CheckRecord decided(std::string check, GateVerdict verdict, std::string reason);

// A check on the loss, not decided yet: with what the reference's runs differ by.
CheckRecord loss_check(std::string check, std::string tier, const LossArm& reference);
CheckRecord& decide(CheckRecord& check, GateVerdict verdict, std::string reason);

// A number in a reason: four digits, however small it is.

inline std::string number_text(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.4g", value);
  return text.data();
}

}  // namespace rematch
