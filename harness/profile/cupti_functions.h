// The part of CUPTI that is used, as a table: filled from the library that is loaded at run time,
// so that a program without a driver starts, or by tests. The only header that includes CUPTI's.
#pragma once

#include <cupti.h>

#include <set>
#include <string>

#include "harness/measure/gpu_monitor.h"
#include "harness/profile/activity.h"

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

// Reads the activity records in one of CUPTI's buffers. Pure but for CUPTI's own function that
// walks the buffer.

// Which of the external ids are ours. Kineto, which torch.profiler runs, pushes CUSTOM0 and CUSTOM1
// in the same process.
inline constexpr CUpti_ExternalCorrelationKind kOpCallId = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2;

// The calls of the runtime and of the driver that give the device a kernel.
class KernelLaunches {
 public:
  void add(CUpti_CallbackDomain domain, CUpti_CallbackId call);
  bool contain(const CUpti_ActivityAPI& call) const;

 private:
  std::set<CUpti_CallbackId> runtime_, driver_;
};

// Appends the kernels, transfers, links and launching calls among the first `valid_bytes` of
// `buffer`, and counts kernels and transfers without an end. Throws CuptiError if the buffer cannot
// be walked to its end.
void read_records(const CuptiFunctions& functions, const KernelLaunches& launches,
                  std::uint8_t* buffer, std::size_t valid_bytes, Activity& activity);

}  // namespace rematch
