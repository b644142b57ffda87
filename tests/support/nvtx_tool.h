// A tool that NVTX's functions tell of ranges, linked into the test: what Nsight Systems would
// hear.
#pragma once

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace rematch::testing {

struct NvtxEvent {
  enum class Kind : std::uint8_t { kPush, kPop, kStart, kEnd };
  Kind kind = Kind::kPush;
  std::string name;  // of what opens
  std::thread::id thread;
  std::uint64_t range = 0;  // of the process's ranges
  bool operator==(const NvtxEvent&) const = default;
};

// What was heard since this was last called, in its order. The first call attaches the tool, so it
// comes before the first range.
std::vector<NvtxEvent> take_nvtx_events();

}  // namespace rematch::testing
