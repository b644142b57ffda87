// Tests calls of NVTX's own functions. They are observed by a tool that is linked into the test, as
// Nsight Systems would observe them.
#include <string>
#include <vector>

#include "harness/profile/nvtx_marker.h"
#include "tests/support/catch.h"
#include "tests/support/nvtx_tool.h"

namespace rematch {
namespace {

using testing::NvtxEvent;

std::string in_words(const NvtxEvent& event) {
  switch (event.kind) {
    case NvtxEvent::Kind::kPush:
      return "open " + event.name;
    case NvtxEvent::Kind::kPop:
      return "close";
    case NvtxEvent::Kind::kStart:
      return "start " + event.name;
    default:
      return "end " + std::to_string(event.range);
  }
}

TEST_CASE("NVTX receives nested ranges with their names") {
  testing::take_nvtx_events();
  {
    NvtxMarker marker(nvtx_functions());
    marker.begin_phase("forward");
    marker.begin_region("forward region blocks.0");
    marker.begin(1, "forward blocks.0 aten::linear");
    marker.begin(2, "forward blocks.0 aten::mm");
    marker.end();
    marker.end();
    marker.end_region();
    // Only the destructor ends this phase, as after a step that throws.
    marker.begin_phase("backward");
    marker.begin(3, "backward blocks.0 aten::mm");
    marker.end();
  }
  std::vector<std::string> heard;
  for (const NvtxEvent& event : testing::take_nvtx_events()) heard.push_back(in_words(event));
  CHECK(heard == std::vector<std::string>{"start forward", "open forward region blocks.0",
                                          "open forward blocks.0 aten::linear",
                                          "open forward blocks.0 aten::mm", "close", "close",
                                          "close", "end 1", "start backward",
                                          "open backward blocks.0 aten::mm", "close", "end 2"});
}

}  // namespace
}  // namespace rematch
