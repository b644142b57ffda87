#include "harness/run/prediction/prediction.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "harness/engine/interception.h"
#include "harness/engine/record/op_facts.h"
#include "harness/measure/memory.h"
#include "harness/measure/op_counter.h"
#include "harness/measure/step_place.h"
#include "harness/trace/trace_from_record.h"
#include "harness/trace/tracer.h"
#include "policies/predict/pipeline/schedule.h"
#include "policies/predict/pipeline/split_backward.h"
#include "policies/predict/step/optimizer_bytes.h"
#include "policies/trace/accumulation.h"
#include "policies/trace/collective.h"

namespace rematch {
namespace {

TrainingSettings meta_settings(const ModelSpec& spec, const OptimizerChoice& optimizer,
                               const std::string& data_file, std::uint64_t seed) {
  TrainingSettings settings;
  settings.model = spec;
  settings.data_file = data_file;
  settings.seed = seed;
  settings.device = at::kMeta;
  settings.optimizer = optimizer;
  return settings;
}

// Records the collectives that run after backward, because a trace ends with backward. On meta,
// collectives need no process group.
class IssuedCollectives final : public OpObserver {
 public:
  void about_to_run(const c10::OperatorHandle& op, Phase /*phase*/,
                    const torch::jit::Stack& stack) override {
    const OpFacts& facts = facts_of(op);
    if (facts.collective != CollectivePart::kStart) return;
    const c10::IValue& input = stack[stack.size() - facts.arguments.size()];
    in_order.push_back({facts.name, group_of_collective(stack), bytes_of_tensors(input)});
  }
  void executed(const c10::OperatorHandle& op, Phase /*phase*/,
                const torch::jit::Stack& stack) override {
    if (facts_of(op).collective != CollectivePart::kStart) return;
    in_order.back().bytes = std::max(in_order.back().bytes, bytes_of_tensors(stack.back()));
  }

  std::vector<TracedCollective> in_order;
};

// Keeps the gradients of outputs that matmuls of backward read until they are released. Weight
// passes of ZB-H1 need them: see pipeline/split_backward.h.
class OutputGradients final : public OpObserver {
 public:
  // `matmuls` are the numbers of the matmuls among the ops of backward.
  explicit OutputGradients(std::set<std::size_t> matmuls) : matmuls_(std::move(matmuls)) {}

  void about_to_run(const c10::OperatorHandle& op, Phase phase,
                    const torch::jit::Stack& stack) override {
    if (PhaseGuard::effective(phase) != Phase::kBackward) return;
    if (!matmuls_.contains(num_ops_++)) return;
    const std::size_t num = facts_of(op).arguments.size();
    for (std::size_t index = stack.size() - num; index < stack.size(); ++index) {
      if (!stack[index].isTensor()) continue;
      const c10::Storage& storage = stack[index].toTensor().storage();
      const bool is_of_backward =
          retag_storage(*storage.unsafeGetStorageImpl(), MemoryTag::kBackward, MemoryTag::kBackward)
              .count > 0;
      if (is_of_backward) kept_.push_back(storage);
    }
  }
  void executed(const c10::OperatorHandle& /*op*/, Phase /*phase*/,
                const torch::jit::Stack& /*stack*/) override {}

 private:
  std::set<std::size_t> matmuls_;
  std::size_t num_ops_ = 0;
  std::vector<c10::Storage> kept_;
};

// Returns the numbers of the matmuls whose gradients wait, among the ops of backward.
std::set<std::size_t> waiting_matmuls(const Trace& trace) {
  std::set<std::int32_t> events;
  for (const WeightGradient& weight : weight_gradients(trace)) events.insert(weight.matmul);
  std::set<std::size_t> numbers;
  std::size_t num_ops = 0;
  for (std::size_t event = 0; event < trace.backward.size(); ++event) {
    if (trace.backward[event].kind != BackwardEvent::Kind::kOp) continue;
    if (events.contains(static_cast<std::int32_t>(event))) numbers.insert(num_ops);
    ++num_ops;
  }
  return numbers;
}

void count_parameter(const at::Tensor& parameter, std::vector<TracedParameters>& kinds) {
  const TracedParameters kind{parameter.numel(), dtype_name(parameter.scalar_type()), 1};
  for (TracedParameters& known : kinds) {
    if (known.elements != kind.elements || known.dtype != kind.dtype) continue;
    ++known.count;
    return;
  }
  kinds.push_back(kind);
}

// Returns the sizes of the tensors' storages, each rounded up to a multiple of `round`.
Bytes bytes_of_storages(const std::vector<at::Tensor>& tensors, std::int64_t round) {
  std::set<const c10::StorageImpl*> counted;
  Bytes bytes;
  for (const at::Tensor& tensor : tensors) {
    if (!counted.insert(tensor.storage().unsafeGetStorageImpl()).second) continue;
    const auto size = static_cast<std::int64_t>(tensor.storage().nbytes());
    bytes += round_up({size}, round);
  }
  return bytes;
}

}  // namespace

MetaModel::MetaModel(const ModelSpec& spec, const OptimizerChoice& optimizer,
                     const std::string& data_file, std::uint64_t seed)
    : spec_(spec),
      optimizer_(optimizer.kind),
      training_(meta_settings(spec, optimizer, data_file, seed)) {
  training_.optimizer().prepare();
}

Trace MetaModel::trace() {
  const Bytes before = current_meta_memory().total;
  // Allocates the batch before forward, because it exists throughout the step.
  const Batch batch = training_.batch(0);
  const at::Tensor input = training_.receive_input(0);
  const Bytes alive = current_meta_memory().total;
  const StageBlocks& stage = training_.stage();
  Trace trace = trace_passes(batch, input);
  if (pipeline_shape(spec_.dimensions).splits_backward) {
    // The first trace shows which gradients wait. The second one includes what they keep.
    training_.clear_gradients();
    OutputGradients kept(waiting_matmuls(trace));
    const OpObserverGuard observe(&kept);
    trace = trace_passes(batch, input);
  }
  if (!stage.is_whole()) trace.stage = TracedStage{stage.stage, alive - before, {}, {}};
  finish_step(trace);
  trace.model = spec_.preset;
  trace.dimensions = spec_.dimensions;
  trace.dtype = spec_.dtype;
  for (const at::Tensor& parameter : training_.parameter_tensors()) {
    trace.parameter_bytes += Bytes{static_cast<std::int64_t>(parameter.nbytes())};
    count_parameter(parameter, trace.parameters);
  }
  trace.constant_bytes = alive - trace.parameter_bytes - optimizer_bytes(trace, optimizer_).state;
  trace.dimensions.erase(std::string(kAccumulate));
  return accumulating(std::move(trace), micro_batches(spec_));
}

Trace MetaModel::trace_passes(const Batch& batch, const at::Tensor& input) {
  if (!training_.stage().is_last()) return trace_stage(batch, input);
  TraceSession session;
  {
    const at::Tensor loss = training_.run_stage(batch, input);
    session.end_forward(loss.device());
    // Includes the gradient of the loss, which autograd allocates first.
    const PhaseGuard phase(Phase::kBackward);
    loss.backward();
  }
  return session.finish();
}

// The output is freed before forward ends, because the next stage has it.
Trace MetaModel::trace_stage(const Batch& batch, const at::Tensor& input) {
  TraceSession session;
  at::Tensor output = training_.run_stage(batch, input);
  const c10::Device device = output.device();
  StageOutput sent(output);
  output.reset();
  session.end_forward(device);
  training_.backward(sent, /*micro_batch=*/0);
  return session.finish();
}

void MetaModel::finish_step(Trace& trace) {
  IssuedCollectives sums;
  OpCounter counter;
  OpObservers observers({&sums, &counter});
  {
    const OpObserverGuard observe(&observers);
    training_.finish_gradients();
    const PhaseGuard phase(Phase::kOptimizer);
    training_.optimizer().step();
  }
  training_.clear_gradients();
  trace.gradient_sums = std::move(sums.in_order);
  optimizer_ops_ = counter.record(1).by_op[static_cast<std::size_t>(Phase::kOptimizer)];
}

// Rounds the sizes of storages, because they come from tensors. All other sizes are already
// rounded, because they come from the counting allocators.
RoundedTrace MetaModel::rounded_trace(std::int64_t round) {
  RoundedTrace rounded{trace(), round};
  Trace& trace = rounded.trace;
  const Bytes before =
      trace.parameter_bytes + trace.constant_bytes + optimizer_bytes(trace, optimizer_).state;
  for (TracedStorage& storage : trace.storages) {
    storage.bytes = round_up(storage.bytes, round);
  }
  trace.parameter_bytes = bytes_of_storages(training_.parameter_tensors(), round);
  trace.constant_bytes =
      before - trace.parameter_bytes - optimizer_bytes(trace, optimizer_, round).state;
  return rounded;
}

Bytes MetaModel::frozen_bytes() const { return bytes_of_storages(training_.frozen_tensors(), 1); }

namespace {

// Traces the model on one rank.
TracedModel trace_rank(const ModelSpec& spec, const OptimizerChoice& optimizer,
                       const std::string& data_file, std::uint64_t seed, std::int64_t round) {
  install_counting_allocators();
  TracedModel traced;
  {
    MetaModel model(spec, optimizer, data_file, seed);
    traced.trace = model.trace();
    traced.optimizer_ops = model.optimizer_ops();
    traced.frozen = model.frozen_bytes();
  }
  if (round == 1) return traced;
  install_counting_allocators(round);
  traced.rounded = MetaModel(spec, optimizer, data_file, seed).rounded_trace(round);
  return traced;
}

}  // namespace

TracedModel trace_model(const ModelSpec& spec, const OptimizerChoice& optimizer,
                        const std::string& data_file, std::uint64_t seed, std::int64_t round) {
  const std::int64_t num = num_stages(spec.dimensions);
  if (num == 1) return trace_rank(spec, optimizer, data_file, seed, round);
  // See Note [Ranks of a layout] for ranks of later stages.
  const auto ranks_of_stage =
      static_cast<int>(world_size(spec) / pipeline_shape(spec.dimensions).num_ranks);
  ModelSpec of_stage = spec;
  of_stage.rank %= ranks_of_stage;
  TracedModel first = trace_rank(of_stage, optimizer, data_file, seed, round);
  for (std::int64_t stage = 1; stage < num; ++stage) {
    of_stage.rank += ranks_of_stage;
    first.later_stages.push_back(trace_rank(of_stage, optimizer, data_file, seed, round));
  }
  return first;
}

}  // namespace rematch
