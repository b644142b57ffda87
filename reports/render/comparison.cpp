#include "reports/render/comparison.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace rematch {
namespace {

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

std::optional<Bytes> measured_peak(const PointRecord& record) {
  if (record.status != PointStatus::kOk || !record.memory) return std::nullopt;
  return record.memory->peak_allocated;
}

std::optional<std::chrono::nanoseconds> measured_step(const PointRecord& record) {
  if (record.status != PointStatus::kOk || !record.time) return std::nullopt;
  return record.time->step_median;
}

}  // namespace rematch
