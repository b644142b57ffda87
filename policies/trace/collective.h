// Which ops start a collective and which complete one.
//
// Note [A collective and its wait]
// A functional collective is two ops: one starts the exchange and returns a tensor that may not be
// filled yet; `wait_tensor` returns when all that was started on its argument's storage is done. It
// gives back its very argument and names no alias, so neither outputs nor in-place writes tell that
// readers of the tensor need it. The rule: whoever runs the start again runs its wait too, on what
// the start returned, through whichever view it was waited for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "policies/base/words.h"
#include "policies/trace/trace.h"

namespace rematch {

enum class CollectivePart : std::uint8_t {
  kNothing,
  kStart,
  kWait,
  kStartWithHandle,  // returns a handle to wait by: no op tells that, or when, it is done
};

// Collectives by what they do, as reports count them.
enum class CollectiveKind : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
};

template <>
inline constexpr std::array<std::string_view, 5> kWords<CollectiveKind> = {
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"};

// The kind of an op that starts a functional collective; nothing for others, waits among them.
std::optional<CollectiveKind> collective_kind(std::string_view name);

// Whether an op gathers sharded parameters: an all-gather of nothing but tensors from outside the
// step. Models gather activations too, and those come from an op.
bool is_parameter_gather(const Trace& trace, const TracedOp& op);

// Those of a block, in order, as FSDP's are; and whether any block has one.
std::vector<OpId> parameter_gathers(const Trace& trace, const TracedBlock& block);
bool blocks_gather_parameters(const Trace& trace);

// `name` is a dispatcher name, with or without overload: "_c10d_functional::all_reduce".
CollectivePart collective_part(std::string_view name);

}  // namespace rematch
