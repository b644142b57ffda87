// Stand-in for libcupti. Converts records of the stand-in runtime to CUPTI's record types, and
// delivers them in CUPTI's buffers. Loses or delays a record only if a test requests it. As in
// CUPTI, a kernel gets its caller's external id only if calls of the launch function are traced.
// The launch function is cudaLaunchKernel for the program's kernels, and the driver's
// cuLaunchKernelEx for kernels of libraries.
#include <cupti.h>

#include <bitset>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <vector>

#include "harness/dry_cuda/dry_cuda.h"

namespace dry_cuda {
namespace {

constexpr std::size_t kMaxCalls = 2048;

struct Link {
  CUpti_ExternalCorrelationKind kind;
  std::uint64_t id;
};

// The fate of a kernel's record. Values other than kDelivered occur only if a test requests them.
enum class Fate { kDelivered, kLost, kWithheld, kUnfinished };

struct Entry {
  DryCudaRecord record;
  std::vector<Link> links;
  CUpti_ActivityKind call_kind;
  CUpti_CallbackId call;
  bool is_call_traced;
  Fate fate = Fate::kDelivered;
};

struct Session {
  std::mutex mutex;
  bool has_subscriber = false;
  std::set<CUpti_ActivityKind> kinds;
  std::bitset<kMaxCalls> runtime_calls, driver_calls;  // functions whose calls are traced
  std::vector<Entry> entries;
  std::vector<Entry> withheld;  // delivered only by a forced flush
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
};
Session session;

thread_local std::map<CUpti_ExternalCorrelationKind, std::vector<std::uint64_t>> external_ids;

CUpti_ActivityKind kind_of(const DryCudaRecord& record) {
  switch (record.kind) {
    case DRY_CUDA_KERNEL:
      return CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    case DRY_CUDA_SET:
      return CUPTI_ACTIVITY_KIND_MEMSET;
    default:
      return CUPTI_ACTIVITY_KIND_MEMCPY;
  }
}

struct Call {
  const char* name;  // the function's name in DryCudaRecord::call
  CUpti_ActivityKind kind;
  CUpti_CallbackId id;
};

constexpr Call kCalls[] = {
    {"__cudaLaunchKernel", CUPTI_ACTIVITY_KIND_RUNTIME,
     CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000},
    {"cudaLaunchKernel", CUPTI_ACTIVITY_KIND_RUNTIME,
     CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000},
    {"cudaLaunchKernelExC", CUPTI_ACTIVITY_KIND_RUNTIME,
     CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060},
    {"cudaLaunchCooperativeKernel", CUPTI_ACTIVITY_KIND_RUNTIME,
     CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000},
    {"cudaMemcpy", CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020},
    {"cudaMemcpyAsync", CUPTI_ACTIVITY_KIND_RUNTIME,
     CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020},
    {"cudaMemcpyPeerAsync", CUPTI_ACTIVITY_KIND_RUNTIME,
     CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyPeerAsync_v4000},
    {"cudaMemcpyToSymbol", CUPTI_ACTIVITY_KIND_RUNTIME,
     CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyToSymbol_v3020},
    {"cudaMemset", CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaMemset_v3020},
    {"cudaMemsetAsync", CUPTI_ACTIVITY_KIND_RUNTIME,
     CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020},
    {"cuLaunchKernelEx", CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx}};

Entry entry_of(const DryCudaRecord& record) {
  for (const Call& call : kCalls) {
    if (std::string_view(call.name) == record.call) return {record, {}, call.kind, call.id, false};
  }
  std::abort();  // the stand-in runtime recorded a function that is missing in kCalls
}

Fate fate_of(const DryCudaRecord& record) {
  if (record.kind != DRY_CUDA_KERNEL) return Fate::kDelivered;
  if (dry_cuda_planted("cupti.lost_record") != 0) return Fate::kLost;
  if (dry_cuda_planted("cupti.withheld_record") != 0) return Fate::kWithheld;
  if (dry_cuda_planted("cupti.unfinished_record") != 0) return Fate::kUnfinished;
  return Fate::kDelivered;
}

void listen(const DryCudaRecord* record) {
  const std::lock_guard lock(session.mutex);
  if (session.kinds.count(kind_of(*record)) == 0) return;
  Entry entry = entry_of(*record);
  const auto& traced =
      entry.call_kind == CUPTI_ACTIVITY_KIND_DRIVER ? session.driver_calls : session.runtime_calls;
  entry.is_call_traced = traced[entry.call];
  if (entry.is_call_traced && session.kinds.count(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) != 0) {
    for (const auto& [kind, ids] : external_ids) {
      if (!ids.empty()) entry.links.push_back({kind, ids.back()});
    }
  }
  entry.fate = fate_of(*record);
  session.entries.push_back(std::move(entry));
}

// Returns 0 for record kinds that this stand-in never writes.
std::size_t size_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(CUpti_ActivityExternalCorrelation);
    default:
      return 0;
  }
}

// Writes records into buffers. Requests a buffer only when there is a record to write.
class Writer {
 public:
  template <class Record>
  void write(const Record& record) {
    if (buffer_ != nullptr && used_ + sizeof record > room_) finish();
    if (buffer_ == nullptr) {
      std::size_t most_records = 0;
      session.request(&buffer_, &room_, &most_records);
    }
    std::memcpy(buffer_ + used_, &record, sizeof record);
    used_ += sizeof record;
  }

  void finish() {
    if (buffer_ != nullptr) session.complete(nullptr, 0, buffer_, room_, used_);
    buffer_ = nullptr;
    used_ = 0;
  }

 private:
  std::uint8_t* buffer_ = nullptr;
  std::size_t room_ = 0;
  std::size_t used_ = 0;
};

void write_call(Writer& writer, const Entry& entry) {
  for (const Link& link : entry.links) {
    CUpti_ActivityExternalCorrelation record{};
    record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    record.externalKind = link.kind;
    record.externalId = link.id;
    record.correlationId = entry.record.correlation;
    writer.write(record);
  }
  if (!entry.is_call_traced) return;
  CUpti_ActivityAPI record{};
  record.kind = entry.call_kind;
  record.cbid = entry.call;
  record.start = entry.record.start_ns;
  record.end = entry.record.end_ns;
  record.correlationId = entry.record.correlation;
  writer.write(record);
}

template <class Record>
Record device_record(const DryCudaRecord& from) {
  Record record{};
  record.kind = kind_of(from);
  record.start = from.start_ns;
  record.end = from.end_ns;
  record.deviceId = static_cast<std::uint32_t>(from.device);
  record.contextId = 1;
  record.correlationId = from.correlation;
  return record;
}

std::uint8_t copy_kind_of(std::string_view name) {
  if (name == "HtoD") return CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  if (name == "DtoH") return CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
  return name == "DtoD" ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOD : CUPTI_ACTIVITY_MEMCPY_KIND_HTOH;
}

void write_work(Writer& writer, const DryCudaRecord& from) {
  if (from.kind == DRY_CUDA_KERNEL) {
    auto record = device_record<CUpti_ActivityKernel10>(from);
    record.gridX = static_cast<std::int32_t>(from.grid[0]);
    record.gridY = static_cast<std::int32_t>(from.grid[1]);
    record.gridZ = static_cast<std::int32_t>(from.grid[2]);
    record.blockX = static_cast<std::int32_t>(from.block[0]);
    record.blockY = static_cast<std::int32_t>(from.block[1]);
    record.blockZ = static_cast<std::int32_t>(from.block[2]);
    record.dynamicSharedMemory = static_cast<std::int32_t>(from.shared_bytes);
    record.name = from.name;
    writer.write(record);
  } else if (from.kind == DRY_CUDA_SET) {
    auto record = device_record<CUpti_ActivityMemset4>(from);
    record.bytes = from.bytes;
    writer.write(record);
  } else {
    auto record = device_record<CUpti_ActivityMemcpy6>(from);
    record.bytes = from.bytes;
    record.copyKind = copy_kind_of(from.name);
    writer.write(record);
  }
}

void trace_calls(CUpti_ActivityKind kind, bool on) {
  if (kind == CUPTI_ACTIVITY_KIND_RUNTIME)
    on ? session.runtime_calls.set() : session.runtime_calls.reset();
  if (kind == CUPTI_ACTIVITY_KIND_DRIVER)
    on ? session.driver_calls.set() : session.driver_calls.reset();
}

CUptiResult trace_call(std::bitset<kMaxCalls>& calls, CUpti_CallbackId call, bool on) {
  const std::lock_guard lock(session.mutex);
  if (call >= kMaxCalls) return CUPTI_ERROR_INVALID_PARAMETER;
  calls[call] = on;
  return CUPTI_SUCCESS;
}

}  // namespace
}  // namespace dry_cuda

extern "C" {

using namespace dry_cuda;

CUptiResult cuptiGetVersion(uint32_t* version) {
  *version = CUPTI_API_VERSION;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t* timestamp) {
  *timestamp = dry_cuda_clock_ns();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id, const char** name) {
  const auto kind = domain == CUPTI_CB_DOMAIN_DRIVER_API ? CUPTI_ACTIVITY_KIND_DRIVER
                                                         : CUPTI_ACTIVITY_KIND_RUNTIME;
  *name = "a function that starts no work on the device";
  for (const Call& call : kCalls) {
    if (call.kind == kind && call.id == id) *name = call.name;
  }
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == CUPTI_SUCCESS ? "CUPTI_SUCCESS" : "an error of the dry device's CUPTI";
  return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc, void*) {
  if (const int code = dry_cuda_planted("cuptiSubscribe")) return static_cast<CUptiResult>(code);
  const std::lock_guard lock(session.mutex);
  if (session.has_subscriber) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  session.has_subscriber = true;
  *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(&session);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle) {
  const std::lock_guard lock(session.mutex);
  session.has_subscriber = false;
  session.withheld.clear();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  const std::lock_guard lock(session.mutex);
  session.request = request;
  session.complete = complete;
  dry_cuda_listen(&listen);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  const std::lock_guard lock(session.mutex);
  session.kinds.insert(kind);
  trace_calls(kind, true);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  const std::lock_guard lock(session.mutex);
  session.kinds.erase(kind);
  trace_calls(kind, false);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId call, uint8_t on) {
  return trace_call(session.runtime_calls, call, on != 0);
}

CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId call, uint8_t on) {
  return trace_call(session.driver_calls, call, on != 0);
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                   uint64_t id) {
  external_ids[kind].push_back(id);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                  uint64_t* last) {
  std::vector<std::uint64_t>& ids = external_ids[kind];
  if (ids.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
  if (last != nullptr) *last = ids.back();
  ids.pop_back();
  return CUPTI_SUCCESS;
}

// CUPTI keeps records of host calls in separate buffers, one per thread. So a call's record is
// delivered even if its kernel's record is lost or withheld.
CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  const bool is_forced = (flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0;
  std::vector<Entry> delivered;
  std::vector<Entry> withheld;
  {
    const std::lock_guard lock(session.mutex);
    delivered.swap(session.entries);
    for (const Entry& entry : delivered) {
      if (entry.fate >= Fate::kWithheld) session.withheld.push_back(entry);
    }
    if (is_forced) withheld.swap(session.withheld);
  }
  Writer writer;
  for (const Entry& entry : delivered) {
    write_call(writer, entry);
    if (entry.fate == Fate::kDelivered) write_work(writer, entry.record);
  }
  for (Entry& entry : withheld) {
    if (entry.fate == Fate::kUnfinished) entry.record.end_ns = 0;
    write_work(writer, entry.record);
  }
  writer.finish();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid_bytes,
                                       CUpti_Activity** record) {
  std::uint8_t* next = buffer;
  if (*record != nullptr) {
    next = reinterpret_cast<std::uint8_t*>(*record) + size_of((*record)->kind);
  }
  if (next >= buffer + valid_bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return size_of((*record)->kind) == 0 ? CUPTI_ERROR_INVALID_KIND : CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  *dropped = 0;
  return CUPTI_SUCCESS;
}

}  // extern "C"
