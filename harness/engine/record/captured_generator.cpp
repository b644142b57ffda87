#include "harness/engine/record/captured_generator.h"

#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <mutex>

namespace rematch {
namespace {

using State = at::CUDAGeneratorState;

c10::intrusive_ptr<State>& state_of(at::CUDAGeneratorImpl& generator);

// LibTorch can only advance the offset of a capture, and its state is private. An explicit
// instantiation may name a private member (C++20, [temp.spec.general], paragraph 6).
template <auto kMember>
struct StateMember {
  friend c10::intrusive_ptr<State>& state_of(at::CUDAGeneratorImpl& generator) {
    return generator.*kMember;
  }
};
template struct StateMember<&at::CUDAGeneratorImpl::state_>;

// Returns the offset of the capture, or null before the capture's first draw. LibTorch 2.15 has an
// offset for each capture. Earlier versions have one for each generator.
template <typename AnyState>
std::uint64_t* offset_in(AnyState& state, unsigned long long capture) {
  if constexpr (requires { state.offset_intragraph_; }) {
    return &state.offset_intragraph_;
  } else {
    const std::lock_guard lock(state.capture_states_mutex_);
    const auto found = state.capture_states_.find(capture);
    return found == state.capture_states_.end() ? nullptr : &found->second->offset_intragraph_;
  }
}

std::optional<unsigned long long> current_capture() {
  cudaStreamCaptureStatus status{};
  unsigned long long id = 0;
  C10_CUDA_CHECK(cudaStreamGetCaptureInfo(c10::cuda::getCurrentCUDAStream(), &status, &id, nullptr,
                                          nullptr, nullptr, nullptr));
  if (status != cudaStreamCaptureStatusActive) return std::nullopt;
  return id;
}

std::uint64_t* offset_of(const at::Generator& generator, unsigned long long capture) {
  return offset_in(*state_of(*at::check_generator<at::CUDAGeneratorImpl>(generator)), capture);
}

}  // namespace

std::optional<CapturedGeneratorState> captured_generator_state(const at::Generator& generator) {
  const std::optional<unsigned long long> capture = current_capture();
  if (!capture) return std::nullopt;
  const std::uint64_t* const offset = offset_of(generator, *capture);
  return CapturedGeneratorState{offset == nullptr ? 0 : *offset};
}

void set_captured_generator_state(const at::Generator& generator,
                                  const CapturedGeneratorState& state) {
  std::uint64_t* const offset = offset_of(generator, current_capture().value());
  if (offset != nullptr) *offset = state.offset;
}

}  // namespace rematch
