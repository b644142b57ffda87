#include "reports/render/comparison.h"

#include <algorithm>

namespace rematch {
namespace {

// The same but for what a policy and a schedule decide.
bool comparable(const PointRecord& a, const PointRecord& b) {
  PointIdentity other = b.identity;
  other.plan_sha256 = a.identity.plan_sha256;
  other.schedule = a.identity.schedule;
  return a.device == b.device && a.identity == other;
}

enum class AnySchedule : std::uint8_t { kNo, kYes };

const PointRecord* find_policy(const Comparison& comparison, const std::string& policy,
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

}  // namespace

std::string name_of(const PointRecord& point) {
  return point.policy + " " + std::string(to_string(point.identity.schedule));
}

std::vector<Comparison> compare_policies(const Report& report) {
  std::vector<Comparison> comparisons;
  for (const PointRecord& point : report.points) {
    auto group = std::find_if(comparisons.begin(), comparisons.end(), [&point](const auto& other) {
      return comparable(*other.points.front().point, point);
    });
    if (group == comparisons.end()) {
      comparisons.push_back({title_of(point), {}});
      group = std::prev(comparisons.end());
    }
    ComparedPoint compared;
    compared.point = &point;
    compared.repeats = repeats_of(point, report);
    group->points.push_back(std::move(compared));
  }
  for (Comparison& comparison : comparisons) {
    for (ComparedPoint& compared : comparison.points) {
      const Schedule schedule = compared.point->identity.schedule;
      compared.none = find_policy(comparison, "none", schedule, AnySchedule::kYes);
      compared.full = find_policy(comparison, "full", schedule, AnySchedule::kNo);
      compared.verdict = judge_point(*compared.point, compared.none, compared.full);
    }
  }
  return comparisons;
}

}  // namespace rematch
