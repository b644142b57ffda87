// One block of threads per token. The matmuls are LibTorch's and run before and after these
// kernels.
#include "kernels/fused/linear_cross_entropy.h"
#include "kernels/op/rows.cuh"

namespace rematch::kernels::cuda {
namespace {

// The largest logit seen so far, and the sum of exp(logit - maximum) over the logits seen so far.
// The maximum may grow with later logits, as in online softmax (Milakov and Gimelshein, arXiv
// 1805.02867).
template <typename Sum>
struct Softmax {
  Sum maximum;
  Sum sum;
};

// Computes exp(x) in few instructions. The relative error is up to |x| times the unit roundoff of
// the type.
template <typename Sum>
__device__ Sum power_of_e(Sum x) {
  constexpr double kLog2OfE = 1.4426950408889634;
  return exp2(x * static_cast<Sum>(kLog2OfE));
}

// Returns the sum rescaled to the new maximum. If no logits were seen, both maximums are -inf, and
// the sum is returned unchanged.
template <typename Sum>
__device__ Sum sum_under(const Softmax<Sum>& softmax, Sum maximum) {
  return softmax.maximum == maximum ? softmax.sum : softmax.sum * exp(softmax.maximum - maximum);
}

template <typename Sum>
__device__ Softmax<Sum> merged(const Softmax<Sum>& a, const Softmax<Sum>& b) {
  const Sum maximum = max(a.maximum, b.maximum);
  return {maximum, sum_under(a, maximum) + sum_under(b, maximum)};
}

// Threads of a block that reads a row of logits. A row has tens of thousands of logits.
inline constexpr int kLogitThreads = 512;

// Updates the maximum and the sum of each row with the logits of one chunk. A thread starts two
// loads per turn, so that more bytes are in flight, and rescales its sum once per turn. The old
// values and the target are loaded first, so that their latency overlaps with the loop.
template <typename T, int kCount>
__global__ void __launch_bounds__(kLogitThreads) rematch_cross_entropy_add_logits(LogitChunk op) {
  using Sum = SumOf<T>;
  constexpr int kStride = kLogitThreads * kCount;
  const std::int64_t row = blockIdx.x;
  const int width = static_cast<int>(op.width);
  const T* logits = static_cast<const T*>(op.logits) + row * op.width;
  Sum& maximum = static_cast<Sum*>(op.maximum)[row];
  Sum& sum = static_cast<Sum*>(op.sum)[row];
  const bool is_first = threadIdx.x == 0;
  const Softmax<Sum> before = is_first ? Softmax<Sum>{maximum, sum} : Softmax<Sum>{};
  const std::int64_t target = threadIdx.x == kLogitThreads - 1 ? op.target[row] - op.first : -1;
  Softmax<Sum> own = {-static_cast<Sum>(INFINITY), 0};
  for (int i = static_cast<int>(threadIdx.x) * kCount; i < width; i += 2 * kStride) {
    const bool has_other = i + kStride < width;
    const auto values = load_lanes<kCount>(logits + i);
    Lanes<T, kCount> others = values;
    if (has_other) others = load_lanes<kCount>(logits + i + kStride);
    Sum largest = own.maximum;
    for (int lane = 0; lane < kCount; ++lane) {
      largest = max(largest, max(values[lane], others[lane]));
    }
    own = {largest, sum_under(own, largest)};
    for (int lane = 0; lane < kCount; ++lane) {
      own.sum += power_of_e(values[lane] - largest);
      if (has_other) own.sum += power_of_e(others[lane] - largest);
    }
  }
  const bool has_target = target >= 0 && target < op.width;
  const Sum target_logit = has_target ? load(logits + target) : Sum(0);
  const Sum largest =
      group_reduce<kLogitThreads>(own.maximum, [](Sum a, Sum b) { return max(a, b); });
  const Softmax<Sum> added = {largest, group_sum<kLogitThreads>(sum_under(own, largest))};
  if (has_target) static_cast<Sum*>(op.target_logit)[row] = target_logit;
  if (!is_first) return;
  const Softmax<Sum> all = merged(before, added);
  maximum = all.maximum;
  sum = all.sum;
}

template <typename T, int kCount>
__global__ void rematch_cross_entropy_differentiate_logits(LogitChunkBackward op) {
  using Sum = SumOf<T>;
  const std::int64_t row = blockIdx.x;
  const int width = static_cast<int>(op.width);
  T* gradients = static_cast<T*>(op.logits) + row * op.width;
  const T* logits =
      op.kept == nullptr ? gradients : static_cast<const T*>(op.kept) + row * op.width;
  const Sum scale = *static_cast<const Sum*>(op.grad_loss) / static_cast<Sum>(op.rows);
  const Sum logsumexp = static_cast<const Sum*>(op.logsumexp)[row];
  const std::int64_t target = op.target[row] - op.first;
  for (int i = static_cast<int>(threadIdx.x) * kCount; i < width; i += kThreads * kCount) {
    Sum values[kCount];
    load_lanes(logits + i, values);
    for (int lane = 0; lane < kCount; ++lane) {
      const Sum probability = exp(values[lane] - logsumexp);
      values[lane] = (i + lane == target ? probability - Sum(1) : probability) * scale;
    }
    store_lanes(values, gradients + i);
  }
}

}  // namespace

int run(const LogitChunk& op, void* stream) {
  if (op.rows == 0) return cudaSuccess;
  const auto rows = static_cast<unsigned>(op.rows);
  const auto on = static_cast<cudaStream_t>(stream);
  with_type(op.element, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const bool wide = are_multiples(kLanes<T>, op.width) && are_aligned(op.logits);
    with_lanes<T>(wide, [&](auto lanes) {
      constexpr int kCount = lanes;
      rematch_cross_entropy_add_logits<T, kCount><<<rows, kLogitThreads, 0, on>>>(op);
    });
  });
  return cudaGetLastError();
}

int run(const LogitChunkBackward& op, void* stream) {
  if (op.rows == 0) return cudaSuccess;
  const auto rows = static_cast<unsigned>(op.rows);
  const auto on = static_cast<cudaStream_t>(stream);
  with_type(op.element, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const bool wide = are_multiples(kLanes<T>, op.width) && are_aligned(op.logits, op.kept);
    with_lanes<T>(wide, [&](auto lanes) {
      constexpr int kCount = lanes;
      rematch_cross_entropy_differentiate_logits<T, kCount><<<rows, kThreads, 0, on>>>(op);
    });
  });
  return cudaGetLastError();
}

}  // namespace rematch::kernels::cuda
