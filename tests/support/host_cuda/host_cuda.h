// Runs CUDA kernels on the CPU, so that tests can check their results. Blocks run one after
// another, and the threads of a block take turns. A source that host_source.py rewrites must
// include this file first. Only one thread at a time may call these functions.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <ucontext.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tests/support/host_cuda/moved_bytes.h"

#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __shared__
#define __shared__ static  // one copy is enough, because blocks run one after another

using std::max;

// The counters that kernels/op/device.cuh increments.
#define REMATCH_COUNT_READ(bytes) ::host_cuda::bytes_read += (bytes)
#define REMATCH_COUNT_WRITTEN(bytes) ::host_cuda::bytes_written += (bytes)

inline uint3 threadIdx;
inline uint3 blockIdx;
inline dim3 gridDim;

namespace host_cuda {

enum class WaitsFor : std::uint8_t { kNothing, kWarp, kBlock };

// The threads of one block. Each thread runs until it ends or waits for other threads. If threads
// would wait for ever, because they wait at different barriers or for a thread that has ended, the
// program ends with a message.
class Block {
 public:
  Block(unsigned num_threads, const std::function<void()>& kernel);
  void run();  // starts all threads and runs them to their end

  // Both are called by the thread that is running.
  static void wait(WaitsFor other_threads);
  static std::uint32_t shuffle_xor(std::uint32_t word, unsigned mask);

 private:
  struct Thread {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    bool has_ended = false;
    WaitsFor waits_for = WaitsFor::kNothing;
    bool is_odd_shuffle = false;
    std::uint32_t shuffled[2];  // of two shuffles in succession
  };
  void start(Thread& thread);
  bool run_threads();
  bool release_warps();
  bool release_block();
  static void enter();

  static Block* running_;
  const std::function<void()>& kernel_;
  std::vector<Thread> threads_;
  Thread* current_ = nullptr;
  ucontext_t scheduler_;
};

void launch(dim3 grid, dim3 threads, std::size_t shared_bytes, cudaStream_t stream,
            const std::function<void()>& kernel);

}  // namespace host_cuda

inline void __syncthreads() { host_cuda::Block::wait(host_cuda::WaitsFor::kBlock); }
inline std::uint32_t __shfl_xor_sync(unsigned, std::uint32_t word, int mask) {
  return host_cuda::Block::shuffle_xor(word, static_cast<unsigned>(mask));
}
