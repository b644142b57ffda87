#include "harness/measure/step_place.h"

#include <ATen/SequenceNumber.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>

namespace rematch {

void StepPlace::begin_step() {
  names_ = {""};
  intervals_.clear();
  current_ = 0;
}

int StepPlace::of(Phase phase) {
  if (phase == Phase::kOptimizer) return 0;
  return phase == Phase::kForward ? current_ : of_running_node();
}

// Autograd numbers nodes in the order in which forward creates them, so a node's number determines
// its scope. A gradient accumulator has the highest possible number instead, and gets the place of
// the node that ran before it.
int StepPlace::of_running_node() {
  const auto node = torch::autograd::get_current_node();
  if (node == nullptr || node->sequence_nr() == UINT64_MAX) return current_;
  const auto after = std::upper_bound(intervals_.begin(), intervals_.end(), node->sequence_nr(),
                                      [](std::uint64_t sequence, const Interval& interval) {
                                        return sequence < interval.first_sequence;
                                      });
  current_ = after == intervals_.begin() ? 0 : std::prev(after)->place;
  return current_;
}

void StepPlace::enter(std::string_view name, std::optional<int> index) {
  if (scope_depth_++ == 0) {
    std::string place(name);
    if (index) place.append(".").append(std::to_string(*index));
    current_ = static_cast<int>(names_.size());
    names_.push_back(std::move(place));
    intervals_.push_back({at::sequence_number::peek(), current_});
  }
  if (next_ != nullptr) next_->enter(name, index);
}

void StepPlace::leave() noexcept {
  if (--scope_depth_ == 0) current_ = 0;
  if (next_ != nullptr) next_->leave();
}

StepPlace::Listening::Listening(StepPlace& place) : place_(place) {
  place_.next_ = scope_listener();
  scope_listener() = &place_;
}

StepPlace::Listening::~Listening() { scope_listener() = place_.next_; }

}  // namespace rematch
