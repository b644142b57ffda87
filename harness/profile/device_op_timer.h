// Times every op on its device's clock, for a device that runs ops after their calls return.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "harness/engine/interception.h"
#include "harness/engine/record/opaque_call.h"
#include "harness/profile/step_ops.h"

namespace rematch {

// Records an event in the current stream before and after each op, while an OpModeGuard installs
// this mode. Autograd runs backward on a separate thread for each GPU, so a BackwardThreadsGuard
// must install the mode too. An op that is shorter than its launch appears too long, because the
// time between its two events then includes a wait for the host.
//
// Until finish() is called, a list holds zeros instead of times. Only one thread at a time may run
// ops.
class DeviceOpTimer final : public OpMode, public OpaqueCall::Timer {
 public:
  using Duration = Profile::Duration;
  explicit DeviceOpTimer(c10::Device device) : device_(device) {}

  // Sets the list to which the times of later ops are appended. With null, ops run but are not
  // timed.
  void set_list(std::vector<OpFigure<Duration>>* list) { list_ = list; }

  // Waits for the device, and writes the times into the lists, which must still exist.
  void finish();

  void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack,
           std::size_t depth) override;

  void begin_opaque() override;
  void end_opaque(const std::string& op) override;

 private:
  struct Timed {
    std::vector<OpFigure<Duration>>* list;
    std::size_t index;
    c10::Event begin, end;
  };

  c10::Device device_;
  std::vector<OpFigure<Duration>>* list_ = nullptr;
  std::vector<Timed> timed_;
  std::optional<c10::Event> opaque_begin_;
};

}  // namespace rematch
