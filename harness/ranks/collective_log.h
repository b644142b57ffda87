// Records the collectives that a rank executes. Counts them and their bytes by kind, phase and
// group. Also lists the collectives of each step, so that ranks detect when their collectives
// differ.
//
// Note [Which collectives pair] Backends pair the calls of a group only by their order. If one rank
// swaps two calls with equal shapes, the values are wrong but no error is raised. So each call is
// listed with its group, kind, dtype, shape, phase and region, and with the op that made its input.
// The line also counts the ops or collectives between that op and the call. The lines must be equal
// on all ranks, except for the row counts of an exchange, which depend on routing.
#pragma once

#include <c10/core/StorageImpl.h>

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "harness/engine/interception.h"
#include "harness/ranks/ranks.h"
#include "policies/base/bytes.h"
#include "policies/trace/phase.h"

namespace rematch {

// Thread-safe, because forward and backward may run on different threads.
class CollectiveLog final : public OpObserver {
 public:
  // Counts collectives by kind. The keys are the results of to_string(CollectiveKind).
  using Counts = std::array<std::map<std::string, std::int64_t>, kNumPhases>;
  // The bytes of a collective are the bytes of its input or its output on this rank, whichever is
  // larger.
  struct Totals {
    Counts executed;
    Counts bytes;
  };

  // Clears the list for a new step. Keeps the totals over all steps.
  void begin_step();
  // Compares the lists of all ranks at the end of a step. Must be called by every rank. If lists
  // differ, every rank throws the same RanksError, which names the first two ranks that differ and
  // the first collective at which they differ.
  void compare(Ranks& ranks);

  // Totals since the log was created. Do not call these while a step runs.
  const Totals& totals() const { return totals_; }
  const std::map<std::string, Totals>& totals_of_groups() const { return totals_of_groups_; }
  // The step's lines, such as "forward: all_reduce in 'tp' of float32 [4, 8] ...".
  const std::vector<std::string>& lines() const { return lines_; }

  void about_to_run(const c10::OperatorHandle& op, Phase phase,
                    const torch::jit::Stack& stack) override;
  void executed(const c10::OperatorHandle& op, Phase phase,
                const torch::jit::Stack& stack) override;
  void region_entered(const std::string& region, Phase phase) override;
  void region_left() noexcept override;

 private:
  // Says which op last wrote a storage, and when. The weak reference keeps the address from being
  // reused, but does not keep the bytes allocated.
  struct Making {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    const std::string* op;
    std::int64_t num_collectives;  // number of collectives before the op
    std::int64_t num_ops;
  };
  // A collective that has begun but not ended.
  struct Started {
    std::string group;
    Bytes input_bytes;
  };

  void list(const c10::OperatorHandle& op, Phase phase, const torch::jit::Stack& stack);
  std::string origin_of(const c10::IValue& input) const;
  void note_results(const c10::OperatorHandle& op, const torch::jit::Stack& stack);
  std::string hash() const;

  std::mutex mutex_;
  std::unordered_map<const c10::StorageImpl*, Making> makings_;
  std::map<std::thread::id, std::vector<std::string>> regions_;
  std::map<std::thread::id, Started> started_;
  std::vector<std::string> lines_;
  std::int64_t num_collectives_ = 0;  // number of collectives of the step so far
  std::int64_t num_ops_ = 0;          // number of ops since the last collective
  std::uint64_t hash_ = 0;            // hash of the step's lines
  Totals totals_;
  std::map<std::string, Totals> totals_of_groups_;
};

}  // namespace rematch
