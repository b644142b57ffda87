#include "tests/support/host_cuda/host_cuda.h"

namespace host_cuda {
namespace {

constexpr std::size_t kStackBytes = 64 << 10;
int launches = 0;

}  // namespace

Block* Block::running_ = nullptr;

Block::Block(unsigned num_threads, const std::function<void()>& kernel)
    : kernel_(kernel), threads_(num_threads) {
  for (Thread& thread : threads_) thread.stack.reset(new char[kStackBytes]);
}

void Block::run() {
  for (Thread& thread : threads_) start(thread);
  running_ = this;
  for (std::size_t num_ended = 0; num_ended < threads_.size();) {
    for (std::size_t index = 0; index < threads_.size(); ++index) {
      current_ = &threads_[index];
      if (current_->has_ended) continue;
      threadIdx = {static_cast<unsigned>(index), 0, 0};
      swapcontext(&scheduler_, &current_->context);
      if (current_->has_ended) ++num_ended;
    }
  }
}

void Block::start(Thread& thread) {
  getcontext(&thread.context);
  thread.context.uc_stack.ss_sp = thread.stack.get();
  thread.context.uc_stack.ss_size = kStackBytes;
  thread.context.uc_link = &scheduler_;
  makecontext(&thread.context, &Block::enter, 0);
  thread.has_ended = false;
}

void Block::enter() {
  running_->kernel_();
  running_->current_->has_ended = true;
}

void Block::wait() { swapcontext(&running_->current_->context, &running_->scheduler_); }

int num_launches() { return launches; }

void launch(dim3 grid, dim3 threads, std::size_t, cudaStream_t,
            const std::function<void()>& kernel) {
  ++launches;
  gridDim = grid;
  Block block(threads.x, kernel);
  for (unsigned y = 0; y < grid.y; ++y) {
    for (unsigned x = 0; x < grid.x; ++x) {
      blockIdx = {x, y, 0};
      block.run();
    }
  }
}

}  // namespace host_cuda

extern "C" cudaError_t cudaGetLastError() { return cudaSuccess; }
