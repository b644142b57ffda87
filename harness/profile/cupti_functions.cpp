#include "harness/profile/cupti_functions.h"

#include <dlfcn.h>

#include "harness/profile/cupti_session.h"

namespace rematch {
namespace {

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) {
    throw CuptiError("CUPTI lacks " + std::string(name) + "; install CUPTI of CUDA 13");
  }
}

// 130001 is 13.0, update 1; records change between 13.0 and 13.1.
constexpr std::uint32_t release_of(std::uint32_t version) { return version / 100; }

std::string release_name(std::uint32_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100);
}

}  // namespace

CuptiFunctions load_cupti(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    throw CuptiError("CUPTI is missing: " + std::string(dlerror()) +
                     "; it comes with LibTorch, in nvidia/cu13/lib");
  }
  CuptiFunctions functions;
  find(handle, "cuptiGetVersion", functions.get_version);
  find(handle, "cuptiGetResultString", functions.result_string);
  find(handle, "cuptiGetTimestamp", functions.timestamp);
  find(handle, "cuptiGetCallbackName", functions.call_name);
  find(handle, "cuptiSubscribe", functions.subscribe);
  find(handle, "cuptiUnsubscribe", functions.unsubscribe);
  find(handle, "cuptiActivityRegisterCallbacks", functions.register_callbacks);
  find(handle, "cuptiActivityEnable", functions.enable);
  find(handle, "cuptiActivityDisable", functions.disable);
  find(handle, "cuptiActivityEnableRuntimeApi", functions.enable_runtime_call);
  find(handle, "cuptiActivityEnableDriverApi", functions.enable_driver_call);
  find(handle, "cuptiActivityPushExternalCorrelationId", functions.push_id);
  find(handle, "cuptiActivityPopExternalCorrelationId", functions.pop_id);
  find(handle, "cuptiActivityFlushAll", functions.flush_all);
  find(handle, "cuptiActivityGetNextRecord", functions.next_record);
  find(handle, "cuptiActivityGetNumDroppedRecords", functions.num_dropped);
  return functions;
}

void require_cupti_version(const CuptiFunctions& functions) {
  std::uint32_t version = 0;
  const CUptiResult result = functions.get_version(&version);
  if (result != CUPTI_SUCCESS) throw CuptiError("CUPTI does not tell its version");
  if (release_of(version) == release_of(CUPTI_API_VERSION)) return;
  throw CuptiError("CUPTI " + release_name(version) +
                   " is loaded, and this build reads records of " +
                   release_name(CUPTI_API_VERSION) + "; is another CUDA in LD_LIBRARY_PATH?");
}

}  // namespace rematch
