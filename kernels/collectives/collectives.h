// Functional collectives, each with its wait: `_c10d_functional::NAME wait_tensor` at the
// dispatcher, on the process group registered under `group`. No gradients: models/layers has them.
//
// On meta they need no group: with this library linked, a rank of any world runs in one process.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace rematch::collectives {

enum class Reduction : std::uint8_t { kSum, kMean };

// `x` must be contiguous. Dimension 0 is what ranks put together or share out; `size` ranks must
// divide it where it is shared out.
at::Tensor all_reduce(const at::Tensor& x, const std::string& group);  // sum
at::Tensor all_gather(const at::Tensor& x, std::int64_t size, const std::string& group);
at::Tensor reduce_scatter(const at::Tensor& x, std::int64_t size, const std::string& group);
// Sends input_rows[r] rows to rank r, in order, and gets output_rows[r] of it.
at::Tensor all_to_all(const at::Tensor& x, const std::vector<std::int64_t>& output_rows,
                      const std::vector<std::int64_t>& input_rows, const std::string& group);
// A copy of what rank `root` of the group has.
at::Tensor broadcast(const at::Tensor& x, std::int64_t root, const std::string& group);

// Many tensors by one collective, and a wait for each.
std::vector<at::Tensor> all_gather(const std::vector<at::Tensor>& tensors, std::int64_t size,
                                   const std::string& group);
std::vector<at::Tensor> reduce_scatter(const std::vector<at::Tensor>& tensors, Reduction reduction,
                                       std::int64_t size, const std::string& group);
// Into the tensors themselves.
void all_reduce_in_place(const std::vector<at::Tensor>& tensors, Reduction reduction,
                         const std::string& group);

}  // namespace rematch::collectives
