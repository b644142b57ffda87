#include "harness/profile/device_op_timer.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>
#include <utility>

#include "harness/engine/record/op_facts.h"
#include "harness/measure/clocks.h"

namespace rematch {

void DeviceOpTimer::run(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                        torch::jit::Stack* stack, std::size_t depth) {
  if (list_ == nullptr) {
    call_next(op, keys, stack, depth);
    return;
  }
  c10::Event begin = mark();
  call_next(op, keys, stack, depth);
  timed_.push_back({list_, list_->size(), std::move(begin), mark()});
  list_->push_back({&facts_of(op).name, Duration(0)});
}

void DeviceOpTimer::finish() {
  synchronize(device_);
  for (const Timed& op : std::exchange(timed_, {})) {
    const std::chrono::duration<double, std::milli> elapsed(op.begin.elapsedTime(op.end));
    op.list->at(op.index).figure = std::chrono::duration_cast<Duration>(elapsed);
  }
}

c10::Event DeviceOpTimer::mark() const {
  // Only an event with this flag records a time stamp.
  c10::Event event(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
  event.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  return event;
}

}  // namespace rematch
