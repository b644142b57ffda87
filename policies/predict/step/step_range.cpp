#include "policies/predict/step/step_range.h"

#include <cstddef>

#include "policies/trace/collective.h"

namespace rematch {

Profile::Duration communication_time(const Trace& trace, const Profile& profile) {
  Profile::Duration sum = profile.gradient_sums;
  for (const OpId op : trace.ops.ids()) {
    if (collective_kind(trace.ops[op].name)) sum += profile.forward[op];
  }
  std::size_t backward_op = 0;
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind != BackwardEvent::Kind::kOp) continue;
    if (collective_kind(event.op)) sum += profile.backward[backward_op];
    ++backward_op;
  }
  return sum;
}

}  // namespace rematch
