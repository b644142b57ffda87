#include "reports/compare/identity_difference.h"

#include <algorithm>
#include <cstddef>

namespace rematch {
namespace {

// For one policy and model; more are not compared, so that large reports stay quick.
constexpr std::size_t kMostLookedAt = 64;

using IdentityParts = std::vector<std::pair<std::string, std::string>>;

IdentityParts parts_of(const PointIdentity& identity) {
  return {{"data", identity.data},
          {"seed", std::to_string(identity.seed)},
          {"schedule", std::string(to_string(identity.schedule))},
          {"ops", identity.ops},
          {"attention_backend", identity.attention_backend},
          {"dtype", identity.dtype},
          {"optimizer", identity.optimizer},
          {"deterministic", identity.deterministic ? "true" : "false"},
          {"allocator", identity.allocator},
          {"threads", std::to_string(identity.threads)},
          {"world", std::to_string(identity.world)},
          {"pretended rank",
           identity.pretended_rank ? std::to_string(*identity.pretended_rank) : "none"}};
}

std::string dimension_of(const PointIdentity& identity, const std::string& name) {
  const auto found = identity.dimensions.find(name);
  return found == identity.dimensions.end() ? "absent" : std::to_string(found->second);
}

}  // namespace

std::vector<NamedDifference> identity_differences(const PointIdentity& base,
                                                  const PointIdentity& candidate) {
  std::vector<NamedDifference> differences;
  const auto compare = [&differences](const std::string& name, const std::string& own,
                                      const std::string& other) {
    if (own != other) differences.push_back({name, own, other});
  };
  std::map<std::string, std::int64_t> names = base.dimensions;
  names.insert(candidate.dimensions.begin(), candidate.dimensions.end());
  for (const auto& [name, value] : names) {
    compare(name, dimension_of(base, name), dimension_of(candidate, name));
  }
  const IdentityParts own = parts_of(base);
  const IdentityParts others = parts_of(candidate);
  for (std::size_t part = 0; part < own.size(); ++part) {
    compare(own[part].first, own[part].second, others[part].second);
  }
  return differences;
}

void SimilarPoints::add(const PointRecord& point) {
  points_[{point.policy, point.identity.model}].push_back(&point);
}

const PointRecord* SimilarPoints::nearest(const PointRecord& point) const {
  const auto found = points_.find({point.policy, point.identity.model});
  if (found == points_.end()) return nullptr;
  const PointRecord* nearest = nullptr;
  std::size_t fewest = 0;
  for (std::size_t index = 0; index < std::min(kMostLookedAt, found->second.size()); ++index) {
    const PointRecord& other = *found->second[index];
    const std::size_t differences = identity_differences(point.identity, other.identity).size();
    if (nearest != nullptr && differences >= fewest) continue;
    nearest = &other;
    fewest = differences;
  }
  return nearest;
}

}  // namespace rematch
