// Shared by language models: embedding, pre-norm blocks, final norm, head and cross-entropy on the
// next token. A model says what its blocks are made of.
#pragma once

#include <ATen/ops/add.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>

#include <string>
#include <utility>
#include <vector>

#include "kernels/fused/linear_cross_entropy.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"
#include "models/layers/rotary.h"
#include "models/scope/scope.h"

namespace rematch {

inline constexpr double kLanguageNormEps = 1e-5;

// RMSNorm in a scope of its own.
inline at::Tensor language_norm(const char* scope_name, const at::Tensor& x_TD,
                                const at::Tensor& weight, Ops ops) {
  const Scope scope(scope_name);
  return rms_norm(x_TD, weight, kLanguageNormEps, ops);
}

// One pre-norm block. `Parts` says what it is made of: types Attention, with a constructor
// (parameters, name, spec) and forward(x_TD, table), and Ffn, with forward(x_TD), each opening its
// scope; static make_ffn(parameters, name, spec, layer) and make_table(spec, device). And of the
// model, static embedding_values(dim).
template <typename Parts>
class LanguageBlock {
 public:
  LanguageBlock(Parameters& parameters, const ModelSpec& spec, std::int64_t layer)
      : LanguageBlock(parameters, "blocks." + std::to_string(layer), spec, layer) {}

  at::Tensor forward(at::Tensor x_TD, const RotaryTable& table) const {
    at::Tensor branch_TD = language_norm("attention_norm", x_TD, attention_norm_, ops_);
    branch_TD = attention_.forward(branch_TD, table);
    x_TD = at::add(x_TD, branch_TD);
    branch_TD = language_norm("ffn_norm", x_TD, ffn_norm_, ops_);
    branch_TD = ffn_.forward(branch_TD);
    return at::add(x_TD, branch_TD);
  }

 private:
  // Members are made, and so parameters listed, in the order of their declaration.
  LanguageBlock(Parameters& parameters, const std::string& name, const ModelSpec& spec,
                std::int64_t layer)
      : ops_(ops_of(spec)),
        attention_norm_(
            parameters.add(name + ".attention_norm.weight", {spec.at("dim")}, near_one())),
        attention_(parameters, name + ".attention", spec),
        ffn_norm_(parameters.add(name + ".ffn_norm.weight", {spec.at("dim")}, near_one())),
        ffn_(Parts::make_ffn(parameters, name, spec, layer)) {}

  Ops ops_;
  at::Tensor attention_norm_;
  typename Parts::Attention attention_;
  at::Tensor ffn_norm_;
  typename Parts::Ffn ffn_;
};

// Its batch: tokens and targets, int64, [batch * tokens].
template <typename Parts>
class LanguageModel final : public Model {
 public:
  LanguageModel(const ModelSpec& spec, at::Device device)
      : ops_(ops_of(spec)), parameters_(dtype_of(spec), device) {
    const std::int64_t dim = spec.at("dim");
    const std::int64_t num_frozen = spec.option("frozen_layers");
    const bool only_adapters_learn = spec.option("adapter_rank") > 0;
    table_ = Parts::make_table(spec, device);
    parameters_.set_frozen(only_adapters_learn || num_frozen > 0);
    embedding_ =
        parameters_.add("embed.weight", {spec.at("vocab"), dim}, Parts::embedding_values(dim));
    for (std::int64_t layer = 0; layer < spec.at("layers"); ++layer) {
      parameters_.set_frozen(only_adapters_learn || layer < num_frozen);
      blocks_.emplace_back(parameters_, spec, layer);
    }
    parameters_.set_frozen(only_adapters_learn);
    head_norm_ = parameters_.add("head.norm.weight", {dim}, near_one());
    if (spec.option("tied") == 1) {
      head_.weight = embedding_;
    } else {
      head_ = make_linear(parameters_, "head.output", dim, spec.at("vocab"), Bias::kNo);
    }
  }

  at::Tensor loss(const Batch& batch) override {
    at::Tensor x = embed(batch.tensors.at(0));
    for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
      const Scope scope("blocks", static_cast<int>(layer));
      x = run_block(
          [this, layer](at::Tensor input) {
            return blocks_[layer].forward(std::move(input), table_);
          },
          std::move(x));
    }
    if (ops_ == Ops::kFused) return fused_loss(std::move(x), batch.tensors.at(1));
    x = logits(std::move(x));
    const Scope scope("loss");
    x = x.to(at::kFloat);
    return at::cross_entropy_loss(x, batch.tensors.at(1));
  }

  const std::vector<NamedTensor>& parameters() const override { return parameters_.list(); }
  const std::vector<NamedTensor>& frozen() const override { return parameters_.frozen_list(); }

 private:
  at::Tensor embed(const at::Tensor& tokens_T) const {
    const Scope scope("embed");
    return at::embedding(embedding_, tokens_T);
  }

  at::Tensor logits(at::Tensor x_TD) const {
    const Scope scope("head");
    x_TD = rms_norm(x_TD, head_norm_, kLanguageNormEps, ops_);
    return apply_linear(head_, x_TD);
  }

  // The head's linear belongs to the loss: the logits are never there.
  at::Tensor fused_loss(at::Tensor x_TD, const at::Tensor& targets_T) const {
    x_TD = language_norm("head", x_TD, head_norm_, ops_);
    const Scope scope("loss");
    return fused::linear_cross_entropy(x_TD, head_.weight, targets_T);
  }

  Ops ops_;
  Parameters parameters_;
  RotaryTable table_;
  at::Tensor embedding_, head_norm_;
  std::vector<LanguageBlock<Parts>> blocks_;
  Linear head_;
};

}  // namespace rematch
