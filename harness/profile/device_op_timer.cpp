#include "harness/profile/device_op_timer.h"

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
  c10::Event begin = timed_event(device_);
  call_next(op, keys, stack, depth);
  timed_.push_back({list_, list_->size(), std::move(begin), timed_event(device_)});
  list_->push_back({&facts_of(op).name, Duration(0)});
}

void DeviceOpTimer::begin_opaque() { opaque_begin_.emplace(timed_event(device_)); }

void DeviceOpTimer::end_opaque(const std::string& op) {
  if (list_ == nullptr || !opaque_begin_) return;
  timed_.push_back({list_, list_->size(), std::move(*opaque_begin_), timed_event(device_)});
  opaque_begin_.reset();
  list_->push_back({&op, Duration(0)});
}

void DeviceOpTimer::finish() {
  synchronize(device_);
  for (const Timed& op : std::exchange(timed_, {})) {
    op.list->at(op.index).figure = time_between(op.begin, op.end);
  }
}

}  // namespace rematch
