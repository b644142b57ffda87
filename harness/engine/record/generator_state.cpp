#include "harness/engine/record/generator_state.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include <mutex>

#include "harness/engine/record/captured_generator.h"

namespace rematch {
namespace {

c10::Device device_of(const OpFacts& facts, const torch::jit::Stack& stack, std::size_t base) {
  for (std::size_t i = base; i < stack.size(); ++i) {
    if (stack[i].isTensor() && stack[i].toTensor().defined()) return stack[i].toTensor().device();
  }
  if (facts.device_argument.has_value()) {
    const c10::IValue& device = stack[base + static_cast<std::size_t>(*facts.device_argument)];
    if (device.isDevice()) return device.toDevice();
  }
  return c10::Device(c10::kCPU);
}

at::Generator generator_of(const OpFacts& facts, const torch::jit::Stack& stack, std::size_t base,
                           c10::Device device) {
  if (facts.generator_argument.has_value()) {
    const c10::IValue& given = stack[base + static_cast<std::size_t>(*facts.generator_argument)];
    if (given.isGenerator()) return given.toGenerator();
  }
  return at::globalContext().defaultGenerator(device);
}

GeneratorState state_of(at::Generator generator) {
  std::lock_guard<std::mutex> lock(generator.mutex());
  if (generator.device().is_cpu()) {
    auto* cpu = at::check_generator<at::CPUGeneratorImpl>(generator);
    return {generator, CpuGeneratorState{.engine = cpu->engine(),
                                         .next_float = cpu->next_float_normal_sample(),
                                         .next_double = cpu->next_double_normal_sample()}};
  }
  if (generator.device().is_cuda() && captured_generator_state != nullptr) {
    if (const auto captured = captured_generator_state(generator)) return {generator, *captured};
  }
  return {generator, generator.get_state()};
}

void put_back(const GeneratorState& recorded) {
  at::Generator generator = recorded.generator;
  std::lock_guard<std::mutex> lock(generator.mutex());
  if (const auto* state = std::get_if<CpuGeneratorState>(&recorded.state)) {
    auto* cpu = at::check_generator<at::CPUGeneratorImpl>(generator);
    cpu->set_engine(state->engine);
    cpu->set_next_float_normal_sample(state->next_float);
    cpu->set_next_double_normal_sample(state->next_double);
    return;
  }
  if (const auto* state = std::get_if<CapturedGeneratorState>(&recorded.state)) {
    set_captured_generator_state(generator, *state);
    return;
  }
  generator.set_state(std::get<at::Tensor>(recorded.state));
}

}  // namespace

bool draws_random(const OpFacts& facts, const torch::jit::Stack& stack) {
  if (!facts.may_draw) return false;
  if (!facts.dropout_argument.has_value()) return true;
  const std::size_t base = stack.size() - facts.arguments.size();
  const c10::IValue& probability = stack[base + static_cast<std::size_t>(*facts.dropout_argument)];
  return !probability.isDouble() || probability.toDouble() > 0.0;
}

std::optional<GeneratorState> state_before(const OpFacts& facts, const torch::jit::Stack& stack) {
  const std::size_t base = stack.size() - facts.arguments.size();
  if (!draws_random(facts, stack)) return std::nullopt;
  const c10::Device device = device_of(facts, stack, base);
  if (device.is_meta()) return std::nullopt;  // kernels on meta tensors draw no random numbers
  return state_of(generator_of(facts, stack, base, device));
}

GeneratorStateGuard::GeneratorStateGuard(const GeneratorState& recorded)
    : previous_(state_of(recorded.generator)) {
  put_back(recorded);
}
GeneratorStateGuard::~GeneratorStateGuard() { put_back(previous_); }

}  // namespace rematch
