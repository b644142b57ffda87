// An NVTX tool linked into the test. It receives the same events as Nsight Systems.
#pragma once

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace rematch::testing {

struct NvtxEvent {
  enum class Kind : std::uint8_t { kPush, kPop, kStart, kEnd };
  Kind kind = Kind::kPush;
  std::string name;  // the name of a range, if the event opens a range; otherwise empty
  std::thread::id thread;
  std::uint64_t range = 0;  // id of a process range; 0 for the ranges of a thread
  bool operator==(const NvtxEvent&) const = default;
};

// Returns the events since the previous call, in order. The first call attaches the tool, so call
// this function once before the first range.
std::vector<NvtxEvent> take_nvtx_events();

}  // namespace rematch::testing
