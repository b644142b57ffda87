// A Checkpoint for tests that compare counts and bytes. It throws if a pass deviates from its plan.
#pragma once

#include "harness/engine/recording.h"

namespace rematch::testing {

inline Checkpoint strict(const Plan& plan, Schedule schedule,
                         OutsideCheck outside_check = OutsideCheck::kVersions) {
  return {plan, schedule,
          Checkpoint::Options{.outside_check = outside_check, .on_mismatch = OnMismatch::kRefuse}};
}

}  // namespace rematch::testing
