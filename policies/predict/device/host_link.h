// The link between a device and the host's memory, as far as a prediction needs to know it: bytes a
// second in each direction. Knows nothing of what hides a copy.
#pragma once

#include <chrono>
#include <cmath>
#include <string>

#include "policies/base/bytes.h"

namespace rematch {

struct HostLink {
  double to_host_bytes_per_second = 0;
  double to_device_bytes_per_second = 0;
  std::string source;  // "--link-rate 50GB/s", "data sheet of h100"

  // How long copies take with nothing beside them.
  std::chrono::nanoseconds time_of(Bytes out, Bytes back) const {
    constexpr double kNanosecondsInSecond = 1e9;
    const double seconds = static_cast<double>(out.count) / to_host_bytes_per_second +
                           static_cast<double>(back.count) / to_device_bytes_per_second;
    return std::chrono::nanoseconds(std::llround(seconds * kNanosecondsInSecond));
  }
};

}  // namespace rematch
