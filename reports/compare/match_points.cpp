#include "reports/compare/match_points.h"

#include <string>
#include <unordered_map>
#include <utility>

#include "policies/trace/json.h"

namespace rematch {
namespace {

enum class By : std::uint8_t { kKey, kAllButPlan };

// Cheaper than the key's canonical JSON and as exact: lengths keep the parts apart.
std::string label_of(const PointRecord& point, By by) {
  const PointIdentity& identity = point.identity;
  std::string label;
  const auto add = [&label](std::string_view part) {
    label.append(std::to_string(part.size())).append(":").append(part);
  };
  add(point.policy);
  add(identity.model);
  for (const auto& [name, value] : identity.dimensions) {
    add(name);
    add(std::to_string(value));
  }
  add(identity.data);
  add(std::to_string(identity.seed));
  if (by == By::kKey) add(identity.plan_sha256);
  for (const std::string_view part :
       {to_string(identity.schedule), std::string_view(identity.ops),
        std::string_view(identity.attention_backend), std::string_view(identity.dtype),
        std::string_view(identity.optimizer), std::string_view(identity.allocator)}) {
    add(part);
  }
  add(identity.deterministic ? "deterministic" : "");
  add(std::to_string(identity.threads));
  add(std::to_string(identity.world));
  return label;
}

using Points = std::vector<const PointRecord*>;

// Pairs points with equal labels and takes them out of both lists.
void pair_by(By by, Points& base, Points& candidate,
             std::unordered_map<const PointRecord*, const PointRecord*>& partner) {
  std::unordered_map<std::string, Points> waiting;
  for (auto point = candidate.rbegin(); point != candidate.rend(); ++point) {
    waiting[label_of(**point, by)].push_back(*point);  // the first one is taken first
  }
  Points unpaired;
  std::unordered_map<const PointRecord*, bool> taken;
  for (const PointRecord* point : base) {
    Points& others = waiting[label_of(*point, by)];
    if (others.empty()) {
      unpaired.push_back(point);
      continue;
    }
    partner[point] = others.back();
    taken[others.back()] = true;
    others.pop_back();
  }
  base = std::move(unpaired);
  std::erase_if(candidate, [&](const PointRecord* point) { return taken.contains(point); });
}

Points pointers_to(const Report& report) {
  Points points;
  for (const PointRecord& point : report.points) points.push_back(&point);
  return points;
}

}  // namespace

MatchedPoints match_points(const Report& base, const Report& candidate) {
  Points left = pointers_to(base);
  Points right = pointers_to(candidate);
  std::unordered_map<const PointRecord*, const PointRecord*> partner;
  pair_by(By::kKey, left, right, partner);
  pair_by(By::kAllButPlan, left, right, partner);
  MatchedPoints matched;
  for (const PointRecord& point : base.points) {
    const auto found = partner.find(&point);
    if (found == partner.end()) {
      matched.missing.push_back({&point, nullptr});
    } else {
      matched.pairs.push_back({&point, found->second});
    }
  }
  for (const PointRecord* point : right) matched.extra.push_back({nullptr, point});
  return matched;
}

}  // namespace rematch
