#include "policies/search/driver/joined_front.h"

#include <algorithm>
#include <vector>

#include "policies/search/simple/simple_point.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

// A plan must meet a largest step time, or else a largest peak. Without either, every plan
// meets it.
struct Limit {
  std::optional<nanoseconds> step_time;
  std::optional<Bytes> peak;

  bool is_met_by(const FrontPoint& point) const {
    if (step_time) return point.step_time <= *step_time;
    return !peak || point.figures.peak <= *peak;
  }
  // Whether `a` is better than `b`: it alone meets the limit, or it is better in what the limit
  // leaves open.
  bool prefers(const FrontPoint& a, const FrontPoint& b) const {
    if (is_met_by(a) != is_met_by(b)) return is_met_by(a);
    if (step_time || !is_met_by(a)) return a.figures.peak < b.figures.peak;
    return a.step_time < b.step_time;
  }
};

// Adds the words of the form, and makes the bound hold for plans of the other form too.
FrontPoint joined_point(FrontPoint point, const FormOfModel& own, const FormOfModel& other) {
  if (!own.words.empty()) {  // first, because tables cut long words off
    point.saves = own.words + (point.saves.empty() ? "" : "; ") + point.saves;
  }
  point.step_time_bound =
      std::min(point.step_time_bound, other.ask.step_time_bound(point.figures.peak));
  return point;
}

const FrontPoint& faster(const FrontPoint& a, const FrontPoint& b) {
  return b.step_time < a.step_time ? b : a;
}

nanoseconds time_without_recompute(const FormOfModel& form) {
  return form.record.front.nothing_recomputed.step_time;
}

// Returns the plan of the form with the lowest peak within the step time, if there is one.
std::optional<FrontPoint> lowest_within(const FormOfModel& form, nanoseconds step_time) {
  const double ratio = static_cast<double>(step_time.count()) /
                           static_cast<double>(time_without_recompute(form).count()) -
                       1;
  if (ratio < 0) return std::nullopt;
  FrontPoint lowest = form.ask.lowest_within_slowdown(ratio);
  if (lowest.step_time > step_time) return std::nullopt;
  return lowest;
}

class Joining {
 public:
  Joining(const FormOfModel& usual, const FormOfModel& other) : usual_(usual), other_(other) {
    limit_.peak = limit_of(usual.record);
    if (!usual.record.max_slowdown_ratio) return;
    const nanoseconds least =
        std::min(time_without_recompute(usual), time_without_recompute(other));
    limit_.step_time = nanoseconds(static_cast<std::int64_t>(
        static_cast<double>(least.count()) * (1 + *usual.record.max_slowdown_ratio)));
  }

  FrontRecord record() const {
    FrontRecord joined = usual_.record;
    joined.answer = answer();
    joined.front = front(joined.answer);
    joined.simple = simple(joined.front);
    return joined;
  }

 private:
  template <class Visit>
  void for_each_form(const Visit& visit) const {
    visit(usual_, other_);
    visit(other_, usual_);
  }

  std::optional<FrontPoint> answer() const {
    std::optional<FrontPoint> best;
    for_each_form([&](const FormOfModel& own, const FormOfModel& other) {
      std::optional<FrontPoint> found =
          limit_.step_time ? lowest_within(own, *limit_.step_time) : own.record.answer;
      if (!found || (best && !limit_.prefers(*found, *best))) return;
      best = joined_point(*std::move(found), own, other);
    });
    return best;
  }

  Front front(const std::optional<FrontPoint>& answer) const {
    Front front = usual_.record.front;
    const Front& others = other_.record.front;
    front.points.clear();
    for_each_form([&](const FormOfModel& own, const FormOfModel& other) {
      for (const FrontPoint& point : own.record.front.points) {
        front.points.push_back(joined_point(point, own, other));
      }
    });
    if (answer) front.points.push_back(*answer);
    front.points = undominated(std::move(front.points), on_plane);
    front.num_plans_found += others.num_plans_found;
    front.time_gap = std::max(front.time_gap, others.time_gap);
    front.transient_gap = std::max(front.transient_gap, others.transient_gap);
    front.is_complete &= others.is_complete;
    front.nothing_recomputed = faster(joined_point(front.nothing_recomputed, usual_, other_),
                                      joined_point(others.nothing_recomputed, other_, usual_));
    if (front.none && others.none) {
      front.none = faster(joined_point(*front.none, usual_, other_),
                          joined_point(*others.none, other_, usual_));
    }
    for (Baseline& baseline : front.baselines) {
      baseline.point.step_time_bound = std::min(
          baseline.point.step_time_bound, other_.ask.step_time_bound(baseline.point.figures.peak));
    }
    summarize(front);
    return front;
  }

  // Without a limit, simple plans are compared within the peak of the knee.
  std::optional<SimplePoint> simple(const Front& front) const {
    Limit limit = limit_;
    if (!limit.step_time && !limit.peak) limit.peak = front.points[front.knee].figures.peak;
    std::optional<SimplePoint> best;
    for_each_form([&](const FormOfModel& own, const FormOfModel& other) {
      if (!own.record.simple) return;
      if (best && !limit.prefers(own.record.simple->point, best->point)) return;
      best = own.record.simple;
      best->point = joined_point(std::move(best->point), own, other);
    });
    if (best) compare(*best);
    return best;
  }

  // Compares a simple plan with the exact plans of both forms.
  void compare(SimplePoint& simple) const {
    const FrontPoint& own = simple.point;
    simple.more_peak = {};
    simple.more_time = {};
    for_each_form([&](const FormOfModel& form, const FormOfModel& /*other*/) {
      if (const auto lower = lowest_within(form, own.step_time)) {
        simple.more_peak = std::max(simple.more_peak, own.figures.peak - lower->figures.peak);
      }
      if (const auto found = form.ask.fastest_within(own.figures.peak)) {
        simple.more_time = std::max(simple.more_time, own.step_time - found->step_time);
      }
    });
  }

  const FormOfModel& usual_;
  const FormOfModel& other_;
  Limit limit_;
};

}  // namespace

FrontRecord join_fronts(const FormOfModel& usual, const FormOfModel& other) {
  return Joining(usual, other).record();
}

}  // namespace rematch
