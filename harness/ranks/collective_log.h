// The collectives that a rank really executes: counted by kind, phase and group with the bytes they
// move, and listed step by step so that ranks find out when they do not run the same ones.
//
// Note [Which collectives pair]
// Backends pair the calls of a group by their order alone: two calls that one rank makes in another
// order than the others give wrong values and no error where their shapes are equal. So every call
// is listed with group, kind, type, shape, phase, region, and the op that made its input: which op,
// and how many ops or, beyond the last collective, how many collectives before. The lines have to
// be equal on all ranks. Rows of an exchange may differ, since routing does, and so may the number
// of ops, as long as none comes between the making of an input and its collective alone.
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

// Thread-safe: backward may run on another thread than forward.
class CollectiveLog final : public OpObserver {
 public:
  // By kind, as to_string(CollectiveKind).
  using Counts = std::array<std::map<std::string, std::int64_t>, kNumPhases>;
  // A collective's bytes are those of the larger of its input and its output on this rank.
  struct Totals {
    Counts executed;
    Counts bytes;
  };

  // The list begins anew; totals go on.
  void begin_step();
  // At the end of a step, on every rank. Throws RanksError on each, with the same line, if the
  // lists differ: the first two ranks that do, and the first collective.
  void compare(Ranks& ranks);

  // Since the log was made. Not while a step runs.
  const Totals& totals() const { return totals_; }
  const std::map<std::string, Totals>& totals_of_groups() const { return totals_of_groups_; }
  // The step's lines: "forward: all_reduce in 'tp' of float32 [4, 8] ...".
  const std::vector<std::string>& lines() const { return lines_; }

  void about_to_run(const c10::OperatorHandle& op, Phase phase,
                    const torch::jit::Stack& stack) override;
  void executed(const c10::OperatorHandle& op, Phase phase,
                const torch::jit::Stack& stack) override;
  void region_entered(const std::string& region, Phase phase) override;
  void region_left() noexcept override;

 private:
  // When the value that a storage holds was made. The weak reference keeps its address from being
  // that of another storage, and none of its bytes.
  struct Making {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    const std::string* op;
    std::int64_t num_collectives;  // before
    std::int64_t num_ops;
  };
  // A collective that runs.
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
  std::int64_t num_collectives_ = 0;  // of the step
  std::int64_t num_ops_ = 0;          // since the last collective
  std::uint64_t hash_ = 0;            // of the step's lines
  Totals totals_;
  std::map<std::string, Totals> totals_of_groups_;
};

}  // namespace rematch
