// c10d process groups, registered by name while this lives: c10d's registry holds them weakly.
#pragma once

#include <c10/core/DeviceType.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <string>
#include <utility>
#include <vector>

#include "harness/ranks/ranks.h"

namespace rematch {

struct DeviceBackend {
  c10::DeviceType device;
  c10d::ProcessGroup::BackendType type;
  c10::intrusive_ptr<c10d::Backend> backend;
};

struct RegisteredGroups {
  RegisteredGroups() = default;
  ~RegisteredGroups();
  RegisteredGroups(const RegisteredGroups&) = delete;
  RegisteredGroups& operator=(const RegisteredGroups&) = delete;

  // The first backend is the default one.
  void add(const std::string& name, const c10::intrusive_ptr<c10d::Store>& store, int rank,
           int size, const std::vector<DeviceBackend>& backends);

  std::vector<std::pair<std::string, c10::intrusive_ptr<c10d::ProcessGroup>>> all;
};

// Which of the group's ranks `rank` is. Throws RanksError unless it is there once, among ranks of a
// world of that size, each of them once.
int rank_in_group(const GroupMembers& group, int rank, int world);

}  // namespace rematch
