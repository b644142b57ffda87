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
  // Several groups may have one name, on different ranks.
  Ranks(const RankPlace& place, const std::vector<RankGroup>& groups,
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

struct RegisteredGroups;

// Groups of any size in this process alone, which is rank `rank` of them: what it allocates,
// computes and calls is what that rank does, and values are wrong but finite. For CPU and CUDA
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
