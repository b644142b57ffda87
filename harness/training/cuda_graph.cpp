#include "harness/training/cuda_graph.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <exception>
#include <map>

namespace rematch {
namespace {

// One stream for all graphs of a device, because libraries keep a workspace for each stream.
c10::cuda::CUDAStream stream_of_graphs(c10::DeviceIndex device) {
  static std::map<c10::DeviceIndex, c10::cuda::CUDAStream> streams;
  const auto found = streams.find(device);
  if (found != streams.end()) return found->second;
  return streams.emplace(device, c10::cuda::getStreamFromPool(false, device)).first->second;
}

class GraphOfWork final : public CudaGraph {
 public:
  explicit GraphOfWork(c10::Device device) : stream_(stream_of_graphs(device.index())) {}

  void run(const std::function<void()>& work) override {
    C10_CUDA_CHECK(cudaDeviceSynchronize());  // earlier work may be on another stream
    const c10::cuda::CUDAStreamGuard on_stream(stream_);
    work();
  }

  void capture(const std::function<void()>& work) override {
    C10_CUDA_CHECK(cudaDeviceSynchronize());
    // The graph takes new memory, and cannot use what earlier steps left in the cache.
    c10::cuda::CUDACachingAllocator::emptyCache();
    const c10::cuda::CUDAStreamGuard on_stream(stream_);
    graph_.capture_begin();
    try {
      work();
    } catch (...) {
      const std::exception_ptr failure = std::current_exception();
      abandon();
      std::rethrow_exception(failure);
    }
    graph_.capture_end();
  }

  void replay() override {
    const c10::cuda::CUDAStreamGuard on_stream(stream_);
    graph_.replay();
  }

 private:
  // Ends a capture that has failed. The first failure explains more than the failures that follow.
  void abandon() {
    try {
      graph_.capture_end();
      graph_.reset();
    } catch (const c10::Error&) {
      static_cast<void>(cudaGetLastError());
    }
  }

  c10::cuda::CUDAStream stream_;
  at::cuda::CUDAGraph graph_;
};

}  // namespace

std::unique_ptr<CudaGraph> make_cuda_graph(c10::Device device) {
  return std::make_unique<GraphOfWork>(device);
}

}  // namespace rematch
