// Activity of a device, as plain data: filled by CuptiSession, by tests, or from a recorded file.
// Nothing here knows CUPTI.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "policies/base/bytes.h"

namespace rematch {

// One kernel that ran. Times are the device's clock; 0 as a start means that there was no stamp.
struct KernelActivity {
  std::string symbol;  // as the driver has it, mangled
  std::chrono::nanoseconds start{};
  std::chrono::nanoseconds end{};
  std::uint32_t correlation = 0;  // of the call that launched it
};

enum class Transfer : std::uint8_t { kHostToDevice, kDeviceToHost, kDeviceToDevice, kSet, kOther };

// A memcpy or memset.
struct TransferActivity {
  Transfer kind = Transfer::kOther;
  Bytes bytes;
  std::chrono::nanoseconds start{};
  std::chrono::nanoseconds end{};
  std::uint32_t correlation = 0;
};

// Stands for an op call where a step's input is made, which is no op of the step.
inline constexpr std::uint64_t kBatchOfStep = ~std::uint64_t{0};

// The launching call happened while this op call was the innermost of its thread.
struct LaunchLink {
  std::uint32_t correlation = 0;
  std::uint64_t op_call = 0;  // 1 + index of the op call, or kBatchOfStep
};

struct Activity {
  std::vector<KernelActivity> kernels;
  std::vector<TransferActivity> transfers;
  std::vector<LaunchLink> links;
  std::int64_t dropped = 0;  // records that were lost for want of buffers
};

}  // namespace rematch
