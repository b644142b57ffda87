// The state of the thread and the process that kernels read in addition to their arguments.
// Examples are autocast, the flags of at::Context, the default dtype and the number of threads.
// Recompute runs each op under the same state as in forward, even if the program has changed the
// state since.
//
// Note [What kernels read] A kernel may call other ops, to which autocast applies again. A kernel
// may also choose its algorithm by a global flag. A program may set such state only for a block of
// code, and may change it before backward. The state rarely changes between the ops of a region, so
// the recorder compares the state before each op, and stores it only when it has changed.
#pragma once

#include <ATen/Context.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/ScalarType.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "policies/base/id.h"

namespace rematch {

class KernelContext {
 public:
  // The context of the calling thread.
  static KernelContext current();

  // Returns whether the calling thread has this context. The recorder calls this before every
  // recorded op.
  bool is_current() const;

  // Sets the context of the calling thread. The flags of at::Context change for the whole process.
  void apply() const;

  bool operator==(const KernelContext&) const = default;

 private:
  static constexpr std::size_t kMaxFlagBytes = 128;
  static constexpr std::size_t kNumPrecisions = 9;  // entries of at::Context::fp32_precision
  static constexpr std::size_t kNumAutocastDevices = 10;

  bool is_under_autocast() const { return autocast_off_ != c10::autocast_dispatch_keyset; }
  bool has_current_flags() const;
  bool has_current_autocast() const;

  c10::DispatchKeySet autocast_off_;  // keys of the devices whose autocast is off
  std::uint32_t float_control_ = 0;   // rounding mode and denormals
  int num_threads_ = 0;
  c10::ScalarType default_dtype_ = c10::ScalarType::Undefined;
  bool grad_mode_ = false;
  bool autocast_cache_ = false;
  std::array<c10::ScalarType, kNumAutocastDevices> autocast_dtypes_{};
  std::array<at::Float32Precision, kNumPrecisions> precisions_{};
  std::array<std::byte, kMaxFlagBytes> flags_{};
};

// Switches the thread between recorded contexts. The destructor restores the original context.
class KernelContextGuard {
 public:
  explicit KernelContextGuard(const std::vector<KernelContext>& contexts) : contexts_(contexts) {}
  ~KernelContextGuard() {
    if (before_.has_value()) before_->apply();
  }
  KernelContextGuard(const KernelContextGuard&) = delete;
  KernelContextGuard& operator=(const KernelContextGuard&) = delete;

  void enter(std::int32_t context) {
    if (entered_ != OptionalIndex(context)) change_to(context);
  }

 private:
  void change_to(std::int32_t context);

  const std::vector<KernelContext>& contexts_;
  OptionalIndex entered_;
  std::optional<KernelContext> before_;
};

}  // namespace rematch
