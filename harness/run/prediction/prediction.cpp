#include "harness/run/prediction/prediction.h"

#include <algorithm>
#include <utility>

#include "harness/engine/interception.h"
#include "harness/engine/record/op_facts.h"
#include "harness/measure/memory.h"
#include "harness/measure/op_counter.h"
#include "harness/run/passes/passes.h"
#include "harness/trace/trace_from_record.h"
#include "harness/trace/tracer.h"
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

// Lists the collectives that run after backward, because a trace does not include those ops. On
// meta, collectives need no process group.
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

void count_parameter(const at::Tensor& parameter, std::vector<TracedParameters>& kinds) {
  const TracedParameters kind{parameter.numel(), dtype_name(parameter.scalar_type()), 1};
  for (TracedParameters& known : kinds) {
    if (known.elements != kind.elements || known.dtype != kind.dtype) continue;
    ++known.count;
    return;
  }
  kinds.push_back(kind);
}

}  // namespace

MetaModel::MetaModel(const ModelSpec& spec, const OptimizerChoice& optimizer,
                     const std::string& data_file, std::uint64_t seed)
    : spec_(spec), training_(meta_settings(spec, optimizer, data_file, seed)) {
  training_.optimizer().prepare();
}

Trace MetaModel::trace() {
  // The batch is allocated before forward because it belongs to the step, as parameters do.
  const Batch batch = training_.batch(0);
  const Bytes alive = current_meta_memory().total;
  Trace trace = record_trace([&] { return training_.loss(batch); });
  IssuedCollectives sums;
  {
    const OpObserverGuard observe(&sums);
    training_.finish_gradients();
  }
  trace.gradient_sums = std::move(sums.in_order);
  training_.clear_gradients();
  trace.model = spec_.preset;
  trace.dimensions = spec_.dimensions;
  trace.dtype = spec_.dtype;
  for (const at::Tensor& parameter : training_.parameter_tensors()) {
    trace.parameter_bytes += Bytes{static_cast<std::int64_t>(parameter.nbytes())};
    count_parameter(parameter, trace.parameters);
  }
  trace.constant_bytes = alive - trace.parameter_bytes;
  for (const at::Tensor& tensor : training_.optimizer().state()) {
    trace.constant_bytes -= Bytes{static_cast<std::int64_t>(tensor.nbytes())};
  }
  return trace;
}

Prediction MetaModel::predict(const Plan& plan, Schedule schedule) {
  training_.use_plan(plan, schedule);
  OpCounter counter;
  PassPosition position;
  // Passes cannot disturb each other on meta, so one step serves both counts and memory.
  MemoryRecord memory = memory_pass(training_, at::kMeta, /*step=*/0, position, {&counter});
  return {counter.record(1), std::move(memory)};
}

}  // namespace rematch
