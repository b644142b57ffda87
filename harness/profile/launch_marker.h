// Who marks, on the thread that launches, which op call its launches belong to, and in which region
// and phase it is.
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

  // Around the calls of a region's forward, or of a stretch of its recompute, on their thread:
  // "recompute region blocks.3". They nest with the calls.
  virtual void begin_region(const std::string& /*name*/) {}
  virtual void end_region() noexcept {}

  // Around all calls of a step's phase, on whatever threads they are. begin_phase() ends the phase
  // before.
  virtual void begin_phase(const std::string& /*name*/) {}
  virtual void end_phase() noexcept {}
};

}  // namespace rematch
