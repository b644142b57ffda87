#include "tests/support/toy_trace.h"

#include "tests/support/trace_builder.h"

namespace rematch::testing {
namespace {

enum class Bias : std::uint8_t { kWithout, kWith };

constexpr int kKinds = 3;  // number of kinds of blocks in toy_three_kinds
constexpr std::int64_t kTextTokens = 512;
constexpr std::int64_t kExperts = 4;
constexpr std::int64_t kExpertsOfToken = 2;

class ToyModel {
 public:
  ToyModel(const ToySizes& sizes, Bias bias)
      : sizes_(sizes), bias_(bias), build_(bias == Bias::kWith ? "toy_biased" : "toy_llama") {}

  Trace run(int num_kinds = 1) {
    if (num_kinds > 1) build_.trace().model = "toy_three_kinds";
    build_.trace().dimensions = {{"dim", sizes_.dim},       {"ffn", sizes_.ffn},
                                 {"heads", sizes_.heads},   {"layers", sizes_.layers},
                                 {"tokens", sizes_.tokens}, {"vocab", sizes_.vocab}};
    const ValueId ids = build_.outside({sizes_.tokens}, "int64");
    const ValueId targets = build_.outside({sizes_.tokens}, "int64");
    rotary_ = build_.outside({sizes_.tokens, sizes_.dim});
    if (num_kinds > 1) text_ = build_.outside({kTextTokens, sizes_.dim});
    ValueId x = embed(ids);
    for (int layer_index = 0; layer_index < sizes_.layers; ++layer_index) {
      const auto scope = build_.scope("blocks", layer_index);
      const int kind = layer_index % num_kinds;
      x = build_.call("aten::add.Tensor", {x, attention(x)}, width(sizes_.dim));
      if (kind == 2) {
        x = build_.call("aten::add.Tensor", {x, cross_attention(x)}, width(sizes_.dim));
      }
      x = build_.call("aten::add.Tensor", {x, kind == 1 ? moe(x) : ffn(x)}, width(sizes_.dim));
    }
    loss(head(x), targets);
    return build_.finish();
  }

 private:
  Shape width(std::int64_t channels) const { return {sizes_.tokens, channels}; }

  ValueId embed(ValueId ids) {
    const auto scope = build_.scope("embed");
    const ValueId table = build_.parameter({sizes_.vocab, sizes_.dim});
    return build_.call("aten::embedding", {table, ids}, width(sizes_.dim), {{1}, {}});
  }

  // Adds the ops that RMSNorm runs just below autograd: pow mean add_ rsqrt mul mul.
  ValueId norm(ValueId x) {
    const ValueId weight = build_.parameter({sizes_.dim});
    const ValueId square =
        build_.call("aten::pow.Tensor_Scalar", {x}, width(sizes_.dim), {{0}, {}});
    const ValueId mean = build_.call("aten::mean.dim", {square}, width(1));
    build_.in_place("aten::add_.Scalar", {mean});
    const ValueId scale = build_.call("aten::rsqrt", {mean}, width(1), {{}, {0}});
    const ValueId unit =
        build_.call("aten::mul.Tensor", {x, scale}, width(sizes_.dim), {{1, 0}, {}});
    return build_.call("aten::mul.Tensor", {unit, weight}, width(sizes_.dim), {{1, 0}, {}});
  }

  ValueId linear(ValueId x, std::int64_t channels) {
    const std::int64_t inner = build_.shape(x).back();
    const ValueId weight = build_.parameter({channels, inner});
    const ValueId transposed = build_.view("aten::t", weight, {inner, channels});
    if (bias_ == Bias::kWithout) {
      return build_.call("aten::mm", {x, transposed}, width(channels), {{0, 1}, {}});
    }
    const ValueId bias = build_.parameter({channels});
    return build_.call("aten::addmm", {bias, x, transposed}, width(channels), {{1, 2}, {}});
  }

  ValueId rotate(ValueId x) {
    return build_.call("aten::mul.Tensor", {x, rotary_}, width(sizes_.dim), {{1}, {}});
  }

  ValueId attention(ValueId x) {
    const auto scope = build_.scope("attention");
    const ValueId normed = norm(x);
    const ValueId q = heads(rotate(linear(normed, sizes_.dim)));
    const ValueId k = heads(rotate(linear(normed, sizes_.dim)));
    const ValueId v = heads(linear(normed, sizes_.dim));
    const std::vector<ValueId> outputs =
        build_.op("rematch::attention", {q, k, v}, {build_.shape(q), {sizes_.heads, sizes_.tokens}},
                  {{0, 1, 2}, {0, 1}});
    const ValueId joined = build_.view("aten::view", outputs[0], width(sizes_.dim));
    return linear(joined, sizes_.dim);
  }

  ValueId heads(ValueId x) {
    const std::int64_t tokens = build_.shape(x).front();
    return build_.view("aten::view", x, {sizes_.heads, tokens, sizes_.dim / sizes_.heads});
  }

  ValueId cross_attention(ValueId x) {
    const auto scope = build_.scope("cross_attention");
    const ValueId q = heads(linear(norm(x), sizes_.dim));
    const ValueId k = heads(text_linear());
    const ValueId v = heads(text_linear());
    const std::vector<ValueId> outputs =
        build_.op("rematch::attention", {q, k, v}, {build_.shape(q), {sizes_.heads, sizes_.tokens}},
                  {{0, 1, 2}, {0, 1}});
    return linear(build_.view("aten::view", outputs[0], width(sizes_.dim)), sizes_.dim);
  }

  ValueId text_linear() {
    const ValueId weight = build_.parameter({sizes_.dim, sizes_.dim});
    const ValueId transposed = build_.view("aten::t", weight, {sizes_.dim, sizes_.dim});
    return build_.call("aten::mm", {text_, transposed}, {kTextTokens, sizes_.dim}, {{0, 1}, {}});
  }

  // Sorts tokens by expert, runs three products over the batch of experts, and sorts back.
  ValueId moe(ValueId x) {
    const auto scope = build_.scope("moe");
    const ValueId normed = norm(x);
    const ValueId scores = linear(normed, kExperts);
    const ValueId chances =
        build_.call("aten::_softmax", {scores}, build_.shape(scores), {{}, {0}});
    const std::vector<ValueId> best = build_.op(
        "aten::topk", {chances}, {width(kExpertsOfToken), width(kExpertsOfToken)}, {{}, {1}});
    const std::int64_t rows = sizes_.tokens * kExpertsOfToken;
    const ValueId sorted =
        build_.call("aten::index.Tensor", {normed, best[1]}, {rows, sizes_.dim}, {{1}, {}});
    const ValueId gate_in = of_experts(sorted, sizes_.ffn);
    const ValueId gate = build_.call("aten::silu", {gate_in}, {rows, sizes_.ffn}, {{0}, {}});
    const ValueId up = of_experts(sorted, sizes_.ffn);
    const ValueId product =
        build_.call("aten::mul.Tensor", {gate, up}, {rows, sizes_.ffn}, {{1, 0}, {}});
    const ValueId down = of_experts(product, sizes_.dim);
    const ValueId weighed =
        build_.call("aten::mul.Tensor", {down, best[0]}, {rows, sizes_.dim}, {{1, 0}, {}});
    return build_.call("aten::index_add", {weighed, best[1]}, width(sizes_.dim), {{1}, {}});
  }

  ValueId of_experts(ValueId x, std::int64_t channels) {
    const Shape shape = build_.shape(x);
    const std::int64_t rows = shape.front() / kExperts;
    const ValueId weights = build_.parameter({kExperts, shape.back(), channels});
    const ValueId batched = build_.view("aten::view", x, {kExperts, rows, shape.back()});
    const ValueId out =
        build_.call("aten::bmm", {batched, weights}, {kExperts, rows, channels}, {{0, 1}, {}});
    return build_.view("aten::view", out, {shape.front(), channels});
  }

  ValueId ffn(ValueId x) {
    const auto scope = build_.scope("ffn");
    const ValueId normed = norm(x);
    const ValueId gate_in = linear(normed, sizes_.ffn);
    const ValueId gate = build_.call("aten::silu", {gate_in}, width(sizes_.ffn), {{0}, {}});
    const ValueId up = linear(normed, sizes_.ffn);
    const ValueId product =
        build_.call("aten::mul.Tensor", {gate, up}, width(sizes_.ffn), {{1, 0}, {}});
    return linear(product, sizes_.dim);
  }

  ValueId head(ValueId x) {
    const auto scope = build_.scope("head");
    const ValueId normed = norm(x);
    return linear(normed, sizes_.vocab);
  }

  void loss(ValueId logits, ValueId targets) {
    const auto scope = build_.scope("loss");
    const ValueId log_probabilities =
        build_.call("aten::_log_softmax", {logits}, width(sizes_.vocab), {{}, {0}});
    build_.op("aten::nll_loss_forward", {log_probabilities, targets}, {{}, {}}, {{0, 1}, {1}});
  }

  ToySizes sizes_;
  Bias bias_;
  TraceBuilder build_;
  ValueId rotary_;
  ValueId text_;
};

}  // namespace

Trace toy_llama(const ToySizes& sizes) { return ToyModel(sizes, Bias::kWithout).run(); }

Trace toy_three_kinds(const ToySizes& sizes) { return ToyModel(sizes, Bias::kWithout).run(kKinds); }

Trace toy_biased(const ToySizes& sizes) { return ToyModel(sizes, Bias::kWith).run(); }

Trace toy_sharded(int layers) {
  TraceBuilder build("sharded");
  ValueId x = build.outside({4, 4}, "float32", true);
  for (int layer = 0; layer < layers; ++layer) {
    const auto scope = build.scope("blocks", layer);
    const ValueId shard = build.parameter({8});
    const ValueId flat =
        build.call("_c10d_functional::all_gather_into_tensor_coalesced", {shard}, {16});
    build.wait(flat);
    const ValueId weight = build.view("aten::view", flat, {4, 4});
    {
      const auto ffn = build.scope("ffn");
      x = build.call("aten::mm", {x, weight}, {4, 4}, {{0, 1}, {}});
      x = build.call("aten::silu", {x}, {4, 4}, {{0}, {}});
    }
  }
  return build.finish();
}

}  // namespace rematch::testing
