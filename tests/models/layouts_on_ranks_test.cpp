// Runs layouts on real ranks, each of which is a process. Compares them with one rank on the same
// data, and runs them under plans.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/div.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>

#include "harness/engine/interception.h"
#include "harness/engine/record/op_facts.h"
#include "harness/engine/recording.h"
#include "harness/measure/memory.h"
#include "harness/trace/backward_as_with_data.h"
#include "harness/trace/meta_kernels.h"
#include "harness/trace/tracer.h"
#include "kernels/collectives/collectives.h"
#include "models/model.h"
#include "policies/trace/routing_skew.h"
#include "tests/models/layouts.h"
#include "tests/models/packed.h"
#include "tests/support/catch.h"
#include "tests/support/model_step.h"
#include "tests/support/random_plan.h"
#include "tests/support/rank_processes.h"
#include "tests/support/seeds.h"
#include "tests/support/strict.h"

using namespace rematch;

namespace {

constexpr double kLossTolerance = 1e-6;
constexpr double kGradientTolerance = 1e-5;

struct Gradients {
  at::Tensor loss;
  std::vector<at::Tensor> all;
};

// The reference has separate weights, so it does not depend on how weights are packed.
std::map<std::string, std::int64_t> with_separate_weights(
    std::map<std::string, std::int64_t> dimensions) {
  dimensions.erase("packed_weights");
  return dimensions;
}

Gradients take_gradients(Model& model, const at::Tensor& loss) {
  Gradients result{loss.detach(), {}};
  for (const NamedTensor& parameter : model.parameters()) {
    result.all.push_back(parameter.tensor.grad());
    parameter.tensor.mutable_grad().reset();
  }
  return result;
}

// Returns the gradients that one rank computes for the mean loss over all data of a step.
Gradients reference(const LayoutCase& which, const ModelSpec& sharded) {
  LayoutCase whole{which.preset, "", with_separate_weights(which.dimensions)};
  if (sharded.option("balanced_routing") == 1) whole.layout = "balanced_routing";
  const ModelSpec spec = spec_of(whole, 0);
  const auto model = make_model(spec, at::kCPU);
  const auto data = make_data(spec, "", 1, at::kCPU);
  at::manual_seed(1);
  at::Tensor sum = at::zeros({}, at::kDouble);
  for (std::int64_t index = 0; index < data_ranks(sharded); ++index) {
    const at::Tensor loss = model->loss(data->batch(index));
    at::div(loss, data_ranks(sharded)).backward();
    sum = sum + loss.detach().to(at::kDouble);
  }
  return take_gradients(*model, at::div(sum, data_ranks(sharded)));
}

at::Tensor flat_shard(const at::Tensor& part, const RankAxis& fsdp) {
  if (!fsdp.is_split()) return part;
  const std::int64_t count = (part.numel() + fsdp.size - 1) / fsdp.size;
  const at::Tensor padded =
      at::constant_pad_nd(part.reshape(-1), {0, count * fsdp.size - part.numel()});
  return padded.narrow(0, fsdp.position * count, count);
}

// Returns this rank's piece of a whole gradient. Finds the piece's position by searching the whole
// parameter for the values of this rank's parameter.
at::Tensor piece_of(const at::Tensor& whole, const at::Tensor& whole_value, const at::Tensor& value,
                    const ModelSpec& spec) {
  const RankAxis fsdp = rank_axis(spec, "fsdp");
  const auto is_it = [&](const at::Tensor& part, const RankAxis& shards) {
    const at::Tensor shard = flat_shard(part, shards);
    return shard.sizes() == value.sizes() && shard.equal(value);
  };
  if (is_it(whole_value, fsdp)) return flat_shard(whole, fsdp);
  for (const char* name : {"tp", "ep"}) {
    const RankAxis axis = rank_axis(spec, name);
    const RankAxis shards = axis.name == "ep" ? expert_shards(spec) : fsdp;
    for (std::int64_t dim = 0; dim < whole.dim(); ++dim) {
      const std::int64_t count = whole.size(dim) / axis.size;
      const std::int64_t begin = axis.position * count;
      if (!is_it(whole_value.narrow(dim, begin, count), shards)) continue;
      return flat_shard(whole.narrow(dim, begin, count), shards);
    }
  }
  FAIL("no piece of the whole parameter has this rank's values");
  return {};
}

// Returns this rank's piece of a packed parameter, from the whole parts. Each part is split on its
// own, and fsdp shards the packed result.
at::Tensor packed_piece(const std::vector<at::Tensor>& parts, const ModelSpec& spec) {
  const bool are_experts = parts.front().dim() == 3;
  const RankAxis axis = rank_axis(spec, are_experts ? "ep" : "tp");
  std::vector<at::Tensor> own;
  for (const at::Tensor& part : parts) {
    const std::int64_t count = part.size(0) / axis.size;
    own.push_back(part.narrow(0, axis.position * count, count));
  }
  return flat_shard(pack(own), are_experts ? expert_shards(spec) : rank_axis(spec, "fsdp"));
}

double mean_over(at::Tensor value, const ModelSpec& spec) {
  for (const RankGroup& group : rank_groups(spec)) {
    value = at::div(collectives::all_reduce(value.to(at::kDouble), group.name),
                    static_cast<double>(group.ranks.size()));
  }
  return value.item<double>();
}

std::size_t index_of(const Model& model, const std::string& name) {
  const std::vector<NamedTensor>& list = model.parameters();
  const auto found = std::find_if(list.begin(), list.end(),
                                  [&](const NamedTensor& each) { return each.name == name; });
  REQUIRE(found != list.end());
  return static_cast<std::size_t>(found - list.begin());
}

// Returns the largest absolute value in all gradients of this parameter's module. The tolerance is
// relative to this value: large terms may cancel in a bias's gradient, but their rounding errors do
// not.
double largest_of_module(const Gradients& gradients, const Model& model, std::size_t index) {
  const auto module_of = [&](std::size_t each) {
    const std::string& name = model.parameters()[each].name;
    return name.substr(0, name.rfind('.'));
  };
  double largest = 0;
  for (std::size_t i = 0; i < gradients.all.size(); ++i) {
    if (module_of(i) != module_of(index)) continue;
    largest = std::max(largest, gradients.all[i].abs().max().item<double>());
  }
  return largest;
}

void check_against_one_rank(const LayoutCase& which, const ModelSpec& spec, const Model& model,
                            const Gradients& found) {
  const Gradients expected = reference(which, spec);
  const double loss = expected.loss.item<double>();
  CHECK(mean_over(found.loss, spec) == Approx(loss).epsilon(kLossTolerance));
  const auto one =
      make_model(spec_of({which.preset, "", with_separate_weights(which.dimensions)}, 0), at::kCPU);
  for (std::size_t i = 0; i < found.all.size(); ++i) {
    const NamedTensor& parameter = model.parameters()[i];
    CAPTURE(parameter.name);
    std::vector<at::Tensor> gradients, values;
    double largest = 0;
    for (const std::string& part : packed_parts(parameter.name)) {
      const std::size_t index = index_of(*one, part);
      largest = std::max(largest, largest_of_module(expected, *one, index));
      gradients.push_back(expected.all[index]);
      values.push_back(one->parameters()[index].tensor.detach());
    }
    at::Tensor piece;
    if (values.size() > 1) {
      REQUIRE(packed_piece(values, spec).equal(parameter.tensor));
      piece = packed_piece(gradients, spec);
    } else {
      piece = piece_of(gradients[0], values[0], parameter.tensor.detach(), spec);
    }
    const double difference = (found.all[i] - piece).abs().max().item<double>();
    CHECK(difference <= kGradientTolerance * largest);
  }
}

// Records executed ops by phase, and the bytes that tensors hold at op boundaries.
class RankMeter final : public OpObserver {
 public:
  explicit RankMeter(MemorySample (*memory)())
      : memory_(memory), before_(memory().total.count), guard_(this) {}

  void executed(const c10::OperatorHandle& op, Phase phase, const torch::jit::Stack&) override {
    const std::string& name = facts_of(op).name;
    if (name.starts_with("_c10d_functional::")) {
      ++collectives[std::string(to_string(phase)) + " " + name];
    }
    peak_bytes = std::max(peak_bytes, memory_().total.count - before_);
  }

  std::map<std::string, int> collectives;  // number of calls, by phase and name
  std::int64_t peak_bytes = 0;

 private:
  MemorySample (*memory_)();
  std::int64_t before_;
  OpObserverGuard guard_;
};

struct Step {
  Gradients gradients;
  std::map<std::string, int> collectives;  // number of calls, by phase and name
  std::int64_t peak_bytes = 0;
};

Step run_step(Model& model, const Batch& batch, const Checkpoint* checkpoint,
              MemorySample (*memory)()) {
  Step step;
  at::manual_seed(1);  // unsplit layers must drop the same elements on every rank
  at::Tensor loss;
  {
    RankMeter meter(memory);
    std::optional<Recording> recording;
    if (checkpoint != nullptr) recording.emplace(*checkpoint);
    loss = model.loss(batch);
    if (recording) recording->finish();
    recording.reset();
    BackwardAsWithData as_with_data;
    std::optional<OpModeGuard> guard;
    if (loss.is_meta()) guard.emplace(&as_with_data);
    loss.backward();
    step.collectives = meter.collectives;
    step.peak_bytes = meter.peak_bytes;
  }
  model.finish_gradients();
  step.gradients = take_gradients(model, loss);
  return step;
}

bool equal_bits(const Gradients& left, const Gradients& right) {
  return left.loss.equal(right.loss) &&
         std::equal(left.all.begin(), left.all.end(), right.all.begin(), right.all.end(),
                    [](const at::Tensor& a, const at::Tensor& b) { return a.equal(b); });
}

// Returns plans of several kinds, including the save lists of torchtitan and Megatron. Some plans
// keep the results of collectives, and others run the collectives again.
std::vector<Plan> plans_of(const Trace& trace) {
  std::vector<Plan> plans;
  for (const char* policy :
       {"full", "save_mm", "attn_only", "sac_titan", "recompute_modules([core_attn])",
        "keep_collectives(full)", "reissue_collectives(sac_titan)"}) {
    plans.push_back(testing::plan_for(policy, trace));
  }
  for (std::uint32_t seed = 0; seed < testing::num_seeds(4); ++seed) {
    plans.push_back(testing::random_plan(trace, seed));
  }
  return plans;
}

// Runs the case on one rank of its world.
void check_rank(const LayoutCase& which) {
  install_counting_allocators();
  install_meta_kernels();
  const ModelSpec spec = spec_of(which, testing::this_place().rank);
  const Ranks ranks = testing::this_rank(rank_groups(spec));

  const auto model = make_model(spec, at::kCPU);
  const Batch batch = make_data(spec, "", 1, at::kCPU)->batch(data_index(spec, 0));
  const Step plain = run_step(*model, batch, nullptr, current_cpu_memory);
  check_against_one_rank(which, spec, *model, plain.gradients);

  const bool knows_bytes = spec.option("ep") == 0 || spec.option("balanced_routing") == 1;
  if (knows_bytes) check_meta_runs_the_same_ops(spec);
  const auto meta = make_model(spec, at::kMeta);
  const Batch meta_batch = make_data(spec, "", 1, at::kMeta)->batch(0);
  const Trace trace = record_trace([&] { return meta->loss(meta_batch); });
  take_gradients(*meta, at::zeros({}));
  for (const Plan& plan : plans_of(trace)) {
    for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
      CAPTURE(plan.policy, to_string(schedule));
      const Checkpoint checkpoint = testing::strict(plan, schedule);
      const Step step = run_step(*model, batch, &checkpoint, current_cpu_memory);
      CHECK(equal_bits(step.gradients, plain.gradients));
      const Step predicted = run_step(*meta, meta_batch, &checkpoint, current_meta_memory);
      CHECK(step.collectives == predicted.collectives);
      if (knows_bytes) CHECK(step.peak_bytes == predicted.peak_bytes);
    }
  }
}

// Notes how many rows this rank's experts get in the first block with experts.
class ReceivedRows final : public OpObserver {
 public:
  ReceivedRows() : guard_(this) {}

  void executed(const c10::OperatorHandle& op, Phase, const torch::jit::Stack& stack) override {
    if (rows > 0 || !facts_of(op).name.starts_with("_c10d_functional::all_to_all_single")) return;
    const at::Tensor& received = stack.back().toTensor();
    const bool are_counts = received.dim() == 1;
    if (!are_counts) rows = received.size(0);
  }

  std::int64_t rows = 0;

 private:
  OpObserverGuard guard_;
};

// Runs on two ranks of ep. The data decides how many rows each rank's experts get. The rank with
// the most rows must hold the bytes that are predicted for its routing skew.
void check_worst_rank(const LayoutCase& which) {
  install_counting_allocators();
  install_meta_kernels();
  const ModelSpec spec = spec_of(which, testing::this_place().rank);
  const Ranks ranks = testing::this_rank(rank_groups(spec));
  const auto model = make_model(spec, at::kCPU);
  const Batch batch = make_data(spec, "", 1, at::kCPU)->batch(data_index(spec, 0));
  std::int64_t rows = 0;
  {
    ReceivedRows received;
    take_gradients(*model, model->loss(batch));
    rows = received.rows;
  }
  const std::int64_t balanced = spec.at("batch") * spec.at("tokens") * spec.at("top_k");
  const bool is_worst = rows > balanced;
  CHECK(collectives::all_reduce(at::full({}, is_worst ? 1 : 0), "ep").item<int>() == 1);

  ModelSpec skewed = spec;
  if (is_worst) skewed.dimensions["routing_skew_percent"] = 100 * rows / balanced;
  CHECK((!is_worst || skewed_rows(balanced, 100 * rows / balanced) == rows));
  const auto meta = make_model(skewed, at::kMeta);
  const auto balanced_meta = make_model(spec, at::kMeta);
  const Batch meta_batch = make_data(spec, "", 1, at::kMeta)->batch(0);
  const Trace trace = record_trace([&] { return meta->loss(meta_batch); });
  take_gradients(*meta, at::zeros({}));
  for (const Plan& plan : plans_of(trace)) {
    CAPTURE(plan.policy, rows);
    const Checkpoint checkpoint = testing::strict(plan, Schedule::kOnDemand);
    const Step step = run_step(*model, batch, &checkpoint, current_cpu_memory);
    const Step predicted = run_step(*meta, meta_batch, &checkpoint, current_meta_memory);
    const Step without = run_step(*balanced_meta, meta_batch, &checkpoint, current_meta_memory);
    CHECK(step.collectives == predicted.collectives);
    if (is_worst) CHECK(step.peak_bytes == predicted.peak_bytes);
    if (is_worst) CHECK(step.peak_bytes > without.peak_bytes);
  }
}

const std::map<std::string, std::int64_t> kLlama = {{"layers", 2},   {"dim", 32}, {"heads", 4},
                                                    {"kv_heads", 4}, {"ffn", 48}, {"batch", 2},
                                                    {"tokens", 16}};
const std::map<std::string, std::int64_t> kMoe = {
    {"layers", 2},  {"dim", 32},        {"heads", 4},       {"kv_heads", 2}, {"ffn", 48},
    {"experts", 4}, {"expert_ffn", 24}, {"shared_ffn", 16}, {"batch", 2},    {"tokens", 16}};
const std::map<std::string, std::int64_t> kDeepseek = {
    {"layers", 2},  {"dim", 32},        {"heads", 4},       {"ffn", 48},  {"latent_dim", 16},
    {"experts", 4}, {"expert_ffn", 24}, {"shared_ffn", 16}, {"batch", 2}, {"tokens", 16}};
const std::map<std::string, std::int64_t> kVideo = {
    {"layers", 2}, {"dim", 24},    {"heads", 4},       {"ffn", 40},
    {"batch", 2},  {"tokens", 16}, {"text_tokens", 4}, {"channels", 2}};

std::map<std::string, std::int64_t> with(std::map<std::string, std::int64_t> dimensions,
                                         const std::string& name, std::int64_t value) {
  dimensions[name] = value;
  return dimensions;
}

}  // namespace

// Defines a test for one case, which runs on each rank of its world.
#define REMATCH_LAYOUT_TEST(name, world, ...)                          \
  TEST_CASE("rank: " name " equals one rank under all plans", world) { \
    check_rank(LayoutCase __VA_ARGS__);                                \
  }                                                                    \
  static_assert(true)

// Catch2 tags of the tests that run on two and on four ranks.
constexpr const char* kTwo = "[.two_ranks]";
constexpr const char* kFour = "[.four_ranks]";

// Each rank's process starts once and runs all cases, because starting LibTorch takes as long as
// running a case.
TEST_CASE("layouts of two ranks give the results of one rank under all plans") {
  CHECK(rematch::testing::failure_of_ranks(2, kTwo, 4 * rematch::testing::kLongForRanks) == "");
}

TEST_CASE("layouts of four ranks give the results of one rank under all plans") {
  CHECK(rematch::testing::failure_of_ranks(4, kFour, 4 * rematch::testing::kLongForRanks) == "");
}

// The rows of experts are wide, so that the peak depends on their number.
TEST_CASE("rank: the worst rank of ep holds the bytes predicted for its routing skew", kTwo) {
  check_worst_rank({"moe_small", "ep=2", with(kMoe, "expert_ffn", 256)});
}

TEST_CASE("rank: the worst rank of fsdp and ep holds the bytes predicted for its skew", kTwo) {
  check_worst_rank({"moe_small", "fsdp=2,ep=2", with(kMoe, "expert_ffn", 256)});
}

REMATCH_LAYOUT_TEST("tp of two", kTwo, {"llama_small", "tp=2", kLlama});
REMATCH_LAYOUT_TEST("tp of four", kFour, {"llama_small", "tp=4", kLlama});
REMATCH_LAYOUT_TEST("sp of two", kTwo, {"llama_small", "tp=2,sp", kLlama});
REMATCH_LAYOUT_TEST("sp of four", kFour, {"llama_small", "tp=4,sp", kLlama});
REMATCH_LAYOUT_TEST("sp with adapters", kTwo,
                    {"llama_small", "tp=2,sp", with(kLlama, "adapter_rank", 4)});
REMATCH_LAYOUT_TEST("fsdp of two", kTwo, {"llama_small", "fsdp=2", with(kLlama, "tied", 1)});
REMATCH_LAYOUT_TEST("fsdp of four", kFour,
                    {"llama_small", "fsdp=4", with(kLlama, "frozen_layers", 1)});
REMATCH_LAYOUT_TEST("fused ops under sp and fsdp", kFour,
                    {"llama_small", "tp=2,sp,fsdp=2", with(kLlama, "fused_ops", 1)});
REMATCH_LAYOUT_TEST("ulysses of two", kTwo, {"llama_small", "ulysses=2", kLlama});
REMATCH_LAYOUT_TEST("ulysses of four", kFour, {"llama_small", "ulysses=4", kLlama});
REMATCH_LAYOUT_TEST("cp of two", kTwo, {"llama_small", "cp=2", kLlama});
REMATCH_LAYOUT_TEST("cp of four with grouped queries", kFour,
                    {"llama_small", "cp=4", with(kLlama, "kv_heads", 2)});
REMATCH_LAYOUT_TEST("cp ring of two", kTwo, {"llama_small", "cp=2,ring", kLlama});
REMATCH_LAYOUT_TEST("cp ring of four with grouped queries", kFour,
                    {"llama_small", "cp=4,ring", with(kLlama, "kv_heads", 2)});
REMATCH_LAYOUT_TEST("cp ring of two inside fsdp and sp", kFour,
                    {"llama_small", "tp=2,sp,cp=2,ring,fsdp=2", kLlama});
REMATCH_LAYOUT_TEST("cp inside fsdp", kFour,
                    {"llama_small", "cp=2,fsdp=4", with(kLlama, "tied", 1)});
REMATCH_LAYOUT_TEST("cp and sp with fused ops", kFour,
                    {"llama_small", "tp=2,sp,cp=2", with(kLlama, "fused_ops", 1)});
REMATCH_LAYOUT_TEST("cp and ulysses", kFour, {"llama_small", "ulysses=2,cp=2", kLlama});
REMATCH_LAYOUT_TEST("sp and ulysses", kFour, {"llama_small", "tp=2,sp,ulysses=2", kLlama});
REMATCH_LAYOUT_TEST("ulysses and fsdp of wan", kFour, {"wan_small", "ulysses=2,fsdp=2", kVideo});
REMATCH_LAYOUT_TEST("ulysses of ltx", kTwo, {"ltx_small", "ulysses=2", kVideo});
REMATCH_LAYOUT_TEST("tp of wan", kTwo, {"wan_small", "tp=2", kVideo});
REMATCH_LAYOUT_TEST("tp and ulysses of ltx", kFour, {"ltx_small", "tp=2,ulysses=2", kVideo});
REMATCH_LAYOUT_TEST("sp of wan", kTwo, {"wan_small", "tp=2,sp", kVideo});
REMATCH_LAYOUT_TEST("sp of wan with one video", kFour,
                    {"wan_small", "tp=4,sp", with(kVideo, "batch", 1)});
REMATCH_LAYOUT_TEST("sp and ulysses of ltx", kFour, {"ltx_small", "tp=2,sp,ulysses=2", kVideo});
REMATCH_LAYOUT_TEST("sp of ltx with fused ops", kFour,
                    {"ltx_small", "tp=2,sp,fsdp=2", with(kVideo, "fused_ops", 1)});
REMATCH_LAYOUT_TEST("tp of wan with fused ops", kFour,
                    {"wan_small", "tp=2,fsdp=2", with(kVideo, "fused_ops", 1)});
REMATCH_LAYOUT_TEST("packed weights under sp and fsdp", kFour,
                    {"llama_small", "tp=2,sp,fsdp=2",
                     with(with(kLlama, "kv_heads", 2), "packed_weights", 1)});
REMATCH_LAYOUT_TEST("packed weights under fsdp, ulysses and cp", kFour,
                    {"llama_small", "ulysses=2,cp=2,fsdp=2",
                     with(with(kLlama, "fused_ops", 1), "packed_weights", 1)});
REMATCH_LAYOUT_TEST("packed weights under cp ring", kTwo,
                    {"llama_small", "cp=2,ring",
                     with(with(kLlama, "fused_ops", 1), "packed_weights", 1)});
REMATCH_LAYOUT_TEST("packed weights of wan under tp", kTwo,
                    {"wan_small", "tp=2", with(kVideo, "packed_weights", 1)});
REMATCH_LAYOUT_TEST("packed weights of ltx under ulysses and fsdp", kFour,
                    {"ltx_small", "ulysses=2,fsdp=2",
                     with(with(kVideo, "fused_ops", 1), "packed_weights", 1)});
REMATCH_LAYOUT_TEST("packed experts under tp and ep", kFour,
                    {"moe_small", "tp=2,ep=2", with(kMoe, "packed_weights", 1)});
REMATCH_LAYOUT_TEST("packed experts inside fsdp", kFour,
                    {"deepseek_small", "fsdp=4,ep=2",
                     with(with(kDeepseek, "packed_weights", 1), "fused_ops", 1)});
REMATCH_LAYOUT_TEST("tp and ep", kFour, {"moe_small", "tp=2,ep=2", kMoe});
REMATCH_LAYOUT_TEST("sp and ep", kFour, {"moe_small", "tp=2,sp,ep=2", kMoe});
REMATCH_LAYOUT_TEST("ep of two", kTwo, {"moe_small", "ep=2", kMoe});
REMATCH_LAYOUT_TEST("ep of four", kFour, {"moe_small", "ep=4", kMoe});
REMATCH_LAYOUT_TEST("balanced ep and fsdp", kFour,
                    {"moe_small", "ep=2,balanced_routing,fsdp=2,product", kMoe});
REMATCH_LAYOUT_TEST("ep inside fsdp of two", kTwo, {"moe_small", "fsdp=2,ep=2", kMoe});
REMATCH_LAYOUT_TEST("balanced ep inside fsdp of two", kTwo,
                    {"deepseek_small", "fsdp=2,ep=2,balanced_routing", kDeepseek});
REMATCH_LAYOUT_TEST("ep inside fsdp of four", kFour, {"moe_small", "fsdp=4,ep=2", kMoe});
REMATCH_LAYOUT_TEST("balanced ep inside fsdp of four", kFour,
                    {"moe_small", "fsdp=4,ep=2,balanced_routing", kMoe});
REMATCH_LAYOUT_TEST("all of four ranks split the experts of deepseek", kFour,
                    {"deepseek_small", "fsdp=4,ep=4,balanced_routing", kDeepseek});
REMATCH_LAYOUT_TEST("sp, and ep inside fsdp", kFour,
                    {"moe_small", "tp=2,sp,fsdp=2,ep=2", with(kMoe, "fused_ops", 1)});
REMATCH_LAYOUT_TEST("ulysses, and ep inside fsdp", kFour,
                    {"deepseek_small", "ulysses=2,fsdp=2,ep=2,balanced_routing", kDeepseek});
REMATCH_LAYOUT_TEST("ulysses and ep", kFour, {"moe_small", "ulysses=2,ep=2", kMoe});
REMATCH_LAYOUT_TEST("ep of deepseek", kTwo, {"deepseek_small", "ep=2", kDeepseek});
REMATCH_LAYOUT_TEST("tp and ulysses of deepseek", kFour,
                    {"deepseek_small", "tp=2,ulysses=2", kDeepseek});
REMATCH_LAYOUT_TEST("sp of deepseek", kTwo, {"deepseek_small", "tp=2,sp", kDeepseek});
REMATCH_LAYOUT_TEST("tp with dropout", kTwo,
                    {"llama_small", "tp=2", with(kLlama, "dropout_percent", 20)});
