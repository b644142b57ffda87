#include "policies/replay/op_alignment.h"

#include <algorithm>
#include <utility>

namespace rematch {
namespace {

// The first unmatched op of a group costs most, and an extra op costs more than a missing op. If a
// pass skips several planned ops, the next op that runs therefore counts as extra. Later ops match
// again.
constexpr std::int32_t kFirstMissing = 100;
constexpr std::int32_t kNextMissing = 1;
constexpr std::int32_t kFirstExtra = 100;
constexpr std::int32_t kNextExtra = 80;
constexpr std::int32_t kNever = 1 << 28;  // a sum of a few such costs does not overflow

// After this many expected ops in succession the alignment is certain, and the window is cleared.
constexpr std::size_t kSure = 8;

}  // namespace

std::int32_t OpAlignment::Costs::least() const { return std::min({matched, extra, missing}); }

OpAlignment::OpAlignment(const std::vector<std::int32_t>& planned, std::size_t num_ran)
    : planned_(planned), is_matched_(planned.size()) {
  next_ = std::min(num_ran, planned.size());
  std::fill_n(is_matched_.begin(), next_, true);
}

std::int64_t OpAlignment::num_missing() const {
  return std::count(is_matched_.begin(), is_matched_.end(), false);
}

OptionalIndex OpAlignment::next(std::int32_t op) {
  OptionalIndex planned;
  if (costs_.empty() && next_ < planned_.size() && planned_[next_] == op) {
    planned = static_cast<std::int32_t>(next_++);
  } else {
    planned = align_in_window(op);
  }
  if (planned.has_value()) {
    is_matched_[static_cast<std::size_t>(*planned)] = true;
  } else {
    ++num_extra_;
  }
  return planned;
}

void OpAlignment::skip_to(std::size_t index) {
  next_ = std::min(index, planned_.size());
  costs_.clear();
}

OptionalIndex OpAlignment::align_in_window(std::int32_t op) {
  if (costs_.empty()) open_window();
  const OptionalIndex planned = decide(op);
  const bool is_expected = planned.has_value() && static_cast<std::size_t>(*planned) == next_;
  num_in_a_row_ = is_expected ? num_in_a_row_ + 1 : 0;
  if (planned.has_value()) next_ = static_cast<std::size_t>(*planned) + 1;
  if (num_in_a_row_ == kSure) {
    costs_.clear();
  } else if (next_ > window_ + kWindow / 2) {
    move_window(next_ - window_ - kWindow / 4);
  }
  return planned;
}

void OpAlignment::open_window() {
  window_ = next_;
  num_in_a_row_ = 0;
  const std::size_t places = std::min(kWindow, planned_.size() - window_) + 1;
  costs_.assign(places, {kNever, kNever, kNever});
  costs_[0].matched = 0;
  fill_missing();
}

// Extends every alignment by the op. Returns the op's match in the cheapest alignment.
OptionalIndex OpAlignment::decide(std::int32_t op) {
  before_.swap(costs_);
  costs_.resize(before_.size());
  costs_[0].missing = kNever;
  std::int32_t least = kNever;
  OptionalIndex planned;
  for (std::size_t place = 0; place < costs_.size(); ++place) {
    const Costs& before = before_[place];
    Costs& costs = costs_[place];
    costs.extra = std::min({before.matched + kFirstExtra, before.missing + kFirstExtra,
                            before.extra + kNextExtra, kNever});
    // index of the planned op just before this entry of the window
    const std::size_t index = window_ + place - 1;
    const bool is_match = place > 0 && planned_[index] == op;
    costs.matched = is_match ? before_[place - 1].least() : kNever;
    if (costs.extra < least) {
      least = costs.extra;
      planned = {};
    }
    if (costs.matched <= least && is_match) {
      least = costs.matched;
      planned = static_cast<std::int32_t>(index);
    }
  }
  fill_missing();
  return planned;
}

void OpAlignment::fill_missing() {
  for (std::size_t place = 1; place < costs_.size(); ++place) {
    const Costs& before = costs_[place - 1];
    costs_[place].missing = std::min({before.matched + kFirstMissing, before.extra + kFirstMissing,
                                      before.missing + kNextMissing, kNever});
  }
}

void OpAlignment::move_window(std::size_t num_places) {
  const std::size_t places = std::min(kWindow, planned_.size() - window_ - num_places) + 1;
  costs_.erase(costs_.begin(), costs_.begin() + static_cast<std::ptrdiff_t>(num_places));
  window_ += num_places;
  costs_.resize(places, {kNever, kNever, kNever});
  fill_missing();
}

}  // namespace rematch
