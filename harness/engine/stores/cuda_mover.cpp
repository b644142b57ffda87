// Moves tensors between a GPU and pinned host memory of exact sizes. Each device has a separate
// copy stream.
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <mutex>
#include <vector>

#include "harness/engine/stores/mover.h"

namespace rematch {
namespace {

// Reuses events, because a step needs two for each region.
class EventPool {
 public:
  ~EventPool() {
    for (cudaEvent_t event : free_) static_cast<void>(cudaEventDestroy(event));
  }
  cudaEvent_t take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) {
      cudaEvent_t event = nullptr;
      C10_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
      return event;
    }
    cudaEvent_t event = free_.back();
    free_.pop_back();
    return event;
  }
  void give_back(cudaEvent_t event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(event);
  }

 private:
  std::mutex mutex_;
  std::vector<cudaEvent_t> free_;
};

class CudaMover final : public Mover {
 public:
  explicit CudaMover(c10::Device device) : device_(device) {
    const c10::cuda::CUDAGuard on_device(device_);
    C10_CUDA_CHECK(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, 0));
    issued_ = events_->take();
  }
  ~CudaMover() override {
    static_cast<void>(cudaStreamSynchronize(stream_));
    static_cast<void>(cudaStreamDestroy(stream_));
    events_->give_back(issued_);
  }

  void* allocate(std::size_t bytes) override {
    void* block = nullptr;
    C10_CUDA_CHECK(cudaHostAlloc(&block, bytes, cudaHostAllocDefault));
    return block;
  }
  // Safe during a copy, because the driver waits for copies before it frees the block.
  void free(void* block) noexcept override { static_cast<void>(cudaFreeHost(block)); }

  void copy_out(void* host, const void* device, std::size_t bytes) override {
    copy(host, device, bytes, cudaMemcpyDeviceToHost);
  }
  // Also waits for the current stream, because earlier work there may still use the device memory.
  void copy_back(void* device, const void* host, std::size_t bytes) override {
    copy(device, host, bytes, cudaMemcpyHostToDevice);
  }

  Mark mark() override {
    const c10::cuda::CUDAGuard on_device(device_);
    cudaEvent_t event = events_->take();
    C10_CUDA_CHECK(cudaEventRecord(event, stream_));
    return Mark(event, [events = events_](void* done) {
      events->give_back(static_cast<cudaEvent_t>(done));
    });
  }
  void wait(const Mark& mark) override {
    const c10::cuda::CUDAGuard on_device(device_);
    const c10::cuda::CUDAStream waiting = current_stream();
    tell(Move::kJoin, waiting.unwrap(), [&] {
      C10_CUDA_CHECK(cudaStreamWaitEvent(waiting, static_cast<cudaEvent_t>(mark.get()), 0));
    });
  }

 private:
  c10::cuda::CUDAStream current_stream() const {
    return c10::cuda::getCurrentCUDAStream(device_.index());
  }

  // Forward and backward may issue copies from two threads.
  void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    const c10::cuda::CUDAGuard on_device(device_);
    const std::lock_guard<std::mutex> lock(mutex_);
    C10_CUDA_CHECK(cudaEventRecord(issued_, current_stream()));
    C10_CUDA_CHECK(cudaStreamWaitEvent(stream_, issued_, 0));
    tell(Move::kCopy, c10::cuda::getStreamFromExternal(stream_, device_.index()).unwrap(),
         [&] { C10_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, kind, stream_)); });
  }

  const c10::Device device_;
  std::shared_ptr<EventPool> events_ = std::make_shared<EventPool>();
  cudaStream_t stream_ = nullptr;
  std::mutex mutex_;
  cudaEvent_t issued_ = nullptr;
};

}  // namespace

std::unique_ptr<Mover> make_cuda_mover(c10::Device device) {
  return std::make_unique<CudaMover>(device);
}

}  // namespace rematch
