#include "reports/render/comparison.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <unordered_map>

#include "policies/base/format.h"

namespace rematch {
namespace {

enum class AnySchedule : std::uint8_t { kNo, kYes };

const PointRecord* find_policy(const PolicyComparison& comparison, const std::string& policy,
                               Schedule schedule, AnySchedule any) {
  const PointRecord* found = nullptr;
  for (const ComparedPoint& compared : comparison.points) {
    if (compared.point->policy != policy) continue;
    if (compared.point->identity.schedule == schedule) return compared.point;
    if (any == AnySchedule::kYes && found == nullptr) found = compared.point;
  }
  return found;
}

std::vector<const RepeatRecord*> repeats_of(const PointRecord& point, const Report& report) {
  std::vector<const RepeatRecord*> repeats;
  if (report.repeats.empty()) return repeats;
  const std::string key = point_key(point.identity);
  for (const RepeatRecord& repeat : report.repeats) {
    const bool own = repeat.key == key && repeat.policy == point.policy;
    if (own && repeat.status == PointStatus::kOk) repeats.push_back(&repeat);
  }
  return repeats;
}

std::string title_of(const PointRecord& point) {
  std::string dimensions;
  for (const auto& [name, value] : point.identity.dimensions) {
    dimensions += (dimensions.empty() ? "" : ", ") + name + " " + std::to_string(value);
  }
  const PointIdentity& identity = point.identity;
  return identity.model + " on " + point.device + ": " + dimensions + "; " + identity.dtype +
         ", optimizer " + identity.optimizer + ", attention " + identity.attention_backend +
         ", data " + identity.data + ", seed " + std::to_string(identity.seed) + ", threads " +
         std::to_string(identity.threads);
}

// True if `other` has no higher peak and is faster by more than noise. If `other` is the reference
// of `point`, uses the verdict on their paired rounds. Otherwise their intervals must not overlap.
bool surely_beats(const ComparedPoint& other, const ComparedPoint& point) {
  if (*measured_peak(*other.point) > *measured_peak(*point.point)) return false;
  const TimeRecord& slower = *point.point->time;
  const TimeRecord& faster = *other.point->time;
  if (slower.ratio && slower.ratio->reference == other.point->policy &&
      !slower.ratio->verdict.empty()) {
    return slower.ratio->verdict == "slower";
  }
  if (!faster.step_interval || !slower.step_interval) {
    return *faster.step_median < *slower.step_median;
  }
  return (*faster.step_interval)[1] < (*slower.step_interval)[0];
}

// Sorts by peak, then by time. A point is on the front if it is faster than every earlier point.
// Points with equal figures are treated alike.
void mark_front(std::vector<ComparedPoint>& points) {
  const auto figures = [](const ComparedPoint* point) {
    return std::pair(*measured_peak(*point->point), *measured_step(*point->point));
  };
  std::vector<ComparedPoint*> measured;
  for (ComparedPoint& point : points) {
    if (measured_peak(*point.point) && measured_step(*point.point)) measured.push_back(&point);
  }
  std::stable_sort(
      measured.begin(), measured.end(),
      [&](const ComparedPoint* a, const ComparedPoint* b) { return figures(a) < figures(b); });
  const ComparedPoint* last = nullptr;
  for (ComparedPoint* point : measured) {
    point->is_on_front = last == nullptr || figures(point) == figures(last) ||
                         figures(point).second < figures(last).second;
    if (point->is_on_front) last = point;
  }
  for (ComparedPoint* point : measured) {
    point->is_dominated = !point->is_on_front && std::any_of(measured.begin(), measured.end(),
                                                             [&](const ComparedPoint* other) {
                                                               return surely_beats(*other, *point);
                                                             });
  }
}

std::string recomputed_ops(const CountsRecord& counts) {
  std::string text;
  for (const auto& [op_class, count] :
       counts.by_class[static_cast<std::size_t>(Phase::kRecompute)]) {
    if (op_class == OpClass::kView || count == 0) continue;
    text += (text.empty() ? "recomputes in a step: " : ", ") +
            format_per_step(count, counts.counted_steps) + " " + std::string(to_string(op_class));
  }
  return text.empty() ? "recomputes nothing" : text;
}

}  // namespace

std::string name_of(const PointRecord& point) {
  return point.policy + " " + std::string(to_string(point.identity.schedule));
}

std::string ComparedPoint::name() const {
  return schedule.empty() ? point->policy : point->policy + " " + schedule;
}

std::string ComparedPoint::hint() const {
  std::string text = point->policy + ", " + std::string(to_string(point->identity.schedule)) +
                     "\nplan " + point->identity.plan_sha256.substr(0, 12);
  if (point->counts) text += "\n" + recomputed_ops(*point->counts);
  if (const auto& memory = point->memory; memory && memory->peak_allocated) {
    text += "\npeak " + format_bytes(*memory->peak_allocated);
    if (memory->peak_phase) text += " in " + describe_place(*memory);
    if (memory->predicted_peak_allocated) {
      text += ", predicted " + format_bytes(*memory->predicted_peak_allocated);
    }
  }
  if (const auto& time = point->time; time && time->step_median) {
    text += "\nstep " + format_duration(*time->step_median);
    if (time->step_interval) {
      text += ", 95 % interval " + format_duration((*time->step_interval)[0]) + " to " +
              format_duration((*time->step_interval)[1]);
    }
  }
  return text + "\n" + verdict.text;
}

std::vector<PolicyComparison> compare_policies(const Report& report) {
  std::vector<PolicyComparison> comparisons;
  std::unordered_map<std::string, std::size_t> groups;
  for (const PointRecord& point : report.points) {
    const auto [group, is_new] = groups.try_emplace(
        label_of(point.identity, {"plan_sha256", "schedule"}) + point.device, comparisons.size());
    if (is_new) comparisons.push_back({title_of(point), {}});
    ComparedPoint compared;
    compared.point = &point;
    compared.repeats = repeats_of(point, report);
    comparisons[group->second].points.push_back(std::move(compared));
  }
  for (PolicyComparison& comparison : comparisons) {
    std::map<std::string, int> num_spelled;
    for (const ComparedPoint& compared : comparison.points) ++num_spelled[compared.point->policy];
    for (ComparedPoint& compared : comparison.points) {
      const Schedule schedule = compared.point->identity.schedule;
      compared.none = find_policy(comparison, "none", schedule, AnySchedule::kYes);
      compared.full = find_policy(comparison, "full", schedule, AnySchedule::kNo);
      compared.verdict = judge_point(*compared.point, compared.none, compared.full);
      if (num_spelled[compared.point->policy] > 1) compared.schedule = to_string(schedule);
    }
    mark_front(comparison.points);
  }
  return comparisons;
}

int rank_of(const ComparedPoint& compared) {
  return compared.is_baseline() ? 0 : compared.is_on_front ? 1 : 2;
}

std::vector<ComparedPoint> most_telling(const std::vector<ComparedPoint>& points,
                                        std::size_t limit) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&points](std::size_t a, std::size_t b) {
    return rank_of(points[a]) < rank_of(points[b]);
  });
  order.resize(std::min(limit, order.size()));
  std::sort(order.begin(), order.end());
  std::vector<ComparedPoint> chosen;
  for (const std::size_t index : order) chosen.push_back(points[index]);
  return chosen;
}

std::optional<Bytes> measured_peak(const PointRecord& record) {
  if (record.status != PointStatus::kOk || !record.memory) return std::nullopt;
  return record.memory->peak_allocated;
}

std::optional<std::chrono::nanoseconds> measured_step(const PointRecord& record) {
  if (record.status != PointStatus::kOk || !record.time) return std::nullopt;
  return record.time->step_median;
}

}  // namespace rematch
