// Compares models with packed weights with the same models with separate weights.
#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_vector_norm.h>

#include <cmath>

#include "tests/models/model_checks.h"
#include "tests/models/op_stream.h"
#include "tests/models/packed.h"
#include "tests/support/catch.h"
#include "tests/support/small_presets.h"

using namespace rematch;

namespace {

struct PackedStep {
  double loss = 0;
  std::map<std::string, at::Tensor> values, gradients;
  std::map<std::string, int> ops;  // how often forward runs each op
};

PackedStep run_step(const std::string& preset, std::int64_t packed, std::int64_t fused,
                    const std::string& dtype = "float32") {
  const ModelSpec spec =
      spec_of(preset, {{"layers", 2}, {"fused_ops", fused}, {"packed_weights", packed}}, dtype);
  const auto model = make_model(spec, at::kCPU);
  const Batch batch = make_data(spec, "", 1, at::kCPU)->batch(0);
  OpStream stream;
  at::Tensor loss;
  {
    const OpModeGuard guard(&stream);
    loss = model->loss(batch);
  }
  loss.backward();
  PackedStep result;
  result.loss = loss.item<double>();
  for (const std::string& name : stream.names()) ++result.ops[name];
  for (const NamedTensor& parameter : model->parameters()) {
    result.values[parameter.name] = parameter.tensor.detach();
    result.gradients[parameter.name] = parameter.tensor.grad();
  }
  return result;
}

at::Tensor packed_from(const std::map<std::string, at::Tensor>& separate, const std::string& name) {
  std::vector<at::Tensor> parts;
  for (const std::string& part : packed_parts(name)) parts.push_back(separate.at(part));
  return parts.size() == 1 ? parts[0] : pack(parts);
}

double packed_norm(const at::Tensor& x) {
  return at::linalg_vector_norm(x.to(at::kDouble)).item<double>();
}

}  // namespace

TEST_CASE("packed weights have the initial values of separate weights") {
  for (const std::string& preset : testing::small_presets()) {
    for (const char* dtype : {"float32", "bfloat16"}) {
      const PackedStep separate = run_step(preset, 0, 0, dtype);
      const PackedStep packed = run_step(preset, 1, 0, dtype);
      CHECK(packed.values.size() < separate.values.size());
      for (const auto& [name, value] : packed.values) {
        CAPTURE(preset, dtype, name);
        CHECK(value.equal(packed_from(separate.values, name)));
      }
    }
  }
}

// A packed matmul sums the gradients of its results inside one matmul, so they are rounded in
// another order. In bfloat16, which rounds to a relative 2^-9, the tolerances are those of fused
// ops.
TEST_CASE("packed weights give the loss and gradients of separate weights within a tolerance") {
  for (const std::string& preset : testing::small_presets()) {
    for (const bool wide : {true, false}) {
      for (const std::int64_t fused : {0, 1}) {
        const std::string dtype = wide ? "float32" : "bfloat16";
        const PackedStep separate = run_step(preset, 0, fused, dtype);
        const PackedStep packed = run_step(preset, 1, fused, dtype);
        CAPTURE(preset, dtype, fused);
        CHECK(std::abs(packed.loss - separate.loss) <=
              (wide ? 1e-6 : 5e-3) * std::abs(separate.loss));
        for (const auto& [name, gradient] : packed.gradients) {
          CAPTURE(name);
          const at::Tensor expected = packed_from(separate.gradients, name);
          CHECK(packed_norm(gradient.to(at::kDouble) - expected) <=
                (wide ? 1e-6 : 6e-2) * packed_norm(expected));
        }
      }
    }
  }
}

// Llama has 7 linears in a block: query, key, value, output, and three of SwiGLU. Wan has 10: four
// for each attention and two for the feed-forward.
TEST_CASE("packed weights need fewer matmuls in each block") {
  const auto saved = [](const std::string& preset, const char* op, std::int64_t fused) {
    return run_step(preset, 0, fused).ops[op] - run_step(preset, 1, fused).ops[op];
  };
  for (const std::int64_t fused : {0, 1}) {
    CHECK(saved("llama_small", "aten::mm", fused) == 2 * (2 + 1));
    CHECK(saved("wan_small", "aten::addmm", fused) == 2 * (2 + 1));
    // Two blocks, of which one has a feed-forward and one has shared and routed experts.
    CHECK(saved("moe_small", "aten::mm", fused) == 2 * (2 + 1));
    CHECK(saved("moe_small", "aten::_grouped_mm", fused) == 1);
    // DeepSeek's attention has no weights to pack.
    CHECK(saved("deepseek_small", "aten::mm", fused) == 2);
    CHECK(saved("deepseek_small", "aten::_grouped_mm", fused) == 1);
  }
}
