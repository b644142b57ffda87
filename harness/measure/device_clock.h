// Time on a device: what was launched counts when it has run, not when it was launched.
#pragma once

#include <c10/core/Device.h>

#include <chrono>

namespace rematch {

// Waits until all that was launched on the device has run; on the CPU and on meta a call is over
// when it returns.
void synchronize(c10::Device device);

// Synchronizes first.
std::chrono::steady_clock::time_point now_on(c10::Device device);

}  // namespace rematch
