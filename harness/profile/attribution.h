// Attributes kernels and transfers to ops, by phase, kernel class, op class and call. Also reports
// activity that it could not attribute.
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

// One op that was dispatched while activity was recorded. Lists are in the order of the calls.
struct OpCall {
  std::string op;  // "aten::mm"
  OpClass op_class = OpClass::kOther;
  Phase phase = Phase::kForward;
  std::string place;  // top-level scope, such as "blocks.3"; empty outside all scopes
  int step = 0;       // index among the counted steps
};

// How an attention op is computed: by one fused kernel, or by matmuls and a softmax inside the op.
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
  KernelTotalsByPhase<std::string> by_name;  // key: the kernel's short_name()
  KernelTotalsByPhase<OpClass> by_op_class;  // key: class of the op that launched the kernels
  AttentionKernels attention = AttentionKernels::kFused;
  // Number of op calls that launched a kernel of the required class, by phase and op class.
  std::array<std::map<OpClass, std::int64_t>, kNumPhases> ops_with_kernels;
  // Time of the kernels and transfers of each op call.
  std::vector<std::chrono::nanoseconds> by_call;
  std::vector<std::int32_t> kernels_by_call;

  // Copies that the plan's offload started. They run in parallel to kernels, so no phase includes
  // their time.
  TransferTotals offload;
  // Copies and memsets of unknown origin. They were not started by an op call, by offload, or while
  // a step's input was made.
  TransferTotals unattributed_transfers;

  std::int64_t dropped = 0;
  std::int64_t unfinished = 0;
  std::int64_t lost = 0;          // number of op launches whose kernel record is missing
  std::int64_t unattributed = 0;  // number of kernels that no op call launched
  std::int64_t badly_stamped =
      0;  // number of kernels that have no start, or an end before their start
  std::map<std::string, std::chrono::nanoseconds>
      unknown;  // times of kernels of unknown class, by kernel name
  // The reason why the figures are invalid, if any: lost records, a bad time stamp, unattributed
  // kernels, or steps that differ although they launched equally many kernels.
  std::optional<std::string> invalid;
  // Explains why the figures are valid although some copies are unattributed or steps ran different
  // kernels. A router of experts, for example, causes such differences.
  std::optional<std::string> note;

  std::chrono::nanoseconds total_time() const;
  std::chrono::nanoseconds unknown_time() const;
};

KernelUse attribute(const Activity& activity, const std::vector<OpCall>& calls,
                    AttentionKernels attention = AttentionKernels::kFused);

// Checks that every executed matmul and attention op launched a kernel of its class. Otherwise
// returns a line with the phase, the class and both counts. `executed` contains the op counts of
// the same steps.
std::optional<std::string> disagreement(
    const KernelUse& use, const std::array<std::map<OpClass, std::int64_t>, kNumPhases>& executed);

// Builds a point's kernel record from the attributed activity of its steps. `executed` contains the
// op counts of the same steps. If kernels and op counts disagree, the record is marked invalid.
KernelRecord kernel_record(const KernelUse& use, const CountsRecord& executed);

// Returns the kernel times of one step, by phase and by class of the launching op.
std::array<std::map<OpClass, std::chrono::nanoseconds>, kNumPhases> op_class_times(
    const KernelUse& use, int counted_steps);

}  // namespace rematch
