#include "harness/ranks/groups.h"

#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <algorithm>
#include <limits>
#include <set>

#include "harness/ranks/backends.h"

namespace rematch {

RegisteredGroups::~RegisteredGroups() {
  for (auto group = all.rbegin(); group != all.rend(); ++group) {
    c10d::unregister_process_group(group->first);
  }
}

void RegisteredGroups::add(const std::string& name, const c10::intrusive_ptr<c10d::Store>& store,
                           int rank, int size, const std::vector<DeviceBackend>& backends) {
  auto group = c10::make_intrusive<c10d::ProcessGroup>(store, rank, size);
  for (const DeviceBackend& one : backends) group->setBackend(one.device, one.type, one.backend);
  group->setDefaultBackend(backends.front().type);
  group->setGroupName(name);
  c10d::register_process_group(name, group);
  all.emplace_back(name, std::move(group));
}

int rank_in_group(const GroupMembers& group, int rank, int world) {
  for (const int member : group.ranks) {
    if (member >= 0 && member < world) continue;
    throw RanksError("group '" + group.name + "' has rank " + std::to_string(member) +
                     ", but ranks are 0 to " + std::to_string(world - 1));
  }
  if (std::set(group.ranks.begin(), group.ranks.end()).size() != group.ranks.size()) {
    throw RanksError("group '" + group.name + "' has a rank twice");
  }
  const auto found = std::ranges::find(group.ranks, rank);
  if (found == group.ranks.end()) {
    throw RanksError("rank " + std::to_string(rank) + " is not in group '" + group.name +
                     "': a rank makes its own groups alone");
  }
  return static_cast<int>(found - group.ranks.begin());
}

PretendedRanks::PretendedRanks(int rank, const std::vector<GroupMembers>& groups)
    : groups_(std::make_unique<RegisteredGroups>()) {
  using BackendType = c10d::ProcessGroup::BackendType;
  for (const GroupMembers& group : groups) {
    const int own = rank_in_group(group, rank, std::numeric_limits<int>::max());
    const int size = static_cast<int>(group.ranks.size());
    const auto backend = make_pretended_backend(own, size);
    groups_->add(group.name, c10::make_intrusive<c10d::HashStore>(), own, size,
                 {{c10::DeviceType::CPU, BackendType::CUSTOM, backend},
                  {c10::DeviceType::CUDA, BackendType::CUSTOM, backend}});
  }
}

PretendedRanks::~PretendedRanks() = default;

}  // namespace rematch
