#include "harness/profile/cupti_records.h"

#include "harness/profile/cupti_session.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

nanoseconds stamp(std::uint64_t count) { return nanoseconds(static_cast<std::int64_t>(count)); }

Transfer transfer_of(std::uint8_t copy_kind) {
  switch (copy_kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return Transfer::kHostToDevice;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return Transfer::kDeviceToHost;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return Transfer::kDeviceToDevice;
    default:
      return Transfer::kOther;
  }
}

// Copies between devices and within one have the same fields under different types.
template <class Record>
void add_copy(const CUpti_Activity* record, Transfer kind, Activity& activity) {
  const auto& copy = *reinterpret_cast<const Record*>(record);
  activity.transfers.push_back({kind, Bytes{static_cast<std::int64_t>(copy.bytes)},
                                stamp(copy.start), stamp(copy.end), copy.correlationId});
}

void add(const CUpti_Activity* record, Activity& activity) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& kernel = *reinterpret_cast<const CUpti_ActivityKernel10*>(record);
      activity.kernels.push_back({kernel.name == nullptr ? "" : kernel.name, stamp(kernel.start),
                                  stamp(kernel.end), kernel.correlationId});
      return;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = *reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
      add_copy<CUpti_ActivityMemcpy6>(record, transfer_of(copy.copyKind), activity);
      return;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      add_copy<CUpti_ActivityMemcpyPtoP4>(record, Transfer::kDeviceToDevice, activity);
      return;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      add_copy<CUpti_ActivityMemset4>(record, Transfer::kSet, activity);
      return;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto& link = *reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(record);
      if (link.externalKind != kOpCallId) return;
      activity.links.push_back({link.correlationId, link.externalId});
      return;
    }
    default:
      return;
  }
}

}  // namespace

void read_records(const CuptiFunctions& functions, std::uint8_t* buffer, std::size_t valid_bytes,
                  Activity& activity) {
  CUpti_Activity* record = nullptr;
  while (valid_bytes > 0) {
    const CUptiResult result = functions.next_record(buffer, valid_bytes, &record);
    if (result == CUPTI_ERROR_MAX_LIMIT_REACHED) return;
    if (result != CUPTI_SUCCESS) {
      throw CuptiError("CUPTI cannot read its own records (error " + std::to_string(result) + ")");
    }
    add(record, activity);
  }
}

}  // namespace rematch
