// Which ops start a collective and which complete one.
//
// Note [A collective and its wait]
// A functional collective is two ops: one starts the exchange and returns a tensor that may not be
// filled yet; `wait_tensor` returns when all that was started on its argument's storage is done. It
// gives back its very argument and names no alias, so neither outputs nor in-place writes tell that
// readers of the tensor need it. The rule: whoever runs the start again runs its wait too, on what
// the start returned, through whichever view it was waited for.
#pragma once

#include <cstdint>
#include <string_view>

namespace rematch {

enum class CollectivePart : std::uint8_t {
  kNothing,
  kStart,
  kWait,
  kStartWithHandle,  // returns a handle to wait by: no op tells that, or when, it is done
};

// `name` is a dispatcher name, with or without overload: "_c10d_functional::all_reduce".
CollectivePart collective_part(std::string_view name);

}  // namespace rematch
