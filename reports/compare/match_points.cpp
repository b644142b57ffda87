#include "reports/compare/match_points.h"

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "reports/record/point_origins.h"

namespace rematch {
namespace {

enum class By : std::uint8_t { kKeyAndEnvironment, kKey, kAllButPlan };

std::string label_of(const PointRecord& point, const PointOrigins& origins, By by) {
  const bool is_of_any_plan = by == By::kAllButPlan;
  std::string label =
      is_of_any_plan ? label_of(point.identity, {"plan_sha256"}) : label_of(point.identity, {});
  if (by == By::kKeyAndEnvironment) label += origins.fingerprint_of(point);
  return label + point.policy;
}

// The points of one report that are not paired yet.
struct Side {
  explicit Side(const Report& report) : origins(report) {
    for (const PointRecord& point : report.points) points.push_back(&point);
  }
  PointOrigins origins;
  std::vector<const PointRecord*> points;
};

using Partners = std::unordered_map<const PointRecord*, const PointRecord*>;

// Pairs points with equal labels, and removes them from `base` and `candidate`.
void pair_by(By by, Side& base, Side& candidate, Partners& partner) {
  std::unordered_map<std::string, std::vector<const PointRecord*>> waiting;
  for (auto point = candidate.points.rbegin(); point != candidate.points.rend(); ++point) {
    // points are added from the last to the first, so that pop_back() returns the first
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
