// Shapes: R rows of all groups, I and O widths, E groups.
#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/ops/_grouped_mm_cuda_dispatch.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>
#include <torch/library.h>

#include <optional>
#include <utility>

#include "kernels/grouped/grouped_mm.h"
#include "kernels/op/op.h"

namespace rematch {
namespace {

using kernels::Element;
using kernels::GroupedMatmul;
using kernels::GroupedMatrix;
using OptionalTensor = std::optional<at::Tensor>;

// Whether LibTorch's own kernel reads the ends on the device. Says no if it is not sure.
bool libtorch_reads_on_device(const at::Tensor& a) {
  if (a.scalar_type() != at::kBFloat16) return false;
  const cudaDeviceProp* const card = at::cuda::getDeviceProperties(a.get_device());
  return card->minor == 0 && (card->major == 9 || card->major == 10);
}

bool is_supported(const at::Tensor& a, const at::Tensor& b, const OptionalTensor& ends,
                  const OptionalTensor& bias, std::optional<at::ScalarType> dtype) {
  const bool has_dtype = a.scalar_type() == at::kFloat || a.scalar_type() == at::kBFloat16;
  return has_dtype && a.scalar_type() == b.scalar_type() &&
         dtype.value_or(a.scalar_type()) == a.scalar_type() && ends.has_value() &&
         ends->scalar_type() == at::kInt && !bias.has_value() && (a.dim() == 2 || b.dim() == 2);
}

GroupedMatrix strides_of(const at::Tensor& matrix) {
  return {matrix.dim() == 3 ? matrix.stride(0) : 0, matrix.stride(-2), matrix.stride(-1)};
}

GroupedMatrix transposed(const GroupedMatrix& matrix) {
  return {matrix.group, matrix.column, matrix.row};
}

// The layout of LibTorch's result, in which rows begin at multiples of 16 bytes.
at::Tensor allocate(const at::Tensor& a, const at::Tensor& b, std::int64_t num_groups) {
  constexpr std::int64_t kAlignmentBytes = 16;
  const std::int64_t rows = a.size(-2);
  const std::int64_t columns = b.size(-1);
  const auto multiple = kAlignmentBytes / static_cast<std::int64_t>(a.element_size());
  const std::int64_t stride = (columns + multiple - 1) / multiple * multiple;
  if (a.dim() != b.dim()) return at::empty_strided({rows, columns}, {stride, 1}, a.options());
  return at::empty_strided({num_groups, rows, columns}, {rows * stride, stride, 1}, a.options());
}

at::Tensor grouped_mm(const at::Tensor& a, const at::Tensor& b, const OptionalTensor& ends,
                      const OptionalTensor& bias, std::optional<at::ScalarType> dtype) {
  if (libtorch_reads_on_device(a) || !is_supported(a, b, ends, bias, dtype)) {
    return at::cuda::_grouped_mm(a, b, ends, bias, dtype);
  }
  TORCH_CHECK(a.size(-1) == b.size(-2), "_grouped_mm: a has ", a.size(-1), " columns and b ",
              b.size(-2), " rows");
  const c10::DeviceGuard guard(a.device());
  at::Tensor out = allocate(a, b, ends->size(0));
  GroupedMatmul op{a.scalar_type() == at::kFloat ? Element::kFloat32 : Element::kBFloat16,
                   a.dim() == b.dim(),
                   ends->size(0),
                   a.size(-2),
                   b.size(-1),
                   a.size(-1),
                   ends->const_data_ptr<std::int32_t>(),
                   a.const_data_ptr(),
                   strides_of(a),
                   b.const_data_ptr(),
                   strides_of(b),
                   out.mutable_data_ptr(),
                   strides_of(out)};
  if (a.dim() == 3) {  // groups divide the columns of b, which are the rows of b's transpose
    std::swap(op.a, op.b);
    std::swap(op.of_a, op.of_b);
    std::swap(op.rows, op.columns);
    op.of_a = transposed(op.of_a);
    op.of_b = transposed(op.of_b);
    op.of_out = transposed(op.of_out);
  }
  kernels::launch_on_cuda(a.device(), [&](void* stream) { return kernels::cuda::run(op, stream); });
  return out;
}

// LibTorch warns about kernels that are replaced.
struct NoWarnings final : c10::WarningHandler {
  void process(const c10::Warning& /*warning*/) override {}
};

}  // namespace

void use_grouped_mm_on_device() {
  // The library is never destroyed, because unregistering at exit would race with other static
  // destruction. `used` keeps the library reachable, so that leak checkers do not report it.
  [[gnu::used]] static const auto* library = [] {
    NoWarnings handler;
    const c10::WarningUtils::WarningHandlerGuard guard(&handler);
    auto* cuda = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__,
                                    __LINE__);
    cuda->impl("_grouped_mm", TORCH_FN(grouped_mm));
    return cuda;
  }();
}

}  // namespace rematch
