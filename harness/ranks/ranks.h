// One rank of a job: its process groups, under the names that models call collectives by, and what
// all ranks agree on before and between steps. Does not start processes (launch.h does) and knows
// nothing of what is sharded how.
//
//   if (const auto place = rematch::rank_place_from_environment()) {
//     rematch::Ranks ranks(*place, {{"tp", {0, 1}}, {"fsdp", {0, 2}}});     // rank 0 of 4
//     ranks.agree("plan", plan_sha256);
//     for (...) { ranks.note_step(step); train(); }
//   }
#pragma once

#include <c10/core/DeviceType.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/ranks/place.h"

namespace rematch {

// A group that this rank belongs to: ranks of the job, in the order of the group. Several groups
// may have one name, on different ranks.
struct GroupMembers {
  std::string name;
  std::vector<int> ranks;
};

struct RanksOptions {
  enum class Transport : std::uint8_t {
    kQuietGloo,         // CPU tensors; exact bytes: see backends.h
    kAsynchronousGloo,  // CPU tensors; Gloo as it is
    kNccl,              // CUDA tensors on GPU local_rank, and CPU tensors by quiet Gloo
  };
  Transport transport = Transport::kQuietGloo;
  // For another rank to come, to agree and to take part in a collective.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
};

// Used by one thread. Every rank calls the functions below with the same names in the same order;
// all throw RanksError where a rank fails, does not come within the timeout, or the store that the
// ranks meet at is gone.
class Ranks {
 public:
  // Waits for all ranks, then makes and registers the groups; the process ignores SIGPIPE from then
  // on. Throws RanksError also for groups without this rank, with one twice or out of range.
  Ranks(const RankPlace& place, const std::vector<GroupMembers>& groups,
        const RanksOptions& options = {});
  // Waits for the others, so that no group ends while another rank uses it; not while an exception
  // is on its way, of which it tells the others.
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return place_.rank; }
  int world() const { return place_.world; }

  // Every rank is in it.
  void barrier(const std::string& name);
  // Each rank's value, by rank.
  std::vector<std::string> values_of_all(const std::string& name, const std::string& value);
  // Throws on every rank, with the same line, if the values are not all equal.
  void agree(const std::string& name, const std::string& value);
  // The result of `make` on rank 0, where alone it is called.
  std::string from_rank_0(const std::string& name, const std::function<std::string()>& make);

  // How far this rank is, for the launcher to name the one that hangs. Costs one write to memory.
  void note_step(std::int64_t step);

 private:
  struct Groups;  // keeps c10d out of this header

  void join();
  void wait_for_all(const std::string& name, const std::string& prefix);
  std::string next_key(const std::string& name);

  RankPlace place_;
  RanksOptions options_;
  int exceptions_before_ = 0;
  std::map<std::string, int> rounds_;  // of each name
  std::unique_ptr<Groups> groups_;
};

// Groups of any size in this process alone, which is rank `rank` of them: what it allocates,
// computes and calls is what that rank does, and values are wrong but finite. For CPU and CUDA
// tensors; prediction on meta tensors needs no group.
class PretendedRanks {
 public:
  PretendedRanks(int rank, const std::vector<GroupMembers>& groups);
  ~PretendedRanks();
  PretendedRanks(const PretendedRanks&) = delete;
  PretendedRanks& operator=(const PretendedRanks&) = delete;

 private:
  std::unique_ptr<struct RegisteredGroups> groups_;
};

// c10d process groups, registered by name while this lives: c10d's registry holds them weakly.

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
