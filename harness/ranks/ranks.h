// One rank of a job: its named process groups, and checks that all ranks agree on a value. Does not
// start processes (see launch.h), and does not depend on how a model is sharded.
//
//   if (const auto place = rematch::rank_place_from_environment()) {
//     rematch::Ranks ranks(*place, {{"tp", {0, 1}}, {"fsdp", {0, 2}}});     // rank 0 of 4
//     ranks.agree("plan", plan_sha256);
//     for (...) { ranks.note_step(step); train(); }
//   }
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/ranks/place.h"
#include "models/preset/parallel.h"

namespace rematch {

struct RanksOptions {
  enum class Transport : std::uint8_t {
    kQuietGloo,         // for CPU tensors; memory use is the same in every run: see backends.h
    kAsynchronousGloo,  // for CPU tensors; c10d's Gloo backend, unchanged
    kNccl,              // for CUDA tensors, on GPU `local_rank`; CPU tensors use quiet Gloo
  };
  Transport transport = Transport::kQuietGloo;
  // How long to wait for another rank to join, to agree or to take part in a collective.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
};

// Only one thread may use this object. Every rank must call the functions below with the same names
// in the same order. All functions throw RanksError if a rank fails or times out, or if the store
// is gone.
class Ranks {
 public:
  // Waits for all ranks, then creates and registers the groups. Makes the process ignore SIGPIPE.
  // Also throws RanksError if a group lacks this rank, or contains a rank that is repeated or out
  // of range. Several groups may have the same name if their ranks differ.
  Ranks(const RankPlace& place, const std::vector<RankGroup>& groups,
        const RanksOptions& options = {});
  // Waits for the other ranks, because they may still use the groups. During stack unwinding, tells
  // the other ranks of the failure instead of waiting.
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return place_.rank; }
  int world() const { return place_.world; }

  // Waits for every rank.
  void barrier(const std::string& name);
  // Returns the values of all ranks, in order of ranks.
  std::vector<std::string> values_of_all(const std::string& name, const std::string& value);
  // Throws on every rank, with the same message, if the values are not all equal.
  void agree(const std::string& name, const std::string& value);

  // Records this rank's progress, so that the launcher can name a rank that hangs.
  void note_step(std::int64_t step);

 private:
  struct Groups;  // hides c10d from users of this header

  void join();
  void wait_for_all(const std::string& name, const std::string& prefix);
  std::string next_key(const std::string& name);

  RankPlace place_;
  RanksOptions options_;
  int exceptions_before_ = 0;
  std::map<std::string, int> rounds_;  // for each name, how often all ranks have exchanged values
  std::unique_ptr<Groups> groups_;
};

struct RegisteredGroups;

// Lets this process act as rank `rank` of groups of any size without other ranks. Allocations,
// computations and calls are those of the real rank. Values are finite but wrong. For CPU and CUDA
// tensors; prediction on meta tensors needs no group.
class PretendedRanks {
 public:
  PretendedRanks(int rank, const std::vector<RankGroup>& groups);
  ~PretendedRanks();
  PretendedRanks(const PretendedRanks&) = delete;
  PretendedRanks& operator=(const PretendedRanks&) = delete;

 private:
  std::unique_ptr<RegisteredGroups> groups_;
};

}  // namespace rematch
