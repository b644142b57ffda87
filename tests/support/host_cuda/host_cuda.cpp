#include "tests/support/host_cuda/host_cuda.h"

#include <cstdio>
#include <cstdlib>

namespace host_cuda {
namespace {

constexpr std::size_t kStackBytes = 64 << 10;
constexpr std::size_t kWarp = 32;
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
  const auto all_ended = [this] {
    return std::all_of(threads_.begin(), threads_.end(),
                       [](const Thread& thread) { return thread.has_ended; });
  };
  while (!all_ended()) {
    const bool any_ran = run_threads();
    const bool any_warp_released = release_warps();
    if (any_ran || any_warp_released || release_block()) continue;
    std::fputs("host_cuda: threads of a block wait for different barriers\n", stderr);
    std::abort();
  }
}

// Runs every thread that waits for nothing. Returns whether there was one.
bool Block::run_threads() {
  bool any = false;
  for (std::size_t index = 0; index < threads_.size(); ++index) {
    current_ = &threads_[index];
    if (current_->has_ended || current_->waits_for != WaitsFor::kNothing) continue;
    any = true;
    threadIdx = {static_cast<unsigned>(index), 0, 0};
    swapcontext(&scheduler_, &current_->context);
  }
  return any;
}

// Releases each warp in which all threads wait for the warp.
bool Block::release_warps() {
  bool any = false;
  for (std::size_t first = 0; first < threads_.size(); first += kWarp) {
    const auto begin = threads_.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = begin + static_cast<std::ptrdiff_t>(std::min(kWarp, threads_.size() - first));
    if (!std::all_of(begin, end, [](const Thread& thread) {
          return !thread.has_ended && thread.waits_for == WaitsFor::kWarp;
        })) {
      continue;
    }
    std::for_each(begin, end, [](Thread& thread) { thread.waits_for = WaitsFor::kNothing; });
    any = true;
  }
  return any;
}

// Releases the block if all threads that have not ended wait for the block.
bool Block::release_block() {
  for (const Thread& thread : threads_) {
    if (!thread.has_ended && thread.waits_for != WaitsFor::kBlock) return false;
  }
  for (Thread& thread : threads_) thread.waits_for = WaitsFor::kNothing;
  return true;
}

void Block::start(Thread& thread) {
  getcontext(&thread.context);
  thread.context.uc_stack.ss_sp = thread.stack.get();
  thread.context.uc_stack.ss_size = kStackBytes;
  thread.context.uc_link = &scheduler_;
  makecontext(&thread.context, &Block::enter, 0);
  thread.has_ended = false;
  thread.waits_for = WaitsFor::kNothing;
}

void Block::enter() {
  running_->kernel_();
  running_->current_->has_ended = true;
}

void Block::wait(WaitsFor other_threads) {
  running_->current_->waits_for = other_threads;
  swapcontext(&running_->current_->context, &running_->scheduler_);
}

// Another thread may read this word until it waits again, so the next shuffle uses another word.
std::uint32_t Block::shuffle_xor(std::uint32_t word, unsigned mask) {
  Thread& own = *running_->current_;
  const bool turn = own.is_odd_shuffle;
  own.is_odd_shuffle = !turn;
  own.shuffled[turn] = word;
  const unsigned other = threadIdx.x ^ mask;
  wait(WaitsFor::kWarp);
  return running_->threads_[other].shuffled[turn];
}

int num_launches() { return launches; }

void launch(dim3 grid, dim3 threads, std::size_t, cudaStream_t,
            const std::function<void()>& kernel) {
  ++launches;
  gridDim = grid;
  Block block(threads.x, kernel);
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = {x, y, z};
        block.run();
      }
    }
  }
}

}  // namespace host_cuda

extern "C" cudaError_t cudaGetLastError() { return cudaSuccess; }
