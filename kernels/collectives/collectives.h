// Functional collectives on the process group registered under `group`. Each function calls
// `_c10d_functional::NAME` and then its `wait_tensor`. The collectives have no gradients:
// models/layers defines the gradients.
//
// On device meta, collectives need no process group. A single process can therefore run one rank of
// any world size on meta.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace rematch::collectives {

enum class Reduction : std::uint8_t { kSum, kMean };

// `x` must be contiguous. all_gather concatenates the ranks' tensors along dimension 0.
// reduce_scatter splits dimension 0, which must be divisible by `size`, the number of ranks.
at::Tensor all_reduce(const at::Tensor& x, const std::string& group);  // sum
at::Tensor all_gather(const at::Tensor& x, std::int64_t size, const std::string& group);
at::Tensor reduce_scatter(const at::Tensor& x, std::int64_t size, const std::string& group);
// Sends input_rows[r] rows to each rank r, in order, and receives output_rows[r] rows from rank r.
at::Tensor all_to_all(const at::Tensor& x, const std::vector<std::int64_t>& output_rows,
                      const std::vector<std::int64_t>& input_rows, const std::string& group);
// Starts to send `x` to the next position of the group's ring and to receive as much from the
// position before. Pass the result to end_shift(), which waits and returns the received tensor with
// x's sizes. Ops between the two calls run during the exchange. An all-to-all, as PyTorch's
// permute_tensor.
at::Tensor start_shift(const at::Tensor& x, std::int64_t position, std::int64_t size,
                       const std::string& group);
at::Tensor end_shift(const at::Tensor& started, at::IntArrayRef sizes);
// Returns a copy of the tensor `x` of the group's rank `root`.
at::Tensor broadcast(const at::Tensor& x, std::int64_t root, const std::string& group);

// Each of these functions runs one collective for many tensors and then waits for each tensor.
std::vector<at::Tensor> all_gather(const std::vector<at::Tensor>& tensors, std::int64_t size,
                                   const std::string& group);
std::vector<at::Tensor> reduce_scatter(const std::vector<at::Tensor>& tensors, Reduction reduction,
                                       std::int64_t size, const std::string& group);
// Writes the results into `tensors`.
void all_reduce_in_place(const std::vector<at::Tensor>& tensors, Reduction reduction,
                         const std::string& group);

}  // namespace rematch::collectives
