#include "reports/render/comparison.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace rematch {
namespace {

// Equal for points that are the same but for what a policy and a schedule decide. Lengths keep the
// parts apart.
std::string label_of(const PointRecord& point) {
  const PointIdentity& identity = point.identity;
  std::string label;
  const auto add = [&label](std::string_view part) {
    label.append(std::to_string(part.size())).append(":").append(part);
  };
  for (const std::string* part :
       {&point.device, &identity.model, &identity.data, &identity.ops, &identity.attention_backend,
        &identity.dtype, &identity.optimizer, &identity.allocator}) {
    add(*part);
  }
  for (const auto& [name, size] : identity.dimensions) {
    add(name);
    add(std::to_string(size));
  }
  add(std::to_string(identity.seed));
  add(identity.deterministic ? "deterministic" : "");
  add(std::to_string(identity.threads));
  add(std::to_string(identity.world));
  if (identity.pretended_rank) add(std::to_string(*identity.pretended_rank));
  return label;
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
  std::unordered_map<std::string, std::size_t> groups;
  for (const PointRecord& point : report.points) {
    const auto [group, is_new] = groups.try_emplace(label_of(point), comparisons.size());
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

}  // namespace rematch
