#include "models/model.h"

#include <set>

#include "models/scope/names.h"
#include "models/scope/scope.h"
#include "tests/models/model_checks.h"
#include "tests/support/catch.h"
#include "tests/support/small_presets.h"

using namespace rematch;

namespace {

struct Shape {
  std::string preset;
  std::map<std::string, std::int64_t> overrides;
};

// Tests small and odd shapes: one layer, one token, one head, and widths that are not multiples of
// a vector register's width.
const std::vector<Shape>& shapes() {
  static const std::vector<Shape> list = {
      {"llama_small", {{"layers", 2}}},
      {"llama_small",
       {{"layers", 1},
        {"dim", 6},
        {"heads", 3},
        {"kv_heads", 1},
        {"ffn", 5},
        {"vocab", 257},
        {"batch", 3},
        {"tokens", 7}}},
      {"llama_small",
       {{"layers", 2},
        {"dim", 10},
        {"heads", 1},
        {"kv_heads", 1},
        {"ffn", 1},
        {"batch", 1},
        {"tokens", 2},
        {"tied", 1}}},
      {"wan_small", {{"layers", 2}}},
      {"wan_small",
       {{"layers", 1},
        {"dim", 30},
        {"heads", 3},
        {"ffn", 7},
        {"batch", 3},
        {"frames", 3},
        {"height", 1},
        {"width", 5},
        {"text_tokens", 3},
        {"text_dim", 5},
        {"freq_dim", 2},
        {"channels", 1}}},
      {"wan_1_3b", {{"layers", 2}, {"dim", 64}, {"heads", 4}, {"ffn", 128}, {"tokens", 64}}},
      {"llama_small", {{"layers", 3}, {"frozen_layers", 2}, {"dropout_percent", 10}}},
      {"llama_small", {{"layers", 2}, {"tied", 1}, {"adapter_rank", 3}}},
      {"ltx_small", {{"layers", 2}, {"dropout_percent", 10}}},
      {"llama_small",
       {{"layers", 1},
        {"dim", 6},
        {"heads", 3},
        {"kv_heads", 1},
        {"ffn", 5},
        {"tokens", 7},
        {"packed_weights", 1}}},
      {"ltx_small", {{"layers", 1}, {"fused_ops", 1}, {"packed_weights", 1}}},
      {"wan_small", {{"layers", 1}, {"packed_weights", 1}}},
      {"moe_small", {{"layers", 2}, {"fused_ops", 1}, {"packed_weights", 1}}},
      {"deepseek_small", {{"layers", 2}, {"packed_weights", 1}}},
      {"llama_small", {{"layers", 1}, {"fused_ops", 1}, {"vocab", 4096}, {"tied", 1}}},
      {"llama_small", {{"layers", 1}, {"fused_ops", 1}, {"vocab", 4096}, {"kept_logits", 1}}},
      {"ltx_small",
       {{"layers", 1},
        {"dim", 22},
        {"heads", 1},
        {"ffn", 7},
        {"batch", 3},
        {"frames", 3},
        {"height", 1},
        {"width", 5},
        {"text_tokens", 5},
        {"text_dim", 5},
        {"freq_dim", 2},
        {"channels", 1}}},
      {"wan_small", {{"layers", 1}, {"dropout_percent", 25}}},
      {"moe_small", {{"layers", 2}, {"dropout_percent", 10}}},
      {"moe_small",
       {{"layers", 1},
        {"dim", 24},
        {"heads", 3},
        {"kv_heads", 1},
        {"moe_every", 1},
        {"experts", 3},
        {"top_k", 1},
        {"expert_ffn", 8},
        {"shared_ffn", 5},
        {"batch", 3},
        {"tokens", 17}}},
      {"deepseek_small", {{"layers", 2}, {"dropout_percent", 10}}},
      {"deepseek_small",
       {{"layers", 1},
        {"dim", 8},
        {"heads", 3},
        {"latent_dim", 5},
        {"nope_dim", 3},
        {"rope_dim", 2},
        {"value_dim", 5},
        {"dense_layers", 0},
        {"experts", 2},
        {"top_k", 2},
        {"expert_ffn", 8},
        {"shared_ffn", 3},
        {"batch", 1},
        {"tokens", 9}}},
      {"llama_small", {{"layers", 2}, {"fused_ops", 1}, {"tied", 1}, {"adapter_rank", 3}}},
      {"llama_small", {{"layers", 3}, {"fused_ops", 1}, {"frozen_layers", 2}}},
      {"moe_small", {{"layers", 2}, {"fused_ops", 1}, {"dropout_percent", 10}}},
      {"deepseek_small", {{"layers", 2}, {"fused_ops", 1}}},
      {"wan_small", {{"layers", 1}, {"fused_ops", 1}}},
      {"ltx_small", {{"layers", 1}, {"fused_ops", 1}}},
  };
  return list;
}

class ScopeNames final : public ScopeListener {
 public:
  ScopeNames() { scope_listener() = this; }
  ~ScopeNames() override { scope_listener() = nullptr; }
  void enter(std::string_view name, std::optional<int> index) override {
    std::string path;
    if (!open_.empty()) path.append(open_.back()).push_back('.');
    path.append(name);
    if (index) path.append(".").append(std::to_string(*index));
    if (open_.empty()) outermost.push_back(path);
    open_.push_back(path);
    all.insert(path);
    single.insert(std::string(name));
  }
  void leave() noexcept override { open_.pop_back(); }

  std::vector<std::string> outermost;
  std::set<std::string> all;     // paths
  std::set<std::string> single;  // last component of each path

 private:
  std::vector<std::string> open_;
};

}  // namespace

TEST_CASE("every parameter gets a gradient from the first step") {
  for (const Shape& shape : shapes()) {
    for (const char* dtype : {"float32", "bfloat16"}) {
      CAPTURE(shape.preset, shape.overrides.at("layers"), dtype);
      check_every_parameter_learns(spec_of(shape.preset, shape.overrides, dtype));
    }
  }
}

TEST_CASE("CPU and meta run the same ops with the same layouts") {
  for (const Shape& shape : shapes()) {
    for (const char* dtype : {"float32", "bfloat16"}) {
      CAPTURE(shape.preset, shape.overrides.at("layers"), dtype);
      check_meta_runs_the_same_ops(spec_of(shape.preset, shape.overrides, dtype));
    }
  }
}

TEST_CASE("each parameter has one name, and a step does not replace its tensor") {
  for (const std::string& preset : testing::small_presets()) {
    const ModelSpec spec = spec_of(preset, {{"layers", 2}});
    const auto model = make_model(spec, at::kCPU);
    std::set<std::string> names;
    std::vector<const void*> objects;
    for (const NamedTensor& parameter : model->parameters()) {
      names.insert(parameter.name);
      objects.push_back(parameter.tensor.unsafeGetTensorImpl());
    }
    CHECK(names.size() == model->parameters().size());
    model->loss(make_data(spec, "", 1, at::kCPU)->batch(0)).backward();
    for (std::size_t i = 0; i < objects.size(); ++i) {
      CHECK(model->parameters()[i].tensor.unsafeGetTensorImpl() == objects[i]);
    }
  }
}

TEST_CASE("making a model twice gives the same model") {
  for (const std::string& preset : testing::small_presets()) {
    const ModelSpec spec = spec_of(preset, {{"layers", 2}});
    const Batch batch = make_data(spec, "", 1, at::kCPU)->batch(0);
    const at::Tensor first = make_model(spec, at::kCPU)->loss(batch);
    const at::Tensor second = make_model(spec, at::kCPU)->loss(batch);
    CHECK(first.equal(second));
  }
}

// tests/models/scope/names_test.cpp covers scopes that open only on several ranks.
TEST_CASE("models open exactly the scopes of scope/names.h") {
  std::set<std::string> opened;
  for (const Shape& shape : shapes()) {
    const ModelSpec spec = spec_of(shape.preset, shape.overrides);
    const auto model = make_model(spec, at::kCPU);
    const Batch batch = make_data(spec, "", 1, at::kCPU)->batch(0);
    ScopeNames names;
    model->loss(batch);
    opened.insert(names.single.begin(), names.single.end());
  }
  CHECK(opened == std::set<std::string>(scope_names::kAll.begin(), scope_names::kAll.end()));
}

TEST_CASE(
    "the top-level scopes are embed, blocks by index, head and loss, and blocks contain scopes for "
    "their parts") {
  const std::vector<std::string> order = {"embed", "blocks.0", "blocks.1", "head", "loss"};
  const std::map<std::string, std::vector<std::string>> parts = {
      {"llama_small",
       {"attention_norm", "attention.qkv", "attention.rotary", "attention.core", "attention.output",
        "ffn_norm", "ffn"}},
      {"wan_small",
       {"modulation", "self_attention_norm", "self_attention.qkv", "self_attention.qk_norm",
        "self_attention.rotary", "self_attention.core", "self_attention.output",
        "cross_attention_norm", "cross_attention.qkv", "cross_attention.core",
        "cross_attention.output", "ffn_norm", "ffn"}},
      {"ltx_small",
       {"modulation", "self_attention_norm", "self_attention.qkv", "self_attention.qk_norm",
        "self_attention.rotary", "self_attention.core", "self_attention.output",
        "cross_attention.qkv", "cross_attention.core", "cross_attention.output", "ffn_norm",
        "ffn"}},
      {"moe_small",
       {"attention_norm", "attention.core", "ffn_norm", "moe.router", "moe.router.gate",
        "moe.dispatch", "moe.experts", "moe.shared_experts", "moe.combine"}},
      {"deepseek_small",
       {"attention_norm", "attention.query", "attention.kv_down", "attention.kv_norm",
        "attention.kv_up", "attention.core", "attention.output", "ffn_norm", "moe.router.gate",
        "moe.experts", "moe.shared_experts", "moe.combine"}}};
  for (const auto& [preset, expected] : parts) {
    const ModelSpec spec = spec_of(preset, {{"layers", 2}});
    const auto model = make_model(spec, at::kCPU);
    const Batch batch = make_data(spec, "", 1, at::kCPU)->batch(0);
    ScopeNames names;
    model->loss(batch);
    CHECK(names.outermost == order);
    for (const std::string& part : expected) CHECK(names.all.contains("blocks.1." + part));
  }
}

TEST_CASE("a full-size model on meta takes almost no time and memory") {
  struct Size {
    const char* preset;
    double billions;
  };
  for (const Size& size :
       {Size{"llama3_1b", 1.236}, Size{"llama3_3b", 3.213}, Size{"llama3_8b", 8.030},
        Size{"llama3_70b", 70.55}, Size{"llama3_405b", 405.9}, Size{"llama4_17bx16e", 107.8},
        Size{"deepseek_v3_16b", 15.71}, Size{"wan_1_3b", 1.419}, Size{"wan_14b", 14.29},
        Size{"ltx", 1.923}}) {
    CAPTURE(size.preset);
    const auto model = make_model(spec_of(size.preset, {}), at::kMeta);
    std::int64_t count = 0;
    for (const NamedTensor& parameter : model->parameters()) count += parameter.tensor.numel();
    CHECK(static_cast<double>(count) / 1e9 == Approx(size.billions).epsilon(1e-3));
  }
}
