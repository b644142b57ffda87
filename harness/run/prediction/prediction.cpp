#include "harness/run/prediction/prediction.h"

#include "harness/measure/memory.h"
#include "harness/measure/op_counter.h"
#include "harness/run/passes/op_counts.h"
#include "harness/run/passes/probe_listener.h"
#include "harness/trace/observed_collectives.h"
#include "harness/trace/trace_from_record.h"
#include "harness/trace/tracer.h"

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

// Nothing can disturb anything on meta, so one step serves both.
class BothObservers final : public OpObserver {
 public:
  BothObservers(OpObserver& first, OpObserver& second) : first_(first), second_(second) {}
  void executed(const c10::OperatorHandle& op, Phase phase,
                const torch::jit::Stack& stack) override {
    first_.executed(op, phase, stack);
    second_.executed(op, phase, stack);
  }
  void brought_back(const at::Tensor& value) override {
    first_.brought_back(value);
    second_.brought_back(value);
  }

 private:
  OpObserver& first_;
  OpObserver& second_;
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
  const Batch batch = training_.batch(0);  // of the step, as parameters are: no part of forward
  const Bytes alive = current_meta_memory().total;
  Trace trace = record_trace([&] { return training_.loss(batch); });
  trace.gradient_sums = collectives_of([&] { training_.finish_gradients(); });
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
  MemoryProbe probe(at::kMeta, training_.parameter_tensors());
  probe.assign(training_.optimizer().state(), MemoryTag::kOptimizer);
  probe.assign(training_.frozen_tensors(), MemoryTag::kFrozen);
  OpCounter counter;
  BothObservers both(counter, probe);
  {
    const OpObserverGuard observe(&both);
    ProbeListener listener(probe);
    training_.restart_host_counts();
    training_.step(0, listener);
  }
  Prediction prediction{counter.record(1), probe.finish_step()};
  prediction.memory.host = host_record(training_);
  prediction.memory.peak_transient.reset();  // no kernels, no insides
  return prediction;
}

}  // namespace rematch
