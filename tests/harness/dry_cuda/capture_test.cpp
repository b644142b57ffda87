// Captures LibTorch's CUDA code into graphs on the dry device, as at::cuda::CUDAGraph does on a
// GPU.
#include <ATen/Functions.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <string>

#include "harness/dry_cuda/kernel_names.h"
#include "tests/support/catch.h"

namespace dry_cuda {
namespace {

using Catch::Matchers::Contains;

at::Tensor parameter() {
  return at::ones({64, 64}, at::TensorOptions().device(at::kCUDA, 0)).requires_grad_(true);
}

void train(const at::Tensor& weight) {
  const at::Tensor loss = at::dropout(at::mm(weight, weight), 0.5, /*train=*/true).sum();
  loss.backward();
  const at::NoGradGuard no_grad;
  weight.sub_(weight.grad());
  weight.mutable_grad().reset();
}

TEST_CASE("a captured step launches nothing, and each replay launches the kernels of a step") {
  const at::Tensor weight = parameter();
  const c10::cuda::CUDAStreamGuard side(c10::cuda::getStreamFromPool());
  train(weight);
  dry_cuda_reset();
  train(weight);
  const std::int64_t kernels = num_kernels("");
  const std::set<std::uint64_t> threads = launching_threads();
  CHECK(num_kernels("dry_gemm") == 3);
  CHECK(threads.size() == 2);  // backward runs in a thread of autograd
  at::cuda::CUDAGraph graph;
  dry_cuda_reset();
  graph.capture_begin();
  train(weight);
  graph.capture_end();
  // The capture fills the generator's seed and offset outside the graph.
  CHECK(num_kernels("dry_gemm") == 0);
  for (int replay = 1; replay < 3; ++replay) {
    dry_cuda_reset();
    graph.replay();
    CHECK(num_kernels("dry_gemm") == 3);
    std::int64_t from_graph = 0;
    for (const DryCudaRecord& record : records()) {
      from_graph += std::string(record.call) == "cudaGraphLaunch" ? 1 : 0;
    }
    CHECK(from_graph == kernels);
    CHECK(launching_threads().size() == 1);
  }
  CHECK(dry_cuda_refused_call() == nullptr);
}

TEST_CASE("a replay advances the random generator as the step itself does") {
  const at::Tensor weight = parameter();
  const c10::cuda::CUDAStreamGuard side(c10::cuda::getStreamFromPool());
  auto* const generator =
      at::check_generator<at::CUDAGeneratorImpl>(at::cuda::detail::getDefaultCUDAGenerator(0));
  const auto advance = [&](const std::function<void()>& body) {
    const std::uint64_t before = generator->philox_offset_per_thread();
    body();
    return generator->philox_offset_per_thread() - before;
  };
  const std::uint64_t by_step = advance([&] { train(weight); });
  CHECK(by_step > 0);
  at::cuda::CUDAGraph graph;
  CHECK(advance([&] {
          graph.capture_begin();
          train(weight);
          graph.capture_end();
        }) == 0);
  CHECK(advance([&] { graph.replay(); }) == by_step);
  CHECK(advance([&] { graph.replay(); }) == by_step);
}

TEST_CASE("calls that cannot be captured are named") {
  const at::Tensor x = parameter().detach();
  const c10::cuda::CUDAStreamGuard side(c10::cuda::getStreamFromPool());
  struct Case {
    std::function<void()> body;
    std::string call;
  };
  const auto allocate = [] {
    void* address = nullptr;
    C10_CUDA_CHECK(cudaMalloc(&address, 1));
  };
  const auto allocate_host = [] {
    void* address = nullptr;
    C10_CUDA_CHECK(cudaHostAlloc(&address, 1, cudaHostAllocDefault));
  };
  const Case cases[] = {
      {[&] { x.sum().item<float>(); }, "cudaStreamSynchronize"},
      {[] { C10_CUDA_CHECK(cudaDeviceSynchronize()); }, "cudaDeviceSynchronize"},
      {allocate, "cudaMalloc"},
      {allocate_host, "cudaHostAlloc"},
  };
  for (const Case& which : cases) {
    CAPTURE(which.call);
    at::cuda::CUDAGraph graph;
    graph.capture_begin();
    CHECK_THROWS_WITH(which.body(), Contains("StreamCapture") || Contains("capturing"));
    REQUIRE(dry_cuda_refused_call() != nullptr);
    CHECK(dry_cuda_refused_call() == which.call);
    CHECK_THROWS(graph.capture_end());
  }
  // The device is usable afterwards.
  CHECK_NOTHROW(x.sum().item<float>());
}

TEST_CASE("the allocator takes memory for a captured step from a pool of the graph") {
  const c10::cuda::CUDAStreamGuard side(c10::cuda::getStreamFromPool());
  at::cuda::CUDAGraph graph;
  graph.capture_begin();
  const at::Tensor large = at::zeros({1 << 28}, at::TensorOptions().device(at::kCUDA, 0));
  graph.capture_end();
  CHECK(dry_cuda_refused_call() == nullptr);
}

struct Fork {
  cudaStream_t main = nullptr, side = nullptr;
  cudaEvent_t forked = nullptr, joined = nullptr;
  Fork() {
    cudaStreamCreateWithPriority(&main, cudaStreamNonBlocking, 0);
    cudaStreamCreateWithPriority(&side, cudaStreamNonBlocking, 0);
    cudaEventCreateWithFlags(&forked, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&joined, cudaEventDisableTiming);
  }
  void run_on_side(char* device_memory) const {
    cudaEventRecord(forked, main);
    cudaStreamWaitEvent(side, forked, 0);
    cudaMemsetAsync(device_memory, 1, 16, side);
    cudaEventRecord(joined, side);
  }
};

TEST_CASE("a stream that joins a capture must be joined back before the capture ends") {
  char* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, 16) == cudaSuccess);
  const Fork fork;
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamBeginCapture(fork.main, cudaStreamCaptureModeGlobal) == cudaSuccess);
  fork.run_on_side(memory);
  cudaStreamCaptureStatus status{};
  cudaStreamIsCapturing(fork.side, &status);
  CHECK(status == cudaStreamCaptureStatusActive);
  CHECK(cudaStreamEndCapture(fork.main, &graph) == cudaErrorStreamCaptureUnjoined);
  CHECK(graph == nullptr);

  REQUIRE(cudaStreamBeginCapture(fork.main, cudaStreamCaptureModeGlobal) == cudaSuccess);
  fork.run_on_side(memory);
  cudaStreamWaitEvent(fork.main, fork.joined, 0);
  CHECK(cudaEventQuery(fork.joined) == cudaErrorCapturedEvent);
  CHECK(cudaStreamEndCapture(fork.main, &graph) == cudaErrorStreamCaptureInvalidated);

  REQUIRE(cudaStreamBeginCapture(fork.main, cudaStreamCaptureModeGlobal) == cudaSuccess);
  fork.run_on_side(memory);
  cudaStreamWaitEvent(fork.main, fork.joined, 0);
  CHECK(cudaStreamEndCapture(fork.main, &graph) == cudaSuccess);
  std::size_t num_nodes = 0;
  cudaGraphGetNodes(graph, nullptr, &num_nodes);
  CHECK(num_nodes == 1);
  cudaGraphDestroy(graph);
}

TEST_CASE("a captured stream cannot wait for work from before the capture") {
  const Fork fork;
  cudaEventRecord(fork.forked, fork.side);
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamBeginCapture(fork.main, cudaStreamCaptureModeGlobal) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(fork.main, fork.forked, 0) == cudaErrorStreamCaptureIsolation);
  CHECK(std::string(dry_cuda_refused_call()) == "cudaStreamWaitEvent");
  CHECK(cudaStreamEndCapture(fork.main, &graph) == cudaErrorStreamCaptureInvalidated);
}

TEST_CASE("copies of a captured step happen when the graph is launched") {
  const Fork fork;
  int* on_device = nullptr;
  REQUIRE(cudaMalloc(&on_device, sizeof(int)) == cudaSuccess);
  int host = 1;
  int back = 0;
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamBeginCapture(fork.main, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  cudaMemcpyAsync(on_device, &host, sizeof(int), cudaMemcpyHostToDevice, fork.main);
  cudaMemcpyAsync(&back, on_device, sizeof(int), cudaMemcpyDeviceToHost, fork.main);
  REQUIRE(cudaStreamEndCapture(fork.main, &graph) == cudaSuccess);
  CHECK(back == 0);
  cudaGraphExec_t executable = nullptr;
  REQUIRE(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
  for (int value = 5; value < 7; ++value) {
    host = value;
    REQUIRE(cudaGraphLaunch(executable, fork.main) == cudaSuccess);
    CHECK(back == value);
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

}  // namespace
}  // namespace dry_cuda
