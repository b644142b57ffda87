// The part of CUPTI that is used, as a table: filled from the library that is loaded at run time,
// so that a program without a driver starts, or by tests. The only header that includes CUPTI's.
#pragma once

#include <cupti.h>

#include <string>

#include "harness/measure/cupti_version.h"

namespace rematch {

struct CuptiFunctions {
  decltype(&cuptiGetVersion) get_version = nullptr;
  decltype(&cuptiGetResultString) result_string = nullptr;
  decltype(&cuptiGetTimestamp) timestamp = nullptr;
  decltype(&cuptiGetCallbackName) call_name = nullptr;
  decltype(&cuptiSubscribe) subscribe = nullptr;
  decltype(&cuptiUnsubscribe) unsubscribe = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityEnableRuntimeApi) enable_runtime_call = nullptr;
  decltype(&cuptiActivityEnableDriverApi) enable_driver_call = nullptr;
  decltype(&cuptiActivityPushExternalCorrelationId) push_id = nullptr;
  decltype(&cuptiActivityPopExternalCorrelationId) pop_id = nullptr;
  decltype(&cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) num_dropped = nullptr;
};

// The library of the version that this was compiled with; LibTorch brings it along. It stays
// loaded. Throws CuptiError if it, or one of the functions, is not there.
CuptiFunctions load_cupti(const std::string& library = kCuptiLibrary);

// Throws CuptiError unless the library writes the records that this was compiled for: it writes
// those of its own version, whatever the caller expects.
void require_cupti_version(const CuptiFunctions& functions);

}  // namespace rematch
