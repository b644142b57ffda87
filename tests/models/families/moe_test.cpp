
#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/rand.h>

#include <set>

#include "models/language/feed_forward.h"
#include "tests/models/model_checks.h"
#include "tests/models/op_stream.h"
#include "tests/models/plain_language.h"
#include "tests/support/catch.h"

using namespace rematch;

namespace {

const std::map<std::string, std::int64_t> kReducedMoe = {
    {"layers", 2}, {"dim", 64},        {"heads", 4},       {"ffn", 48},  {"experts", 5},
    {"top_k", 2},  {"expert_ffn", 24}, {"shared_ffn", 40}, {"batch", 2}, {"tokens", 33}};

struct OneMixture {
  explicit OneMixture(const ModelSpec& spec)
      : parameters(at::kFloat, at::kCPU),
        mixture(parameters, "moe", spec, RouterScore::kSigmoid, ScoreApplied::kBeforeExperts) {}
  Parameters parameters;
  Mixture mixture;
};

std::vector<std::string> ops_of(const Mixture& mixture, const at::Tensor& x) {
  OpStream stream;
  const OpModeGuard guard(&stream);
  mixture.forward(x);
  std::vector<std::string> ops;
  for (const OpSeen& op : stream.ops()) ops.push_back(op.name + " " + op.outputs);
  return ops;
}

}  // namespace

TEST_CASE("the MoE's loss and gradients equal the results of plain code in double") {
  check_against_plain_language(spec_of("moe_small", kReducedMoe));
  std::map<std::string, std::int64_t> top_1 = kReducedMoe;
  top_1["top_k"] = 1;
  top_1["moe_every"] = 1;
  check_against_plain_language(spec_of("moe_small", top_1));
}

TEST_CASE("every n-th block has experts, and the other blocks have a feed-forward layer") {
  const auto model = make_model(spec_of("moe_small", {{"layers", 6}, {"moe_every", 3}}), at::kMeta);
  std::set<std::string> names;
  for (const NamedTensor& parameter : model->parameters()) names.insert(parameter.name);
  for (const std::string layer : {"0", "1", "3", "4"}) {
    CHECK(names.contains("blocks." + layer + ".ffn.w1.weight"));
    CHECK_FALSE(names.contains("blocks." + layer + ".moe.experts.w1"));
  }
  for (const std::string layer : {"2", "5"}) {
    CHECK(names.contains("blocks." + layer + ".moe.experts.w1"));
    CHECK_FALSE(names.contains("blocks." + layer + ".ffn.w1.weight"));
  }
}

// Equal tokens all go to the same experts, so the other experts get no tokens.
TEST_CASE("ops and shapes do not depend on the routing") {
  const ModelSpec spec = spec_of("moe_small", kReducedMoe);
  const OneMixture one(spec);
  const at::Tensor spread = at::rand({66, 64});
  const at::Tensor alike = at::full_like(spread, 0.5);
  CHECK(ops_of(one.mixture, spread) == ops_of(one.mixture, alike));
}

TEST_CASE("experts without tokens get a zero gradient") {
  const ModelSpec spec = spec_of("moe_small", kReducedMoe);
  const OneMixture one(spec);
  const at::Tensor alike = at::full({66, 64}, 0.5);
  one.mixture.forward(alike).pow(2).sum().backward();
  for (const NamedTensor& parameter : one.parameters.list()) {
    if (parameter.name != "moe.experts.w1") continue;
    const at::Tensor per_expert = parameter.tensor.grad().abs().amax({1, 2});
    CHECK(per_expert.gt(0).sum().item<std::int64_t>() == 2);
    CHECK(per_expert.isfinite().all().item<bool>());
  }
}

TEST_CASE("each expert of the small models gets tokens from the first step") {
  for (const char* preset : {"moe_small", "deepseek_small"}) {
    const ModelSpec spec = spec_of(preset, {});
    const auto model = make_model(spec, at::kCPU);
    model->loss(make_data(spec, "", 1, at::kCPU)->batch(0)).backward();
    for (const NamedTensor& parameter : model->parameters()) {
      if (parameter.name.find(".experts.") == std::string::npos) continue;
      CAPTURE(preset, parameter.name);
      CHECK(parameter.tensor.grad().abs().amax({1, 2}).gt(0).all().item<bool>());
    }
  }
}
