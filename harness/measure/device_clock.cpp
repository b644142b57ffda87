#include "harness/measure/device_clock.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace rematch {

void synchronize(c10::Device device) {
  if (!device.is_cuda()) return;
  c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

std::chrono::steady_clock::time_point now_on(c10::Device device) {
  synchronize(device);
  return std::chrono::steady_clock::now();
}

}  // namespace rematch
