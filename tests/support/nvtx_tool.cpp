#include "tests/support/nvtx_tool.h"

#define NVTX_NO_IMPL  // a tool needs only the declarations
#include <nvtx3/nvToolsExt.h>

#include <cstdlib>
#include <mutex>
#include <utility>

namespace rematch::testing {
namespace {

// Global state, because NVTX passes no user data to callbacks.
std::mutex mutex;
std::vector<NvtxEvent> heard;
std::uint64_t num_started = 0;

void hear(NvtxEvent::Kind kind, const char* name, std::uint64_t range) {
  heard.push_back({kind, name, std::this_thread::get_id(), range});
}

int hear_push(const char* name) {
  const std::lock_guard lock(mutex);
  hear(NvtxEvent::Kind::kPush, name, 0);
  return 0;
}

int hear_pop() {
  const std::lock_guard lock(mutex);
  hear(NvtxEvent::Kind::kPop, "", 0);
  return 0;
}

std::uint64_t hear_start(const char* name) {
  const std::lock_guard lock(mutex);
  hear(NvtxEvent::Kind::kStart, name, ++num_started);
  return num_started;
}

void hear_end(std::uint64_t range) {
  const std::lock_guard lock(mutex);
  hear(NvtxEvent::Kind::kEnd, "", range);
}

// NVTX calls this to attach the tool. Returns 1 on success.
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
  *functions[NVTX_CBID_CORE_RangeStartA] = reinterpret_cast<NvtxFunctionPointer>(hear_start);
  *functions[NVTX_CBID_CORE_RangeEnd] = reinterpret_cast<NvtxFunctionPointer>(hear_end);
  return 1;
}

}  // namespace

std::vector<NvtxEvent> take_nvtx_events() {
  unsetenv("NVTX_INJECTION64_PATH");  // a profiler that started this test may have set it
  const std::lock_guard lock(mutex);
  return std::exchange(heard, {});
}

}  // namespace rematch::testing

// NVTX attaches this tool if the environment names no other tool.
extern "C" {
NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = rematch::testing::attach;
}
