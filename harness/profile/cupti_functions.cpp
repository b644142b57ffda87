#include "harness/profile/cupti_functions.h"

#include <dlfcn.h>

#include "harness/profile/cupti_session.h"

namespace rematch {
namespace {

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) {
    throw CuptiError("CUPTI lacks " + std::string(name) + "; install the CUPTI of CUDA 13");
  }
}

// For example 130001 is 13.0, update 1. The format of records differs between 13.0 and 13.1.
constexpr std::uint32_t release_of(std::uint32_t version) { return version / 100; }

std::string release_name(std::uint32_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100);
}

}  // namespace

CuptiFunctions load_cupti(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    throw CuptiError("CUPTI is missing: " + std::string(dlerror()) +
                     "; the library comes with LibTorch, in nvidia/cu13/lib");
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
  if (result != CUPTI_SUCCESS) throw CuptiError("CUPTI does not report its version");
  if (release_of(version) == release_of(CUPTI_API_VERSION)) return;
  throw CuptiError("CUPTI " + release_name(version) +
                   " is loaded, but this build reads records of " +
                   release_name(CUPTI_API_VERSION) + "; is another CUDA in LD_LIBRARY_PATH?");
}

namespace {

using std::chrono::nanoseconds;

nanoseconds stamp(std::uint64_t count) { return nanoseconds(static_cast<std::int64_t>(count)); }

// Returns whether the kernel or transfer has ended. Counts unfinished ones. A record with neither
// start nor end was not timed. It counts as ended, so that the check of time stamps reports it.
template <class Record>
bool has_ended(const Record& record, Activity& activity) {
  if (record.end != 0 || record.start == 0) return true;
  ++activity.unfinished;
  return false;
}

// The records of copies and of memsets have the same fields under different types.
template <class Record>
void add_transfer(const CUpti_Activity* record, Activity& activity) {
  const auto& transfer = *reinterpret_cast<const Record*>(record);
  if (!has_ended(transfer, activity)) return;
  activity.transfers.push_back({stamp(transfer.start), stamp(transfer.end), transfer.correlationId,
                                Bytes{static_cast<std::int64_t>(transfer.bytes)}});
}

void add(const CUpti_Activity* record, const KernelLaunches& launches, Activity& activity) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& kernel = *reinterpret_cast<const CUpti_ActivityKernel10*>(record);
      if (!has_ended(kernel, activity)) return;
      activity.kernels.push_back({kernel.name == nullptr ? "" : kernel.name, stamp(kernel.start),
                                  stamp(kernel.end), kernel.correlationId});
      return;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      add_transfer<CUpti_ActivityMemcpy6>(record, activity);
      return;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      add_transfer<CUpti_ActivityMemcpyPtoP4>(record, activity);
      return;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      add_transfer<CUpti_ActivityMemset4>(record, activity);
      return;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto& link = *reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(record);
      if (link.externalKind != kOpCallId) return;
      activity.links.push_back({link.correlationId, link.externalId});
      return;
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: {
      const auto& call = *reinterpret_cast<const CUpti_ActivityAPI*>(record);
      // Skips calls that failed, and calls that launch no kernel.
      if (call.returnValue != 0 || !launches.contain(call)) return;
      activity.launches.push_back(
          {stamp(call.start), stamp(call.end), call.threadId, call.correlationId});
      return;
    }
    default:
      return;
  }
}

}  // namespace

void KernelLaunches::add(CUpti_CallbackDomain domain, CUpti_CallbackId call) {
  (domain == CUPTI_CB_DOMAIN_DRIVER_API ? driver_ : runtime_).insert(call);
}

bool KernelLaunches::contain(const CUpti_ActivityAPI& call) const {
  return (call.kind == CUPTI_ACTIVITY_KIND_DRIVER ? driver_ : runtime_).contains(call.cbid);
}

void read_records(const CuptiFunctions& functions, const KernelLaunches& launches,
                  std::uint8_t* buffer, std::size_t valid_bytes, Activity& activity) {
  CUpti_Activity* record = nullptr;
  while (valid_bytes > 0) {
    const CUptiResult result = functions.next_record(buffer, valid_bytes, &record);
    if (result == CUPTI_ERROR_MAX_LIMIT_REACHED) return;
    if (result != CUPTI_SUCCESS) {
      throw CuptiError("CUPTI cannot read its own records (error " + std::to_string(result) + ")");
    }
    add(record, launches, activity);
  }
}

}  // namespace rematch
