#include "harness/engine/generator_state.h"

#include <ATen/Context.h>

#include <mutex>

namespace rematch {
namespace {

c10::Device device_of(const OpFacts& facts, const torch::jit::Stack& stack, std::size_t base) {
  for (std::size_t i = base; i < stack.size(); ++i) {
    if (stack[i].isTensor() && stack[i].toTensor().defined()) return stack[i].toTensor().device();
  }
  if (facts.device_argument >= 0) {
    const c10::IValue& device = stack[base + static_cast<std::size_t>(facts.device_argument)];
    if (device.isDevice()) return device.toDevice();
  }
  return c10::Device(c10::kCPU);
}

at::Generator generator_of(const OpFacts& facts, const torch::jit::Stack& stack, std::size_t base,
                           c10::Device device) {
  if (facts.generator_argument >= 0) {
    const c10::IValue& given = stack[base + static_cast<std::size_t>(facts.generator_argument)];
    if (given.isGenerator()) return given.toGenerator();
  }
  return at::globalContext().defaultGenerator(device);
}

at::Tensor get_state(at::Generator& generator) {
  std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void set_state(at::Generator& generator, const at::Tensor& state) {
  std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

}  // namespace

bool draws_random(const OpFacts& facts, const torch::jit::Stack& stack) {
  if (!facts.may_draw) return false;
  if (facts.dropout_argument < 0) return true;
  const std::size_t base = stack.size() - facts.arguments.size();
  const c10::IValue& probability = stack[base + static_cast<std::size_t>(facts.dropout_argument)];
  return !probability.isDouble() || probability.toDouble() > 0.0;
}

std::optional<GeneratorState> state_before(const OpFacts& facts, const torch::jit::Stack& stack) {
  const std::size_t base = stack.size() - facts.arguments.size();
  if (!draws_random(facts, stack)) return std::nullopt;
  const c10::Device device = device_of(facts, stack, base);
  if (device.is_meta()) return std::nullopt;  // meta kernels compute nothing
  at::Generator generator = generator_of(facts, stack, base, device);
  at::Tensor state = get_state(generator);
  return GeneratorState{std::move(generator), std::move(state)};
}

GeneratorStateGuard::GeneratorStateGuard(const GeneratorState& recorded)
    : generator_(recorded.generator), previous_(get_state(generator_)) {
  set_state(generator_, recorded.state);
}
GeneratorStateGuard::~GeneratorStateGuard() { set_state(generator_, previous_); }

}  // namespace rematch
