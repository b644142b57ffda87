#include "tests/support/policy_matrix.h"

#include <ATen/core/Tensor.h>

#include <stdexcept>
#include <utility>

#include "harness/measure/hash.h"
#include "harness/measure/memory.h"
#include "harness/measure/op_counter.h"
#include "harness/run/passes/passes.h"
#include "policies/catalogue/catalogue.h"
#include "reports/render/verdict.h"
#include "tests/support/small_presets.h"

namespace rematch::testing {
namespace {

using Dimensions = std::map<std::string, std::int64_t>;
using Names = std::vector<std::string>;

// Arguments for catalogue entries that take words. Entries that take numbers need no list here.
const std::map<std::string, Names, std::less<>>& words_of_entries() {
  static const std::map<std::string, Names, std::less<>> words = {
      {"sac_titan_2025", {"llama3", "qwen3", "llama4", "deepseek_v3", "gpt_oss"}},
      {"sac_modalities",
       {"aten.mm", "aten._scaled_dot_product_flash_attention",
        "aten._scaled_dot_product_efficient_attention", "_c10d_functional.reduce_scatter_tensor",
        "aten.max", "aten.mm,aten._scaled_dot_product_flash_attention,aten.max"}},
      {"sac_split",
       {"attn: none, ffn: full", "attn: full, ffn: none", "attn: full, ffn: full",
        "attn: sac_titan, ffn: sac_titan", "attn: full, ffn: sac_titan",
        "attn: attn_only, ffn: "
        "save_mm"}},
      {"recompute_modules",
       {"[core_attn]", "[mlp]", "[moe]", "[shared_experts]", "[layernorm]", "[moe_act]",
        "[mla_up_proj]", "[core_attn,mlp]", "[layernorm,moe_act]", "[core_attn,moe_act]",
        "[mlp,layernorm]"}},
      {"keep_collectives", {"full"}},
      {"reissue_collectives", {"attn_only"}},
      {"no_reshard", {"full"}},
      {"offload_inputs", {"full", "nth_last(2)", "attn_only"}},
      {"offload_saved", {"full", "attn_only", "save_mm"}},
      {"offload_modules", {"[core_attn]", "[layer_input]", "[moe_act,attn_proj]"}},
      {"remat",
       {"save=[]", "save=[attention]", "save=[ffn,moe]", "save=[*attention.core]",
        "save=[*attention,ffn,moe]",
        "save=[ffn::matmul,moe.experts::matmul],recompute=[ffn::"
        "matmul#1,moe.experts::matmul#1]"}},
      {"remat_titan",
       {"save=[]", "save=[*],recompute=[*routed_experts.w13.*]", "save=[attention.*]"}},
      {"remat_custom",
       {"out_proj=device,mlpwi_0=offload",
        "moe_mlpwi_0=device,moe_mlpwi_1=device,moe_mlpwo=device,kv_wa_proj=device"}},
      {"sac_titan_excluding", {"[]", "[attention.output]", "[self_attention.output]"}},
      {"full_except",
       {"", "attention_forward", "*.ffn::matmul#1,attention_forward",
        "*.attention.output::matmul"}},
  };
  return words;
}

Names arguments_of(const CatalogueEntry& known) {
  if (known.parameters.empty()) return {};
  if (known.parameters == "(N)") return {"1", "2", "3", "5"};  // 5 exceeds the number of layers
  if (known.parameters == "([I,...])") return {"[]", "[0,2]", "[4]"};  // layer 4 does not exist
  const auto words = words_of_entries().find(known.name);
  if (words != words_of_entries().end()) return words->second;
  throw std::logic_error("tests/support/policy_matrix.cpp has no arguments for " +
                         std::string(known.name));
}

std::string counts_text(const std::map<OpClass, std::int64_t>& counts) {
  std::string text;
  for (const auto& [op_class, executed] : counts) {
    text.append(text.empty() ? "" : ", ").append(to_string(op_class));
    text.append(" ").append(std::to_string(executed));
  }
  return text.empty() ? "nothing" : text;
}

const std::map<OpClass, std::int64_t>& classes(const EngineFigures& figures, Phase phase) {
  return figures.counts.by_class[static_cast<std::size_t>(phase)];
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

ModelSpec spec_of(const MatrixModel& model) {
  auto spec = make_spec(model.preset, model.dimensions, model.dtype);
  if (const auto* rejected = std::get_if<Rejected>(&spec)) {
    throw std::invalid_argument(rejected->message);
  }
  return std::get<ModelSpec>(std::move(spec));
}

class BitsListener final : public StepListener {
 public:
  BitsListener(const Training& training, StepBits& bits) : training_(training), bits_(bits) {}
  void after_forward(const at::Tensor& loss) override { bits_.loss = tensor_hash(loss.detach()); }
  void after_backward() override {
    for (const NamedTensor& parameter : training_.parameters()) {
      bits_.gradients[parameter.name] = tensor_hash(parameter.tensor.grad());
    }
  }

 private:
  const Training& training_;
  StepBits& bits_;
};

TrainingSettings settings_on(at::Device device, const ModelSpec& spec) {
  TrainingSettings settings;
  settings.model = spec;
  settings.device = device;
  settings.optimizer = OptimizerKind::kNothing;
  return settings;
}

}  // namespace

// Without an optimizer a step changes nothing, so one model serves every policy.
struct PolicyMatrix::WithData {
  WithData(const ModelSpec& spec, at::Device device) : training(settings_on(device, spec)) {}
  Training training;
};

std::vector<MatrixModel> matrix_models() {
  const Dimensions llama = {{"layers", 4},   {"dim", 32}, {"heads", 4},
                            {"kv_heads", 2}, {"ffn", 64}, {"tokens", 64}};
  const Dimensions dit = {{"layers", 4}, {"dim", 48},    {"heads", 4},
                          {"ffn", 96},   {"tokens", 32}, {"text_tokens", 4}};
  const Dimensions moe = {{"layers", 4},   {"dim", 32},        {"heads", 4},
                          {"kv_heads", 2}, {"ffn", 64},        {"tokens", 64},
                          {"experts", 3},  {"expert_ffn", 16}, {"shared_ffn", 24}};
  const Dimensions deepseek = {{"layers", 4},      {"dim", 32},        {"heads", 4},
                               {"latent_dim", 16}, {"nope_dim", 8},    {"rope_dim", 4},
                               {"value_dim", 8},   {"ffn", 64},        {"tokens", 64},
                               {"experts", 4},     {"expert_ffn", 16}, {"shared_ffn", 24}};
  std::vector<MatrixModel> models = {{"llama_small", llama},
                                     {"wan_small", dit},
                                     {"ltx_small", dit},
                                     {"moe_small", moe},
                                     {"deepseek_small", deepseek}};
  require_every_family(models);
  for (std::size_t i = 0, num_presets = models.size(); i < num_presets; ++i) {
    MatrixModel fused = models[i];
    fused.dimensions["fused_ops"] = 1;
    models.push_back(std::move(fused));
  }
  return models;
}

std::vector<std::string> matrix_policies() {
  Names policies;
  for (const CatalogueEntry& known : catalogue()) {
    const std::string name(known.name);
    const Names arguments = arguments_of(known);
    if (arguments.empty()) policies.push_back(name);
    for (const std::string& argument : arguments) policies.push_back(name + "(" + argument + ")");
  }
  return policies;
}

PolicyMatrix::PolicyMatrix(const MatrixModel& model, at::Device device)
    : model_(model),
      device_(device),
      meta_((install_counting_allocators(), spec_of(model)), OptimizerKind::kNothing, "", 0),
      trace_(meta_.trace()),
      resolver_(trace_) {}

PolicyMatrix::~PolicyMatrix() = default;

std::string PolicyMatrix::head() {
  std::string text = model_.preset;
  for (const auto& [dimension, value] : trace_.dimensions) {
    text.append(", ").append(dimension).append(" ").append(std::to_string(value));
  }
  text.append(", ").append(trace_.dtype).append(", no optimizer\nforward executes  ");
  text.append(counts_text(classes(none(), Phase::kForward))).append("\nbackward executes ");
  return text.append(counts_text(classes(none(), Phase::kBackward))).append("\n");
}

const EngineFigures& PolicyMatrix::none() {
  if (!none_) none_ = std::make_unique<EngineFigures>(predicted("none", Schedule::kOnDemand));
  return *none_;
}

PolicyMatrix::WithData& PolicyMatrix::with_data() {
  if (!with_data_) with_data_ = std::make_unique<WithData>(spec_of(model_), device_);
  return *with_data_;
}

const Plan* PolicyMatrix::plan_of(const std::string& policy) const {
  auto found = resolved_.find(policy);
  if (found == resolved_.end()) {
    auto parsed = parse_policy(policy);
    if (auto* rejected = std::get_if<Rejected>(&parsed)) {
      found = resolved_.emplace(policy, std::move(*rejected)).first;
    } else {
      found = resolved_.emplace(policy, resolver_.resolve(std::get<Policy>(parsed))).first;
    }
  }
  return std::get_if<Plan>(&found->second);
}

PlanFacts PolicyMatrix::facts(const std::string& policy) const {
  return plan_facts(*plan_of(policy), trace_);
}

std::string PolicyMatrix::refusal(const std::string& policy) const {
  if (plan_of(policy) != nullptr) return "";
  return std::get<Rejected>(resolved_.at(policy)).message;
}

std::vector<Schedule> PolicyMatrix::schedules(const std::string& policy) const {
  const Plan* plan = plan_of(policy);
  if (plan == nullptr) return {};
  if (plan->regions.empty()) return {Schedule::kOnDemand};
  return {Schedule::kWholeRegion, Schedule::kOnDemand};
}

EngineFigures PolicyMatrix::predicted(const std::string& policy, Schedule schedule) {
  return run_on_meta(meta_, *plan_of(policy), schedule);
}

EngineFigures PolicyMatrix::measured(const std::string& policy, Schedule schedule) {
  Training& training = with_data().training;
  training.use_plan(*plan_of(policy), schedule);
  OpCounter counter;
  {
    const OpObserverGuard observe(&counter);
    StepListener nothing_to_hear;
    training.step(0, nothing_to_hear);
  }
  PassPosition position;
  return {counter.record(1), memory_pass(training, device_, /*step=*/0, position)};
}

StepBits PolicyMatrix::bits(const std::string& policy, Schedule schedule) {
  Training& training = with_data().training;
  training.use_plan(*plan_of(policy), schedule);
  StepBits bits;
  BitsListener listener(training, bits);
  training.step(0, listener);
  return bits;
}

std::string PolicyMatrix::row(const std::string& policy, Schedule schedule,
                              const EngineFigures& figures) {
  const bool has_regions = !plan_of(policy)->regions.empty();
  const MemoryRecord& memory = figures.memory;
  std::string text = padded(policy, 44);
  text.append(" ").append(padded(has_regions ? std::string(to_string(schedule)) : "-", 12));
  text.append(" peak ").append(std::to_string(memory.peak_allocated.value().count));
  text.append(" in ").append(describe_place(memory));
  text.append(", after forward ").append(std::to_string(memory.after_forward.value().count));
  text.append(", recomputes ").append(counts_text(classes(figures, Phase::kRecompute)));
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    if (classes(figures, phase) == classes(none(), phase)) continue;
    text.append("; ").append(to_string(phase)).append(" executes ");
    text.append(counts_text(classes(figures, phase)));
  }
  return text;
}

std::string PolicyMatrix::refused_row(const std::string& policy) const {
  return padded(policy, 44) + " refused: " + refusal(policy);
}

std::vector<std::string> PolicyMatrix::predicted_rows(const std::string& policy) {
  if (plan_of(policy) == nullptr) return {refused_row(policy)};
  Names rows;
  for (const Schedule schedule : schedules(policy)) {
    rows.push_back(row(policy, schedule, predicted(policy, schedule)));
  }
  return rows;
}

}  // namespace rematch::testing
