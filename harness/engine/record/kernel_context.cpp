#include "harness/engine/record/kernel_context.h"

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

namespace rematch {
namespace {

// Note [Flags of at::Context] The getters of at::Context are calls into another library, and some
// of them warn or throw if a program mixes old and new names of a flag. So this file reads the
// private members that hold the flags. C++ allows an explicit template instantiation to name
// private members. If a LibTorch release renames the members, this file does not compile.
using PrecisionKey = std::pair<at::Float32Backend, at::Float32Op>;
using Precisions = std::unordered_map<PrecisionKey, at::Float32Precision, c10::hash<PrecisionKey>>;

template <class Tag, typename Tag::Member kMember>
struct Expose {
  friend typename Tag::Member member_of(Tag /*tag*/) { return kMember; }
};
struct FirstFlag {
  using Member = bool at::Context::*;
  friend Member member_of(FirstFlag tag);
};
struct PrecisionTable {
  using Member = Precisions at::Context::*;
  friend Member member_of(PrecisionTable tag);
};
template struct Expose<FirstFlag, &at::Context::enabled_cudnn>;
template struct Expose<PrecisionTable, &at::Context::fp32_precision>;

// The flags in at::Context: everything from the first flag to the precision table. The table marks
// the end, because the last flag differs between versions of LibTorch. The context never moves, and
// entries are never removed from the table.
struct FlagPlaces {
  FlagPlaces() {
    at::Context& context = at::globalContext();
    first = reinterpret_cast<std::byte*>(&(context.*member_of(FirstFlag{})));
    Precisions& table = context.*member_of(PrecisionTable{});
    num_bytes = static_cast<std::size_t>(reinterpret_cast<std::byte*>(&table) - first);
    for (auto& [key, precision] : table) {
      precisions.push_back(&precision);
    }
  }
  std::byte* first = nullptr;
  std::size_t num_bytes = 0;
  std::vector<at::Float32Precision*> precisions;
};

const FlagPlaces& flag_places() {
  static const auto* places = new FlagPlaces;
  return *places;
}

c10::DispatchKeySet current_autocast_off() {
  return c10::impl::tls_local_dispatch_key_set().excluded_ & c10::autocast_dispatch_keyset;
}

#if defined(__SSE__)
constexpr std::uint32_t kFloatExceptions = 0x3F;  // status flags, which do not affect results
std::uint32_t current_float_control() { return _mm_getcsr() & ~kFloatExceptions; }
void set_float_control(std::uint32_t control) {
  _mm_setcsr((_mm_getcsr() & kFloatExceptions) | control);
}
#else
std::uint32_t current_float_control() { return 0; }
void set_float_control(std::uint32_t /*control*/) {}
#endif

}  // namespace

KernelContext KernelContext::current() {
  const FlagPlaces& places = flag_places();
  TORCH_CHECK(places.num_bytes <= kMaxFlagBytes && places.precisions.size() == kNumPrecisions &&
                  at::autocast::_AUTOCAST_SUPPORTED_DEVICES.size() == kNumAutocastDevices,
              "rematch: at::Context has different flags than in LibTorch 2.11 to 2.15");
  KernelContext context;
  context.autocast_off_ = current_autocast_off();
  context.float_control_ = current_float_control();
  context.num_threads_ = at::get_num_threads();
  context.default_dtype_ = c10::get_default_dtype_as_scalartype();
  context.grad_mode_ = c10::GradMode::is_enabled();
  context.autocast_cache_ = at::autocast::is_autocast_cache_enabled();
  for (std::size_t device = 0; device < kNumAutocastDevices; ++device) {
    context.autocast_dtypes_[device] =
        at::autocast::get_autocast_dtype(at::autocast::_AUTOCAST_SUPPORTED_DEVICES[device]);
  }
  for (std::size_t i = 0; i < kNumPrecisions; ++i) context.precisions_[i] = *places.precisions[i];
  std::memcpy(context.flags_.data(), places.first, places.num_bytes);
  return context;
}

bool KernelContext::is_current() const {
  return autocast_off_ == current_autocast_off() && grad_mode_ == c10::GradMode::is_enabled() &&
         float_control_ == current_float_control() && num_threads_ == at::get_num_threads() &&
         default_dtype_ == c10::get_default_dtype_as_scalartype() && has_current_flags() &&
         (!is_under_autocast() || has_current_autocast());
}

bool KernelContext::has_current_flags() const {
  const FlagPlaces& places = flag_places();
  for (std::size_t i = 0; i < kNumPrecisions; ++i) {
    if (precisions_[i] != *places.precisions[i]) return false;
  }
  return std::memcmp(flags_.data(), places.first, places.num_bytes) == 0;
}

bool KernelContext::has_current_autocast() const {
  for (std::size_t device = 0; device < kNumAutocastDevices; ++device) {
    const at::DeviceType type = at::autocast::_AUTOCAST_SUPPORTED_DEVICES[device];
    if (autocast_dtypes_[device] != at::autocast::get_autocast_dtype(type)) return false;
  }
  return autocast_cache_ == at::autocast::is_autocast_cache_enabled();
}

void KernelContext::apply() const {
  c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  keys.excluded_ = (keys.excluded_ - c10::autocast_dispatch_keyset) | autocast_off_;
  c10::impl::_force_tls_local_dispatch_key_set(keys);
  for (std::size_t device = 0; device < kNumAutocastDevices; ++device) {
    at::autocast::set_autocast_dtype(at::autocast::_AUTOCAST_SUPPORTED_DEVICES[device],
                                     autocast_dtypes_[device]);
  }
  at::autocast::set_autocast_cache_enabled(autocast_cache_);
  set_float_control(float_control_);
  // Sets the number of threads only if the number differs, because a new number clears a cache of
  // oneDNN.
  if (num_threads_ != at::get_num_threads()) at::set_num_threads(num_threads_);
  c10::set_default_dtype(c10::scalarTypeToTypeMeta(default_dtype_));
  c10::GradMode::set_enabled(grad_mode_);
  const FlagPlaces& places = flag_places();
  for (std::size_t i = 0; i < kNumPrecisions; ++i) *places.precisions[i] = precisions_[i];
  std::memcpy(places.first, flags_.data(), places.num_bytes);
}

// Turns the autocast cache off. Autocast caches casts of parameters until the outermost autocast
// block ends. Backward may run outside of any autocast block, so a cached cast would become stale
// at the next update of its parameter.
void KernelContextGuard::change_to(std::int32_t context) {
  const KernelContext& wanted = contexts_[static_cast<std::size_t>(context)];
  if (!wanted.is_current()) {
    if (!before_.has_value()) before_ = KernelContext::current();
    wanted.apply();
    at::autocast::set_autocast_cache_enabled(false);
  }
  entered_ = context;
}

}  // namespace rematch
