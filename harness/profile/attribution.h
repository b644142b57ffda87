// From device activity to figures: how many kernels, and how much kernel time, by phase, kernel
// class, class of op and call. Says what it could not attribute. Pure.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/profile/activity.h"
#include "harness/profile/kernel_class.h"
#include "policies/trace/op_class.h"
#include "policies/trace/phase.h"
#include "reports/record/point.h"

namespace rematch {

// One dispatched op while the activity was recorded, in the order of the calls.
struct OpCall {
  std::string op;  // "aten::mm"
  OpClass op_class = OpClass::kOther;
  Phase phase = Phase::kForward;
  std::string place;  // the top-level scope: "blocks.3"; empty outside all
  int step = 0;       // which of the counted steps
};

// Kernels of an attention op: one fused kernel, or matmuls and a softmax inside the op.
enum class AttentionKernels : std::uint8_t { kFused, kComposed };

struct KernelTotals {
  std::int64_t count = 0;
  std::chrono::nanoseconds time{};
  bool operator==(const KernelTotals&) const = default;
};

struct TransferTotals {
  std::int64_t count = 0;
  Bytes bytes;
  std::chrono::nanoseconds time{};
  bool operator==(const TransferTotals&) const = default;
};

template <typename Key>
using KernelTotalsByPhase = std::array<std::map<Key, KernelTotals>, kNumPhases>;

struct KernelUse {
  KernelTotalsByPhase<KernelClass> by_class;
  KernelTotalsByPhase<std::string> by_name;  // short_name()
  KernelTotalsByPhase<OpClass> by_op_class;  // of the op that launched it
  AttentionKernels attention = AttentionKernels::kFused;
  // Op calls that launched at least one kernel of the class that is theirs.
  std::array<std::map<OpClass, std::int64_t>, kNumPhases> ops_with_kernels;
  std::vector<std::chrono::nanoseconds> by_call;  // of its kernels and transfers
  std::vector<std::int32_t> kernels_by_call;

  // Copies that the plan's offload started. They run beside kernels, so no phase has their time.
  TransferTotals offload;
  // Copies and sets that no op call, no offload and no making of a step's input started.
  TransferTotals unattributed_transfers;

  std::int64_t dropped = 0;
  std::int64_t unfinished = 0;
  std::int64_t lost = 0;           // launches by op calls whose kernel has no record
  std::int64_t unattributed = 0;   // kernels that no op call launched
  std::int64_t badly_stamped = 0;  // without a start, or that end before it
  std::map<std::string, std::chrono::nanoseconds> unknown;  // kernels of no known class
  // Why the figures must not be used, if so: a loss, a bad stamp, kernels of nobody, steps that
  // differ though equally many kernels were launched.
  std::optional<std::string> invalid;
  // A note on valid figures: steps launched different kernels, as routers of experts do, or copies
  // are unattributed.
  std::optional<std::string> note;

  std::chrono::nanoseconds total_time() const;
  std::chrono::nanoseconds unknown_time() const;
};

KernelUse attribute(const Activity& activity, const std::vector<OpCall>& calls,
                    AttentionKernels attention = AttentionKernels::kFused);

// Matmuls and attention ops that executed without a kernel of their class, or the other way round:
// a line that names the phase, the class and both numbers; nothing where all agree. `executed` is
// what the op counter saw in the same steps.
std::optional<std::string> disagreement(
    const KernelUse& use, const std::array<std::map<OpClass, std::int64_t>, kNumPhases>& executed);

// A point's kernel figures from what its steps' activity was attributed to. Pure.

// `executed` is what the op counter saw in the same steps: where the two disagree, the record says
// that it is not to be used.
KernelRecord kernel_record(const KernelUse& use, const CountsRecord& executed);

// Kernel times of a step, by phase and by class of the op that launched them.
std::array<std::map<OpClass, std::chrono::nanoseconds>, kNumPhases> op_class_times(
    const KernelUse& use, int counted_steps);

}  // namespace rematch
