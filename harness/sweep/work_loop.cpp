#include "harness/sweep/work_loop.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "policies/base/file.h"

namespace rematch {
namespace {

// A full disk or an unreachable server is considered permanent after this many consecutive failures
// to read the folder.
constexpr int kMaxTroubles = 60;

// Sorts the longest comparisons first, so that no long comparison starts last. Comparisons of
// unknown length come first, because they may be long.
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
        order_(by_length(items)) {
    for (const WorkItem& item : items) judged_.push_back(&claims.of(item.comparison));
  }

  WorkEnd run() {
    int num_troubles = 0;
    while (true) {
      try {
        if (const auto why = round()) return ended(*why);
        num_troubles = 0;
      } catch (const FileError&) {
        if (++num_troubles > kMaxTroubles) throw;
        surroundings_.sleep(limits_.look_every);
      }
    }
  }

 private:
  using Why = WorkEnd::Why;

  // Reads the folder once and acts on what it finds. Returns the reason to stop if no work is left.
  std::optional<Why> round() {
    if (const auto why = told()) return why;
    const bool has_looked = look_unless_fresh();
    const std::vector<std::size_t> left = left_over();
    const auto ready = std::find_if(left.begin(), left.end(), [this](std::size_t item) {
      return is_ready(item) && fits(item);
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
    const bool any_ready =
        std::any_of(left.begin(), left.end(), [this](std::size_t item) { return is_ready(item); });
    if (any_ready) return Why::kDeadline;
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
    const std::string& comparison = items_[item].comparison;
    std::optional<HeldClaim> claim = state_of(item) == ClaimState::kFailed
                                         ? claims_.retry(comparison)
                                         : claims_.take(comparison);
    const auto last_look = std::exchange(last_look_, std::nullopt);
    if (!claim) return;
    tried_again_.insert(item);
    const MeasureEnd end = measurer_.measure(item, *claim);
    if (end == MeasureEnd::kStopped || end == MeasureEnd::kSuperseded) return;
    claims_.note(items_[item].comparison, state_after(end));
    last_look_ = last_look;
    ++num_measured_;
    if (end == MeasureEnd::kSomePointsFailed) ++num_with_failures_;
  }

  // Skips look() if the last call was recent, because look() reads all claims. The worker may then
  // try to claim a comparison that another worker has just taken. Creating that claim fails.
  bool look_unless_fresh() {
    const auto now = surroundings_.now();
    if (last_look_ && now - *last_look_ < limits_.look_every) return false;
    claims_.look();
    last_look_ = now;
    if (!has_looked_once_) note_failed();
    return true;
  }

  void note_failed() {
    has_looked_once_ = true;
    for (const Judgement* judged : judged_) {
      const bool is_retried = limits_.retries_failed && judged->state == ClaimState::kFailed;
      failed_before_.push_back(is_retried ? judged->generation : 0);
    }
  }

  // Returns false if another worker has already restarted the comparison and has thus made a newer
  // claim.
  bool is_to_retry(std::size_t item) const {
    return has_looked_once_ && failed_before_[item] > 0 &&
           judged_[item]->generation == failed_before_[item] && tried_again_.count(item) == 0;
  }

  // A comparison that another worker skipped remains to be done only if it fits this worker's card.
  bool is_left(std::size_t item) const {
    const ClaimState state = state_of(item);
    if (state == ClaimState::kSkipped) return items_[item].fits_card;
    if (state == ClaimState::kFailed) return is_to_retry(item);
    return state != ClaimState::kDone;
  }

  bool is_ready(std::size_t item) const {
    const ClaimState state = state_of(item);
    return state == ClaimState::kFree || state == ClaimState::kStale ||
           state == ClaimState::kSkipped || (state == ClaimState::kFailed && is_to_retry(item));
  }

  std::optional<Why> told() const {
    const StopRequest request = surroundings_.stop_request();
    if (request == StopRequest::kStop) return Why::kStopped;
    const bool is_over = limits_.end && surroundings_.now() >= *limits_.end;
    if (request == StopRequest::kDeadline || is_over) return Why::kDeadline;
    return std::nullopt;
  }

  bool fits(std::size_t item) const {
    const auto predicted = items_[item].predicted;
    return !limits_.end || !predicted || surroundings_.now() + *predicted <= *limits_.end;
  }

  ClaimState state_of(std::size_t item) const { return judged_[item]->state; }

  std::vector<std::size_t> left_over() const {
    std::vector<std::size_t> left;
    for (const std::size_t item : order_) {
      if (is_left(item)) left.push_back(item);
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
  std::vector<const Judgement*> judged_;  // one state per item; look() updates the states
  std::vector<std::size_t> order_;
  bool has_looked_once_ = false;
  // for each item, the generation of its claim if the item had already failed when this worker
  // started, otherwise 0
  std::vector<int> failed_before_;
  std::set<std::size_t> tried_again_;
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
