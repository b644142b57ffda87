// Each block computes a square tile of one group's result. It passes through both matrices in steps
// of kDepth, with a tile of each in shared memory. A sum is added in the order of the depth, so its
// bits depend on its row and column alone.
#include "kernels/grouped/grouped_mm.h"
#include "kernels/op/device.cuh"

namespace rematch::kernels::cuda {
namespace {

constexpr int kTile = 64;   // rows and columns of a block's tile
constexpr int kDepth = 16;  // columns of a, and rows of b, of one step
constexpr int kSide = 16;   // threads along each side of the tile
constexpr int kEach = kTile / kSide;
static_assert(kSide * kSide == kThreads);

__host__ __device__ inline std::int64_t tiles_of(std::int64_t size) {
  return (size + kTile - 1) / kTile;
}

// The work of one block: `rows` rows from `first_row`, over the depth from `first` to `last`.
struct Task {
  std::int64_t group, first_row, rows, first, last;
};

// Blocks along x take the row tiles of all groups in turn. There are more blocks than tiles if
// groups do not end at a multiple of kTile, because the host does not know where they end.
__device__ Task task_of_rows(const GroupedMatmul& op) {
  std::int64_t tile = blockIdx.x;
  std::int64_t begin = 0;
  for (std::int64_t group = 0; group < op.num_groups; ++group) {
    const std::int64_t end = op.ends[group];
    const std::int64_t tiles = tiles_of(end - begin);
    if (tile < tiles) {
      const std::int64_t first = begin + tile * kTile;
      return {group, first, end - first < kTile ? end - first : kTile, 0, op.depth};
    }
    tile -= tiles;
    begin = end;
  }
  return {0, 0, 0, 0, 0};
}

__device__ Task task_of_depth(const GroupedMatmul& op) {
  const std::int64_t group = blockIdx.z;
  const std::int64_t first = std::int64_t{blockIdx.x} * kTile;
  return {group, first, op.rows - first < kTile ? op.rows - first : kTile,
          group == 0 ? 0 : op.ends[group - 1], op.ends[group]};
}

// Fills a shared tile: tile[step][i] is the element at position first + i along one dimension and
// depth + step along the other. Elements outside are 0. Threads next to each other read elements
// next to each other.
template <typename T>
__device__ void fill(float (&tile)[kDepth][kTile + 1], const T* from, std::int64_t stride,
                     std::int64_t depth_stride, std::int64_t size, std::int64_t depth_size) {
  const bool along_depth = depth_stride == 1;
  for (int index = static_cast<int>(threadIdx.x); index < kTile * kDepth; index += kThreads) {
    const int step = along_depth ? index % kDepth : index / kTile;
    const int i = along_depth ? index / kDepth : index % kTile;
    const bool is_inside = i < size && step < depth_size;
    tile[step][i] = is_inside ? load(from + i * stride + step * depth_stride) : 0.0F;
  }
}

template <typename T>
__global__ void rematch_grouped_gemm(GroupedMatmul op) {
  __shared__ float a_tile[kDepth][kTile + 1];  // one more column, so that banks differ
  __shared__ float b_tile[kDepth][kTile + 1];
  const Task task = op.divides_depth ? task_of_depth(op) : task_of_rows(op);
  if (task.rows == 0) return;
  const std::int64_t first_column = std::int64_t{blockIdx.y} * kTile;
  const std::int64_t columns = op.columns - first_column;
  const T* const a =
      static_cast<const T*>(op.a) + task.group * op.of_a.group + task.first_row * op.of_a.row;
  const T* const b =
      static_cast<const T*>(op.b) + task.group * op.of_b.group + first_column * op.of_b.column;
  const int row = static_cast<int>(threadIdx.x) / kSide;
  const int column = static_cast<int>(threadIdx.x) % kSide;
  float sums[kEach][kEach] = {};
  for (std::int64_t depth = task.first; depth < task.last; depth += kDepth) {
    const std::int64_t left = task.last - depth;
    fill(a_tile, a + depth * op.of_a.column, op.of_a.row, op.of_a.column, task.rows, left);
    fill(b_tile, b + depth * op.of_b.row, op.of_b.column, op.of_b.row, columns, left);
    __syncthreads();
    for (int step = 0; step < kDepth; ++step) {
      for (int i = 0; i < kEach; ++i) {
        for (int j = 0; j < kEach; ++j) {
          sums[i][j] += a_tile[step][row + i * kSide] * b_tile[step][column + j * kSide];
        }
      }
    }
    __syncthreads();
  }
  T* const out = static_cast<T*>(op.out) + task.group * op.of_out.group +
                 task.first_row * op.of_out.row + first_column * op.of_out.column;
  for (int i = 0; i < kEach; ++i) {
    for (int j = 0; j < kEach; ++j) {
      const int r = row + i * kSide;
      const int c = column + j * kSide;
      if (r < task.rows && c < columns) {
        store(sums[i][j], out + r * op.of_out.row + c * op.of_out.column);
      }
    }
  }
}

}  // namespace

int run(const GroupedMatmul& op, void* stream) {
  if (op.rows == 0 || op.columns == 0 || op.num_groups == 0) return cudaSuccess;
  const auto on = static_cast<cudaStream_t>(stream);
  // Every group may end with a tile that is not full.
  const std::int64_t row_tiles = tiles_of(op.rows) + (op.divides_depth ? 0 : op.num_groups);
  const dim3 grid(static_cast<unsigned>(row_tiles), static_cast<unsigned>(tiles_of(op.columns)),
                  static_cast<unsigned>(op.divides_depth ? op.num_groups : 1));
  if (op.element == Element::kFloat32) {
    rematch_grouped_gemm<float><<<grid, kThreads, 0, on>>>(op);
  } else {
    rematch_grouped_gemm<__nv_bfloat16><<<grid, kThreads, 0, on>>>(op);
  }
  return cudaGetLastError();
}

}  // namespace rematch::kernels::cuda
