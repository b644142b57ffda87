// Code shared by language models: embedding, pre-norm blocks, final norm, head and cross-entropy on
// the next token. Each family supplies the parts of its blocks.
#pragma once

#include <ATen/ops/add.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/fused/linear_cross_entropy.h"
#include "kernels/fused/rms_norm.h"
#include "models/layers/context_parallel.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"
#include "models/layers/rotary.h"
#include "models/preset/kept_logits.h"
#include "models/scope/names.h"
#include "models/scope/scope.h"

namespace rematch {

inline constexpr double kLanguageNormEps = 1e-5;

// Opens a scope and applies RMSNorm in it.
inline at::Tensor language_norm(std::string_view scope_name, const at::Tensor& x_TD,
                                const at::Tensor& weight, Ops ops) {
  const Scope scope(scope_name);
  return rms_norm(x_TD, weight, kLanguageNormEps, ops);
}

// One pre-norm block. `Parts` supplies two types and three static functions. Type Attention has a
// constructor (parameters, name, spec) and forward(x_TD, table). Type Ffn has forward(x_TD). Both
// open their own scopes. The functions are make_ffn(parameters, name, spec, layer),
// make_table(spec, device) and embedding_values(dim).
template <typename Parts>
class LanguageBlock {
 public:
  LanguageBlock(Parameters& parameters, const ModelSpec& spec, std::int64_t layer)
      : LanguageBlock(parameters, "blocks." + std::to_string(layer), spec, layer) {}

  at::Tensor forward(at::Tensor x_TD, const RotaryTable& table) const {
    at::Tensor branch_TD = language_norm(scope_names::kAttentionNorm, x_TD, attention_norm_, ops_);
    branch_TD = attention_.forward(branch_TD, table);
    if (ops_ == Ops::kFused) {
      const Scope scope(scope_names::kFfnNorm);
      std::tie(branch_TD, x_TD) = fused::add_rms_norm(x_TD, branch_TD, ffn_norm_, kLanguageNormEps);
    } else {
      x_TD = at::add(x_TD, branch_TD);
      branch_TD = language_norm(scope_names::kFfnNorm, x_TD, ffn_norm_, ops_);
    }
    branch_TD = ffn_.forward(branch_TD);
    return at::add(x_TD, branch_TD);
  }

 private:
  // The order of the members is the order in which parameters are created and listed.
  LanguageBlock(Parameters& parameters, const std::string& name, const ModelSpec& spec,
                std::int64_t layer)
      : ops_(ops_of(spec)),
        attention_norm_(add_norm(parameters, name + ".attention_norm.weight", spec)),
        attention_(parameters, name + ".attention", spec),
        ffn_norm_(add_norm(parameters, name + ".ffn_norm.weight", spec)),
        ffn_(Parts::make_ffn(parameters, name, spec, layer)) {}

  // Under sp each rank normalises only its own tokens, so the weight's gradient is partial.
  static Weight add_norm(Parameters& parameters, const std::string& name, const ModelSpec& spec) {
    return parameters.add(name, {spec.at("dim")}, near_one(),
                          {.is_partial_over_tp = parameters.tensor_parallel().splits_tokens});
  }

  Ops ops_;
  Weight attention_norm_;
  typename Parts::Attention attention_;
  Weight ffn_norm_;
  typename Parts::Ffn ffn_;
};

// A batch holds tokens and targets, int64, [batch * tokens]. Under ulysses and cp the model takes
// this rank's part of every sequence. Under sp each rank of tp has a part of the rows in the
// residual stream.
template <typename Parts>
class LanguageModel final : public Model {
 public:
  LanguageModel(const ModelSpec& spec, at::Device device)
      : ops_(ops_of(spec)),
        keeps_logits_(spec.option(std::string(kKeptLogitsName)) == 1),
        batch_(spec.at("batch")),
        tokens_(spec.at("tokens")),
        dim_(spec.at("dim")),
        stage_(stage_blocks(spec)),
        ulysses_(rank_axis(spec, "ulysses")),
        cp_(rank_axis(spec, "cp")),
        parameters_(spec, device) {
    const std::int64_t dim = spec.at("dim");
    const std::int64_t num_frozen = spec.option("frozen_layers");
    const bool only_adapters_learn = spec.option("adapter_rank") > 0;
    if (spec.option("sp") == 1) sequence_ = rank_axis(spec, "tp");
    table_ = Parts::make_table(spec, device);
    table_ = {take_own_chunks(table_.cosine, 0, cp_), take_own_chunks(table_.sine, 0, cp_)};
    table_ = rows_of_rank(std::move(table_), ulysses_);
    parameters_.set_frozen(only_adapters_learn || num_frozen > 0);
    if (stage_.is_first()) {
      embedding_ =
          parameters_.add("embed.weight", {spec.at("vocab"), dim}, Parts::embedding_values(dim));
    }
    for (std::int64_t layer = stage_.first; layer < stage_.end; ++layer) {
      parameters_.set_frozen(only_adapters_learn || layer < num_frozen);
      blocks_.emplace_back(parameters_, spec, layer);
      block_weights_.push_back(parameters_.scope("blocks." + std::to_string(layer)));
    }
    parameters_.set_frozen(only_adapters_learn);
    if (stage_.is_last()) add_head(spec);
    embed_weights_ = parameters_.scope("embed");
    head_weights_ = parameters_.scope("head");
  }

  at::Tensor loss(const Batch& batch) override { return run_stage(batch, {}); }

  at::Tensor run_stage(const Batch& batch, at::Tensor input) override {
    at::Tensor x = stage_.is_first() ? embed(batch.tensors.at(0)) : std::move(input);
    for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
      const Scope scope(scope_names::kBlocks, static_cast<int>(layer));
      x = run_block(
          [this, layer](at::Tensor block_input) {
            const GatheredWeights gathered(block_weights_[layer]);
            return blocks_[layer].forward(std::move(block_input), table_);
          },
          std::move(x));
    }
    if (!stage_.is_last()) return x;
    if (ops_ == Ops::kFused) return fused_loss(std::move(x), batch.tensors.at(1));
    x = logits(std::move(x));
    const Scope scope(scope_names::kLoss);
    x = x.to(at::kFloat);
    return at::cross_entropy_loss(x, tokens_of_rank(batch.tensors.at(1)));
  }

  std::vector<std::int64_t> stage_sizes() const override {
    return {batch_ * tokens_ / ulysses_.size / cp_.size / sequence_.size, dim_};
  }

  Batch part_of_stage(Batch batch) const override {
    if (!stage_.is_first()) batch.tensors.at(0).reset();
    if (!stage_.is_last()) batch.tensors.at(1).reset();
    return batch;
  }

  void finish_gradients() override { parameters_.finish_gradients(); }

  const std::vector<NamedTensor>& parameters() const override { return parameters_.list(); }
  const std::vector<NamedTensor>& frozen() const override { return parameters_.frozen_list(); }

 private:
  void add_head(const ModelSpec& spec) {
    const std::int64_t dim = spec.at("dim");
    head_norm_ = parameters_.add("head.norm.weight", {dim}, near_one());
    if (spec.option("tied") == 1) {
      head_.weight = embedding_;
      parameters_.share("head", embedding_);
    } else {
      head_ = make_linear(parameters_, "head.output", dim, spec.at("vocab"), Bias::kNo);
    }
  }

  at::Tensor embed(const at::Tensor& tokens_T) const {
    const Scope scope(scope_names::kEmbed);
    const GatheredWeights gathered(embed_weights_);
    at::Tensor x_TD = at::embedding(embedding_, tokens_of_rank(tokens_T));
    return own_rows(std::move(x_TD), sequence_);
  }

  at::Tensor tokens_of_rank(const at::Tensor& tokens_T) const {
    if (!ulysses_.is_split() && !cp_.is_split()) return tokens_T;
    at::Tensor tokens_BS = tokens_T.view({batch_, tokens_T.size(0) / batch_});
    tokens_BS = take_own_chunks(tokens_BS, 1, cp_);
    if (!ulysses_.is_split()) return tokens_BS.view(-1);
    const std::int64_t count = tokens_BS.size(1) / ulysses_.size;
    const at::Tensor part_BS = tokens_BS.narrow(1, ulysses_.position * count, count);
    return part_BS.contiguous().view(-1);
  }

  at::Tensor logits(at::Tensor x_TD) const {
    const Scope scope(scope_names::kHead);
    const GatheredWeights gathered(head_weights_);
    x_TD = gather_alike(std::move(x_TD), sequence_);
    x_TD = rms_norm(x_TD, head_norm_, kLanguageNormEps, ops_);
    return apply_linear(head_, x_TD);
  }

  // The fused loss op includes the head's linear. Large logits of all classes are never in memory
  // at once, unless the option says so.
  at::Tensor fused_loss(at::Tensor x_TD, const at::Tensor& targets_T) const {
    std::optional<GatheredWeights> gathered;
    {
      const Scope scope(scope_names::kHead);
      gathered.emplace(head_weights_);
      x_TD = gather_alike(std::move(x_TD), sequence_);
      x_TD = rms_norm(x_TD, head_norm_, kLanguageNormEps, ops_);
    }
    const Scope scope(scope_names::kLoss);
    const fused::Logits logits =
        keeps_logits_ ? fused::Logits::kKept : fused::logits_for(x_TD, head_.weight);
    return fused::linear_cross_entropy(x_TD, head_.weight, tokens_of_rank(targets_T), logits);
  }

  Ops ops_;
  bool keeps_logits_;
  std::int64_t batch_, tokens_, dim_;
  StageBlocks stage_;
  // ulysses_ and cp_ split the tokens everywhere; sequence_ splits them only between blocks
  RankAxis ulysses_, cp_, sequence_;
  Parameters parameters_;
  RotaryTable table_;
  Weight embedding_, head_norm_;
  std::vector<LanguageBlock<Parts>> blocks_;
  ScopeWeights embed_weights_, head_weights_;
  std::vector<ScopeWeights> block_weights_;
  Linear head_;
};

}  // namespace rematch
