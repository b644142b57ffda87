// Lets aten::_grouped_mm read on the device where its groups end. LibTorch's own kernel does so in
// bfloat16 on compute capability 9.0 and 10.0. Elsewhere LibTorch copies the ends to the host and
// calls a matmul for each group, which a CUDA graph cannot capture.
#pragma once

#include "kernels/op/kernel.h"

namespace rematch {

// From here on, aten::_grouped_mm on CUDA does not wait for the device in this process. The kernel
// that replaces LibTorch's matmuls does not use tensor cores, so it is meant for steps that are
// captured. The op, its gradients, the layout of its result and the memory it takes stay the same;
// bits differ from those of LibTorch's matmuls. Does nothing in a program without CUDA.
void use_grouped_mm_on_device();

}  // namespace rematch

namespace rematch::kernels {

// Where the elements of a matrix lie, in elements. Groups lie `group` apart.
struct GroupedMatrix {
  std::int64_t group, row, column;
};

// out = a b for each of `num_groups` groups. a has `rows` rows and `depth` columns, and b `columns`
// columns. The first group begins at 0, and group i ends at ends[i], a position in device memory.
struct GroupedMatmul {
  Element element;  // kFloat32 or kBFloat16; sums are float32
  // Whether groups divide `depth`. Every group then has a result of its own. Otherwise they divide
  // `rows`; rows beyond the last group keep what they hold.
  bool divides_depth;
  std::int64_t num_groups, rows, columns, depth;
  const std::int32_t* ends;
  const void* a;
  GroupedMatrix of_a;
  const void* b;
  GroupedMatrix of_b;
  void* out;
  GroupedMatrix of_out;
};

namespace cuda {
[[gnu::weak]] int run(const GroupedMatmul& op, void* stream);
}

}  // namespace rematch::kernels
