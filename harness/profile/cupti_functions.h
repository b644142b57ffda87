// The functions of CUPTI that are used here, as a table. The library is loaded at run time, so that
// a program can start without a driver. Tests fill the table themselves. No other header includes
// CUPTI's.
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

// Loads CUPTI, by default the version that LibTorch ships. The library stays loaded. Throws
// CuptiError if the library or a function is missing.
CuptiFunctions load_cupti(const std::string& library = kCuptiLibrary);

// Throws CuptiError unless the library writes the records that this code was compiled for. A
// library writes the records of its own version, regardless of the caller's version.
void require_cupti_version(const CuptiFunctions& functions);

// The kind of our external correlation ids. CUSTOM0 and CUSTOM1 are taken: torch.profiler's Kineto
// pushes ids of these kinds in the same process.
inline constexpr CUpti_ExternalCorrelationKind kOpCallId = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2;

// The calls of the runtime and of the driver that launch a kernel.
class KernelLaunches {
 public:
  void add(CUpti_CallbackDomain domain, CUpti_CallbackId call);
  bool contain(const CUpti_ActivityAPI& call) const;

 private:
  std::set<CUpti_CallbackId> runtime_, driver_;
};

// Appends the kernels, transfers, links and launching calls in the first `valid_bytes` of `buffer`.
// Counts kernels and transfers without an end. Throws CuptiError if the buffer cannot be read to
// its end.
void read_records(const CuptiFunctions& functions, const KernelLaunches& launches,
                  std::uint8_t* buffer, std::size_t valid_bytes, Activity& activity);

}  // namespace rematch
