// Decides which ops start a collective and which ops complete a collective.
//
// Note [A collective and its wait] A functional collective consists of two ops. The first op starts
// the exchange and returns a tensor that may not be filled yet. The second op, `wait_tensor`,
// returns its argument once the tensor is filled, and declares no alias. A trace therefore does not
// show that readers of the tensor depend on the wait. For this reason, code that runs the first op
// again must also run its wait again.
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
  // starts a collective and returns a handle; no op waits for the collective
  kStartWithHandle,
};

// The kinds of collectives. Reports count collectives by kind.
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

// Returns the kind of an op that starts a functional collective, and nullopt for other ops,
// including waits.
std::optional<CollectiveKind> collective_kind(std::string_view name);

// Returns whether an op gathers sharded parameters: it is an all-gather, and all its inputs come
// from outside the step.
bool is_parameter_gather(const Trace& trace, const TracedOp& op);

// Returns the parameter gathers of a block, in order. FSDP issues such gathers.
std::vector<OpId> parameter_gathers(const Trace& trace, const TracedBlock& block);
bool blocks_gather_parameters(const Trace& trace);

// `name` is a dispatcher name, with or without overload: "_c10d_functional::all_reduce".
CollectivePart collective_part(std::string_view name);

}  // namespace rematch
