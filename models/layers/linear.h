// Linear layers and dropout: their parameters and the ops that they run. A linear without a bias
// runs `t mm`, and a linear with a bias runs `t addmm`. An adapted linear adds a low-rank adapter
// to a frozen weight (LoRA, Hu et al. 2021). Dropout is one op, `native_dropout`. The op uses the
// device's default generator, so recompute must first restore the generator's state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/layers/parameters.h"

namespace rematch {

// The part of a linear that a rank of a tensor-parallel layout holds: all of it, a share of the
// outputs (column-parallel), or a share of the inputs (row-parallel). For kByInputs the ranks'
// results must be summed: see leave() in layers/collectives.h. kShared is a whole linear whose
// outputs are used only by this rank's heads, so its gradients are partial. Without tp, the four
// kinds are equal.
enum class LinearSplit : std::uint8_t { kWhole, kByOutputs, kByInputs, kShared };

struct Linear {
  Weight weight;  // [out, in]
  Weight bias;    // [out], or undefined
};

enum class Bias : bool { kNo, kYes };

// Creates the parameters `name`.weight and, with Bias::kYes, `name`.bias. Values are uniform within
// 1 / sqrt(inputs). `inputs` and `outputs` are the widths before the split.
Linear make_linear(Parameters& parameters, const std::string& name, std::int64_t inputs,
                   std::int64_t outputs, Bias bias, LinearSplit split = LinearSplit::kWhole);

// x must be contiguous. If x has more than two dimensions, it is viewed as a matrix.
at::Tensor apply_linear(const Linear& linear, const at::Tensor& x);

// Applies a linear that is split by inputs, sums the ranks' results and adds the bias once. The ops
// are `mm view all_reduce wait_tensor add`. If tokens are split, `reduce_scatter_tensor` replaces
// the all-reduce, and each rank adds the bias to its tokens.
at::Tensor apply_and_leave(const Linear& linear, const at::Tensor& x,
                           const TensorParallel& parallel);

struct AdaptedLinear {
  Linear base;
  Weight down;  // [rank, in]; undefined without an adapter
  Weight up;    // [out, rank]
};

// Creates a linear, as make_linear does. If the adapter's rank is above 0, also
// creates the trained parameters `name`.adapter.down and .up. `up` does not start at zero, because
// then `down` would get no gradient in the first step.
AdaptedLinear make_adapted_linear(Parameters& parameters, const std::string& name,
                                  std::int64_t inputs, std::int64_t outputs, std::int64_t rank,
                                  LinearSplit split = LinearSplit::kWhole, Bias bias = Bias::kNo);

// Returns x weight^T + 2 (x down^T) up^T for a matrix x. The ops are `t mm`. An adapter adds `t mm
// t mm mul add`, and puts all ops into a scope `adapted`. The factor 2 is the paper's alpha / rank
// with alpha = 2 rank.
at::Tensor apply_linear(const AdaptedLinear& linear, const at::Tensor& x);

// Linears of one input, which are split by outputs. With the dimension `packed_weights`, one weight
// holds the rows of all linears, and one matmul computes all results.
struct JointLinear {
  Linear packed;                        // undefined if every linear has a weight of its own
  std::vector<std::int64_t> widths;     // only if packed: width of each result on this rank
  std::vector<AdaptedLinear> separate;  // otherwise
};

// `parts` are the names of the linears and the widths of their results. Creates their parameters as
// make_adapted_linear does with the spec's adapter_rank. If weights are packed, creates
// `packed_name`.weight and .bias instead, with the values of the separate parameters. Weights with
// adapters are not packed.
JointLinear make_joint_linear(Parameters& parameters, const ModelSpec& spec,
                              const std::string& packed_name, const std::vector<PackedPart>& parts,
                              std::int64_t inputs, Bias bias);

// Returns the result of each linear. Results of a packed weight are views of one tensor.
std::vector<at::Tensor> apply_joint_linear(const JointLinear& linear, const at::Tensor& x);

// Returns the fraction of elements that dropout sets to 0; 0 if the option is off.
double dropout_ratio(const ModelSpec& spec);

// Sets a random fraction `ratio` of x's elements to 0 and scales the other elements by 1 / (1 -
// ratio). If `ratio` is 0, returns x itself without running an op.
at::Tensor dropout(at::Tensor x, double ratio);

}  // namespace rematch
