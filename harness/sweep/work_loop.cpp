#include "harness/sweep/work_loop.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "policies/trace/file.h"

namespace rematch {
namespace {

// A disk that is full, or a server that is away, for this many looks in a row is no passing
// trouble.
constexpr int kMostTroubles = 60;

// What was skipped elsewhere is left for a worker whose card it fits.
bool is_left(ClaimState state, const WorkItem& item) {
  if (state == ClaimState::kSkipped) return item.fits_card;
  return state != ClaimState::kDone && state != ClaimState::kFailed;
}

bool is_ready(ClaimState state) {
  return state == ClaimState::kFree || state == ClaimState::kStale || state == ClaimState::kSkipped;
}

// Longest first, so that none of the long ones is begun last. Unknown ones in front: they may be.
std::vector<std::size_t> by_length(const std::vector<WorkItem>& items) {
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto length = [&](std::size_t item) {
    return items[item].predicted.value_or(std::chrono::milliseconds::max());
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    return length(left) > length(right);
  });
  return order;
}

ClaimState state_after(MeasureEnd end) {
  if (end == MeasureEnd::kFailed) return ClaimState::kFailed;
  return end == MeasureEnd::kSkipped ? ClaimState::kSkipped : ClaimState::kDone;
}

class Work {
 public:
  Work(const std::vector<WorkItem>& items, Claims& claims, Measurer& measurer,
       const WorkSurroundings& surroundings, const WorkLimits& limits)
      : items_(items),
        claims_(claims),
        measurer_(measurer),
        surroundings_(surroundings),
        limits_(limits),
        order_(by_length(items)) {}

  WorkEnd run() {
    int num_troubles = 0;
    while (true) {
      try {
        if (const auto why = round()) return ended(*why);
        num_troubles = 0;
      } catch (const FileError&) {
        if (++num_troubles > kMostTroubles) throw;
        surroundings_.sleep(limits_.look_every);
      }
    }
  }

 private:
  using Why = WorkEnd::Why;

  // One look at the folder and what follows from it; why there is nothing more to do.
  std::optional<Why> round() {
    if (const auto why = told()) return why;
    const bool has_looked = look_unless_fresh();
    const std::vector<std::size_t> left = left_over();
    const auto ready = std::find_if(left.begin(), left.end(), [this](std::size_t item) {
      return is_ready(state_of(item)) && fits(item);
    });
    if (ready != left.end()) {
      measure(*ready);
      return std::nullopt;
    }
    if (!has_looked) {
      last_look_.reset();
      return std::nullopt;
    }
    if (left.empty()) return Why::kNothingLeft;
    const bool any_ready = std::any_of(
        left.begin(), left.end(), [this](std::size_t item) { return is_ready(state_of(item)); });
    if (any_ready) return Why::kTimeIsUp;
    const bool all_held = std::all_of(left.begin(), left.end(), [this](std::size_t item) {
      return state_of(item) == ClaimState::kHeld;
    });
    if (all_held) return Why::kInOtherHands;
    surroundings_.sleep(limits_.look_every);
    return std::nullopt;
  }

  void measure(std::size_t item) {
    const std::shared_ptr<void> turn = measurer_.turn();
    if (!turn) return surroundings_.sleep(limits_.look_every);
    std::optional<HeldClaim> claim = claims_.take(items_[item].comparison);
    const auto last_look = std::exchange(last_look_, std::nullopt);
    if (!claim) return;
    const MeasureEnd end = measurer_.measure(item, *claim);
    if (end == MeasureEnd::kStopped || end == MeasureEnd::kSuperseded) return;
    claims_.note(items_[item].comparison, state_after(end));
    last_look_ = last_look;
    ++num_measured_;
    if (end == MeasureEnd::kSomePointsFailed) ++num_with_failures_;
  }

  // A look at every claim takes longer the more there are, so one serves for a while: whoever took
  // something since is met when its claim is made.
  bool look_unless_fresh() {
    const auto now = surroundings_.now();
    if (last_look_ && now - *last_look_ < limits_.look_every) return false;
    claims_.look();
    last_look_ = now;
    return true;
  }

  std::optional<Why> told() const {
    const Told told = surroundings_.told();
    if (told == Told::kStop) return Why::kStopped;
    const bool is_over = limits_.end && surroundings_.now() >= *limits_.end;
    if (told == Told::kTimeIsUp || is_over) return Why::kTimeIsUp;
    return std::nullopt;
  }

  bool fits(std::size_t item) const {
    const auto predicted = items_[item].predicted;
    return !limits_.end || !predicted || surroundings_.now() + *predicted <= *limits_.end;
  }

  ClaimState state_of(std::size_t item) const { return claims_.of(items_[item].comparison).state; }

  std::vector<std::size_t> left_over() const {
    std::vector<std::size_t> left;
    for (const std::size_t item : order_) {
      if (is_left(state_of(item), items_[item])) left.push_back(item);
    }
    return left;
  }

  WorkEnd ended(Why why) const {
    WorkEnd end;
    end.why = why;
    end.num_measured = num_measured_;
    end.num_failures = num_with_failures_;
    for (const std::size_t item : order_) {
      if (state_of(item) == ClaimState::kFailed) ++end.num_failures;
    }
    end.num_left = static_cast<int>(left_over().size());
    return end;
  }

  const std::vector<WorkItem>& items_;
  Claims& claims_;
  Measurer& measurer_;
  const WorkSurroundings& surroundings_;
  const WorkLimits& limits_;
  std::vector<std::size_t> order_;
  std::optional<std::chrono::nanoseconds> last_look_;
  int num_measured_ = 0;
  int num_with_failures_ = 0;
};

}  // namespace

WorkEnd work(const std::vector<WorkItem>& items, Claims& claims, Measurer& measurer,
             const WorkSurroundings& surroundings, const WorkLimits& limits) {
  return Work(items, claims, measurer, surroundings, limits).run();
}

}  // namespace rematch
