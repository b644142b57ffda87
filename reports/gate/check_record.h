// A check of the gate, written down with its verdict. Pure.
#pragma once

#include <string>

#include "reports/record/gate.h"

namespace rematch {

struct LossArm;

CheckRecord decided(std::string check, GateVerdict verdict, std::string reason);

// A check on the loss, not decided yet: with what the reference's runs differ by.
CheckRecord loss_check(std::string check, std::string tier, const LossArm& reference);
CheckRecord& decide(CheckRecord& check, GateVerdict verdict, std::string reason);

}  // namespace rematch
