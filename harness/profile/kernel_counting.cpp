#include "harness/profile/kernel_counting.h"

#include "harness/profile/activity.h"

namespace rematch {

std::string kernel_counting_state() {
  try {
    record_activity();
    return "ok";
  } catch (const ActivityError& error) {
    return error.what();
  }
}

}  // namespace rematch
