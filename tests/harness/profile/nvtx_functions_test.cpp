// NVTX's own functions, heard by a tool that is linked in: as Nsight Systems would hear them.
#define NVTX_NO_IMPL  // a tool needs the declarations alone
#include <nvtx3/nvToolsExt.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "harness/profile/nvtx_marker.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

// NVTX's callbacks carry no user pointer.
std::vector<std::string> heard;

int hear_push(const char* name) {
  heard.push_back(std::string("open ") + name);
  return 0;
}

int hear_pop() {
  heard.emplace_back("close");
  return 0;
}

// 1: the tool is attached.
int attach(NvtxGetExportTableFunc_t tables) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(tables(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable functions = nullptr;
  unsigned int num_functions = 0;
  if (callbacks == nullptr ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &functions, &num_functions) == 0) {
    return 0;
  }
  *functions[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(hear_push);
  *functions[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(hear_pop);
  return 1;
}

}  // namespace
}  // namespace rematch

// Where NVTX looks for a tool if the environment names none.
extern "C" {
NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = rematch::attach;
}

namespace rematch {
namespace {

TEST_CASE("NVTX's ranges are heard by name, and nest") {
  unsetenv("NVTX_INJECTION64_PATH");  // a profiler that the test itself runs under
  heard.clear();
  NvtxMarker marker(nvtx_functions());
  marker.begin(1, "forward blocks.0 aten::linear");
  marker.begin(2, "forward blocks.0 aten::mm");
  marker.end();
  marker.end();
  marker.begin(3, "backward blocks.0 aten::mm");
  marker.end();
  CHECK(heard == std::vector<std::string>{"open forward blocks.0 aten::linear",
                                          "open forward blocks.0 aten::mm", "close", "close",
                                          "open backward blocks.0 aten::mm", "close"});
}

}  // namespace
}  // namespace rematch
