#include "reports/compare/match_points.h"

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "policies/base/json.h"
#include "reports/record/point_origins.h"

namespace rematch {
namespace {

enum class By : std::uint8_t { kKeyAndEnvironment, kKey, kAllButPlan };

// Cheaper than the key's canonical JSON and as exact: lengths keep the parts apart.
std::string label_of(const PointRecord& point, const PointOrigins& origins, By by) {
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
  if (by != By::kAllButPlan) add(identity.plan_sha256);
  if (by == By::kKeyAndEnvironment) add(origins.fingerprint_of(point));
  for (const std::string_view part :
       {to_string(identity.schedule), std::string_view(identity.ops),
        std::string_view(identity.attention_backend), std::string_view(identity.dtype),
        std::string_view(identity.optimizer), std::string_view(identity.allocator)}) {
    add(part);
  }
  add(identity.deterministic ? "deterministic" : "");
  add(std::to_string(identity.threads));
  add(std::to_string(identity.world));
  if (identity.pretended_rank) add(std::to_string(*identity.pretended_rank));
  return label;
}

// The points of one report that have no partner so far.
struct Side {
  explicit Side(const Report& report) : origins(report) {
    for (const PointRecord& point : report.points) points.push_back(&point);
  }
  PointOrigins origins;
  std::vector<const PointRecord*> points;
};

using Partners = std::unordered_map<const PointRecord*, const PointRecord*>;

// Pairs points with equal labels and takes them out of both lists.
void pair_by(By by, Side& base, Side& candidate, Partners& partner) {
  std::unordered_map<std::string, std::vector<const PointRecord*>> waiting;
  for (auto point = candidate.points.rbegin(); point != candidate.points.rend(); ++point) {
    // The first one is taken first.
    waiting[label_of(**point, candidate.origins, by)].push_back(*point);
  }
  std::vector<const PointRecord*> unpaired;
  std::unordered_set<const PointRecord*> taken;
  for (const PointRecord* point : base.points) {
    std::vector<const PointRecord*>& others = waiting[label_of(*point, base.origins, by)];
    if (others.empty()) {
      unpaired.push_back(point);
      continue;
    }
    partner[point] = others.back();
    taken.insert(others.back());
    others.pop_back();
  }
  base.points = std::move(unpaired);
  std::erase_if(candidate.points, [&](const PointRecord* point) { return taken.contains(point); });
}

}  // namespace

MatchedPoints match_points(const Report& base, const Report& candidate) {
  Side left(base);
  Side right(candidate);
  Partners partner;
  const bool is_merged = left.origins.is_merged() || right.origins.is_merged();
  if (is_merged) pair_by(By::kKeyAndEnvironment, left, right, partner);
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
  for (const PointRecord* point : right.points) matched.extra.push_back({nullptr, point});
  return matched;
}

}  // namespace rematch
