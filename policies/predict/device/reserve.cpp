#include "policies/predict/device/reserve.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

namespace rematch {

MemoryReserve usual_reserve(const DeviceSheet* sheet, Bytes memory, int num_communicators) {
  const CardReserve& card = sheet != nullptr ? sheet->reserve : kUsualReserve;
  MemoryReserve reserve;
  reserve.context = card.context;
  reserve.communicators = Bytes{num_communicators * card.communicator.count};
  const Bytes left = std::max(memory - reserve.context - reserve.communicators, Bytes{});
  const double tensors = static_cast<double>(left.count) / (1 + card.fragmentation_ratio);
  reserve.fragmentation = left - Bytes{std::llround(tensors)};
  return reserve;
}

int num_communicators(const Trace& trace) {
  std::set<std::string> groups;
  for (const TracedOp& op : trace.ops) groups.insert(op.group);
  for (const BackwardEvent& event : trace.backward) groups.insert(event.group);
  for (const TracedCollective& sum : trace.gradient_sums) groups.insert(sum.group);
  groups.erase("");
  // Neighbouring stages of a pipeline have a communicator of their own.
  return static_cast<int>(groups.size()) + (trace.stage ? 1 : 0);
}

}  // namespace rematch
