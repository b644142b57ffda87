// An NVTX tool linked into the test. It receives the same range events as Nsight Systems.
#pragma once

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace rematch::testing {

struct NvtxEvent {
  enum class Kind : std::uint8_t { kPush, kPop, kStart, kEnd };
  Kind kind = Kind::kPush;
  std::string name;  // the name of a range that opens; empty otherwise
  std::thread::id thread;
  std::uint64_t range = 0;  // id of a process range; 0 for the ranges of a thread
  bool operator==(const NvtxEvent&) const = default;
};

// Returns the events since the last call, in order. Call it once before the first range, because
// the first call attaches the tool.
std::vector<NvtxEvent> take_nvtx_events();

}  // namespace rematch::testing
