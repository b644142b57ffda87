#include "harness/engine/record/op_stream.h"

#include <ATen/core/Tensor.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace rematch {
namespace {

const c10::impl::DeviceGuardImplInterface& cuda_guard() {
  return *c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA);
}

std::optional<c10::Device> cuda_device_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cuda()) return std::nullopt;
  return tensor.device();
}

std::optional<c10::Device> cuda_device_of(const c10::IValue& argument) {
  if (argument.isTensor()) return cuda_device_of(argument.toTensor());
  if (argument.isTensorList()) {
    const auto list = argument.toTensorList();
    for (std::size_t item = 0; item < list.size(); ++item) {
      if (const auto device = cuda_device_of(list.get(item)); device.has_value()) return device;
    }
  }
  return std::nullopt;
}

// Returns the CUDA device in the op's device argument. If the argument has no index, returns the
// current device.
std::optional<c10::Device> named_cuda_device(const OpFacts& facts, const torch::jit::Stack& stack) {
  if (!facts.device_argument.has_value()) return std::nullopt;
  const std::size_t base = stack.size() - facts.arguments.size();
  const c10::IValue& argument = stack[base + static_cast<std::size_t>(*facts.device_argument)];
  if (!argument.isDevice() || !argument.toDevice().is_cuda()) return std::nullopt;
  return argument.toDevice().has_index() ? argument.toDevice() : cuda_guard().getDevice();
}

}  // namespace

std::optional<c10::Stream> stream_of(const OpFacts& facts, const torch::jit::Stack& stack) {
  std::optional<c10::Device> device;
  for (std::size_t i = stack.size() - facts.arguments.size(); i < stack.size(); ++i) {
    device = cuda_device_of(stack[i]);
    if (device.has_value()) return current_stream(*device);
  }
  device = named_cuda_device(facts, stack);
  if (!device.has_value()) return std::nullopt;
  return current_stream(*device);
}

c10::Stream current_stream(c10::Device device) { return cuda_guard().getStream(device); }

std::string describe_stream(const c10::Stream& stream) {
  return "stream " + std::to_string(stream.id()) + " of " + stream.device().str();
}

}  // namespace rematch
