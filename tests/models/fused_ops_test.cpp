// Compares models that use fused ops with the same models without fused ops.
#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_vector_norm.h>

#include <cmath>
#include <set>

#include "tests/models/model_checks.h"
#include "tests/models/op_stream.h"
#include "tests/support/catch.h"
#include "tests/support/small_presets.h"

using namespace rematch;

namespace {

struct Step {
  double loss;
  std::vector<NamedTensor> gradients;
  std::set<std::string> ops;  // names of the ops that forward runs
};

Step step(const ModelSpec& spec, Model& model) {
  const Batch batch = make_data(spec, "", 1, at::kCPU)->batch(0);
  OpStream stream;
  at::Tensor loss;
  {
    const OpModeGuard guard(&stream);
    loss = model.loss(batch);
  }
  loss.backward();
  const std::vector<std::string> names = stream.names();
  Step result{loss.item<double>(), {}, {names.begin(), names.end()}};
  for (const NamedTensor& parameter : model.parameters()) {
    result.gradients.push_back({parameter.name, parameter.tensor.grad()});
  }
  return result;
}

// The logits of language models are so large that the fused loss computes them again in backward,
// unless `kept_logits` is 1.
Step step(const std::string& preset, const std::string& dtype, std::int64_t fused,
          std::int64_t kept_logits = 0) {
  std::map<std::string, std::int64_t> dimensions = {{"layers", 2}, {"fused_ops", fused}};
  if (trains_on_text(spec_of(preset, {}).family)) dimensions["vocab"] = 4096;
  if (kept_logits != 0) dimensions["kept_logits"] = kept_logits;
  const ModelSpec spec = spec_of(preset, dimensions, dtype);
  return step(spec, *make_model(spec, at::kCPU));
}

// Returns a step of a video model in float32 with ATen's ops, with the weights of a bfloat16 model.
Step step_of_rounded_weights(const std::string& preset) {
  const ModelSpec spec = spec_of(preset, {{"layers", 2}});
  const auto model = make_model(spec, at::kCPU);
  for (const NamedTensor& parameter : model->parameters()) {
    const at::Tensor values = parameter.tensor.detach();
    values.copy_(values.to(at::kBFloat16));
  }
  return step(spec, *model);
}

double norm_of(const at::Tensor& x) {
  return at::linalg_vector_norm(x.to(at::kDouble)).item<double>();
}

}  // namespace

// A fused op rounds only once and sums in another order, so results differ slightly. In float32 the
// loss may differ by 1e-6, and each gradient by 1e-4 of its norm. In bfloat16, which rounds to a
// relative 2^-9, the tolerances are 5e-3 and 6e-2. The gradients of video models in bfloat16 are
// compared with gradients in float32 for the same weights: terms cancel in the gradient of a key's
// bias, so the rounding errors of ATen's ops alone are 4e-2 of its norm. The router of a language
// model may choose other experts in float32.
TEST_CASE("fused ops give the loss and gradients of ATen's ops within a tolerance") {
  for (const std::string& preset : testing::small_presets()) {
    for (const bool wide : {true, false}) {
      const std::string dtype = wide ? "float32" : "bfloat16";
      CAPTURE(preset, dtype);
      const bool is_video = !trains_on_text(spec_of(preset, {}).family);
      const Step eager =
          !wide && is_video ? step_of_rounded_weights(preset) : step(preset, dtype, 0);
      const Step fused = step(preset, dtype, 1);
      CHECK(std::abs(fused.loss - eager.loss) <= (wide ? 1e-6 : 5e-3) * std::abs(eager.loss));
      for (std::size_t i = 0; i < eager.gradients.size(); ++i) {
        CAPTURE(eager.gradients[i].name);
        const at::Tensor& expected = eager.gradients[i].tensor;
        const double difference = norm_of(fused.gradients[i].tensor.to(at::kDouble) - expected);
        CHECK(difference <= (wide ? 1e-4 : 6e-2) * norm_of(expected));
      }
    }
  }
}

TEST_CASE("fused models are deterministic") {
  for (const std::string& preset : testing::small_presets()) {
    CAPTURE(preset);
    const Step first = step(preset, "bfloat16", 1);
    const Step second = step(preset, "bfloat16", 1);
    CHECK(first.loss == second.loss);
    for (std::size_t i = 0; i < first.gradients.size(); ++i) {
      CHECK(first.gradients[i].tensor.equal(second.gradients[i].tensor));
    }
  }
}

TEST_CASE("a loss that keeps its logits gives the bits of one that computes them again") {
  for (const char* preset : {"llama_small", "moe_small", "deepseek_small"}) {
    for (const char* dtype : {"float32", "bfloat16"}) {
      CAPTURE(preset, dtype);
      const Step again = step(preset, dtype, 1);
      const Step kept = step(preset, dtype, 1, /*kept_logits=*/1);
      CHECK(again.ops.contains("rematch::linear_cross_entropy"));
      CHECK(kept.ops.contains("rematch::linear_cross_entropy_with_logits"));
      CHECK(kept.loss == again.loss);
      for (std::size_t i = 0; i < again.gradients.size(); ++i) {
        CAPTURE(again.gradients[i].name);
        CHECK(kept.gradients[i].tensor.equal(again.gradients[i].tensor));
      }
    }
  }
}

TEST_CASE("each fused model runs its fused ops, and none of the ops that the fused ops replace") {
  const std::vector<std::string> language = {"rms_norm", "add_rms_norm", "rope", "silu_mul",
                                             "linear_cross_entropy"};
  const std::map<std::string, std::vector<std::string>> expected = {
      {"llama_small", language},
      {"moe_small", language},
      {"deepseek_small", language},
      {"wan_small", {"rms_norm", "rms_norm_rope", "layer_norm", "gated_add", "bias_gelu"}},
      {"ltx_small", {"rms_norm", "rms_norm_rope", "modulate", "gated_add", "bias_gelu"}}};
  for (const std::string& preset : testing::small_presets()) {
    CAPTURE(preset);
    const std::vector<std::string>& names = expected.at(preset);
    const std::set<std::string> fused = step(preset, "bfloat16", 1).ops;
    for (const std::string& name : names) CHECK(fused.contains("rematch::" + name));
    for (const char* replaced : {"aten::rsqrt", "aten::stack", "aten::_log_softmax",
                                 "aten::native_layer_norm", "aten::gelu"}) {
      CAPTURE(replaced);
      CHECK_FALSE(fused.contains(replaced));
    }
    for (const std::string& name : step(preset, "bfloat16", 0).ops) {
      if (name.starts_with("rematch::")) CHECK(name.find("attention") != std::string::npos);
    }
  }
}
