// Runs an op's kernel where its tensors are. A fused op has one set of arguments, plain pointers
// and sizes, and one kernel for each kind of device; on meta there is nothing to run.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/DispatchKey.h>

#include <functional>

#include "kernels/op/element.h"

#if defined(__x86_64__)
#define REMATCH_X86_KERNELS(name) rematch::kernels::avx2::name, rematch::kernels::avx512::name
#else
#define REMATCH_X86_KERNELS(name) nullptr, nullptr
#endif
// The kernels of one name, as declared beside their arguments.
#define REMATCH_KERNELS(name) \
  { rematch::kernels::portable::name, REMATCH_X86_KERNELS(name), rematch::kernels::cuda::name }

namespace rematch::kernels {

// portable: vectorised with what every processor of the kind has. avx2, avx512: null elsewhere than
// on x86-64. cuda: returns a cudaError_t, 0 for success.
template <typename Arguments>
struct Kernels {
  void (*portable)(const Arguments&);
  void (*avx2)(const Arguments&);
  void (*avx512)(const Arguments&);
  int (*cuda)(const Arguments&, void* stream);
};

// Where an op runs the same function: it allocates by its tensors' device, and launches by it.
inline constexpr c10::DispatchKey kDeviceKeys[] = {c10::DispatchKey::CPU, c10::DispatchKey::Meta,
                                                   c10::DispatchKey::CUDA};

enum class Capability : std::uint8_t { kPortable, kAvx2, kAvx512 };

// What LibTorch's own kernels use here; ATEN_CPU_CAPABILITY=default or =avx2 lowers it.
Capability capability();

// Calls `kernel` with the device's current stream. Throws c10::Error if it fails, and in a program
// that is linked without CUDA.
void launch_on_cuda(c10::Device device, const std::function<int(void* stream)>& kernel);

template <typename Arguments>
void launch(c10::Device device, const Kernels<Arguments>& kernels, const Arguments& arguments) {
  if (device.is_meta()) return;
  if (!device.is_cpu()) {
    launch_on_cuda(device, [&](void* stream) { return kernels.cuda(arguments, stream); });
    return;
  }
  const Capability usable = capability();
  if (usable == Capability::kAvx512 && kernels.avx512 != nullptr) return kernels.avx512(arguments);
  if (usable != Capability::kPortable && kernels.avx2 != nullptr) return kernels.avx2(arguments);
  kernels.portable(arguments);
}

// Throws c10::Error, naming the op, unless the dtype is one of the three.
Element element_of(const at::Tensor& tensor, const char* op);

// `tensor` itself, or on a device with data a copy of it, with elements of the last dimension side
// by side.
at::Tensor with_dense_rows(const at::Tensor& tensor);

// What sums of such elements are made in.
at::ScalarType sum_dtype(at::ScalarType type);

}  // namespace rematch::kernels
