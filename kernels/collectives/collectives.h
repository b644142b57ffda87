// Functional collectives, each followed by its wait: `_c10d_functional::NAME wait_tensor` at the
// dispatcher, on the process group registered under `group`. The collectives have no gradients:
// models/layers defines the gradients.
//
// On meta the collectives need no group. A program that links this library can run a rank of any
// world in one process.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace rematch::collectives {

enum class Reduction : std::uint8_t { kSum, kMean };

// `x` must be contiguous. Ranks concatenate or split dimension 0. If ranks split the dimension, it
// must be divisible by `size`.
at::Tensor all_reduce(const at::Tensor& x, const std::string& group);  // sum
at::Tensor all_gather(const at::Tensor& x, std::int64_t size, const std::string& group);
at::Tensor reduce_scatter(const at::Tensor& x, std::int64_t size, const std::string& group);
// Sends input_rows[r] rows to rank r, in order, and receives output_rows[r] rows from it.
at::Tensor all_to_all(const at::Tensor& x, const std::vector<std::int64_t>& output_rows,
                      const std::vector<std::int64_t>& input_rows, const std::string& group);
// Returns a copy of the tensor of rank `root` of the group.
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
