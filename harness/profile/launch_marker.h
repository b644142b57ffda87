// Who marks, on the thread that launches, which op call its launches belong to.
#pragma once

#include <cstdint>
#include <string>

namespace rematch {

class LaunchMarker {
 public:
  virtual ~LaunchMarker() = default;
  // `op_call` is 1 + the index of the call, or kBatchOfStep; `name` is for people: "forward
  // blocks.3 aten::mm". Calls nest, per thread; each begin() is followed by an end() unless an op
  // throws.
  virtual void begin(std::uint64_t op_call, const std::string& name) = 0;
  virtual void end() = 0;
};

}  // namespace rematch
