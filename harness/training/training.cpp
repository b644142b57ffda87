#include "harness/training/training.h"

#include <ATen/Context.h>
#include <ATen/ops/div.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cmath>
#include <cstdlib>
#include <deque>
#include <string>
#include <utility>

#include "harness/measure/step_place.h"
#include "harness/trace/backward_as_with_data.h"
#include "harness/trace/meta_kernels.h"
#include "policies/predict/pipeline/schedule.h"
#include "policies/trace/accumulation.h"

namespace rematch {
namespace {

// In deterministic mode, LibTorch rejects matmuls unless this variable is set: cuBLAS repeats bits
// only with a workspace of fixed size. In other modes the variable stays unset, because reading it
// costs time in every matmul.
constexpr const char* kWorkspaceVariable = "CUBLAS_WORKSPACE_CONFIG";
// From LibTorch 2.15 on, each matmul allocates and frees a workspace, unless these variables are 1.
// If they are 1, the workspace stays allocated and adds the same bytes to every peak.
constexpr const char* kKeptWorkspaceVariables[] = {"TORCH_CUBLAS_WORKSPACE_CACHE",
                                                   "TORCH_CUBLASLT_UNIFIED_WORKSPACE"};

void prepare_cuda(at::Device device, Determinism determinism) {
  const bool repeats = determinism == Determinism::kRepeatableBits;
  if (repeats) setenv(kWorkspaceVariable, ":4096:8", /*overwrite=*/0);
  for (const char* variable : kKeptWorkspaceVariables) setenv(variable, "1", /*overwrite=*/0);
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(repeats, /*warn_only=*/false);
  // Stops deterministic mode from launching a fill kernel for every at::empty(). Rematch does not
  // need these kernels, because it never reads uninitialized memory.
  context.setDeterministicFillUninitializedMemory(false);
  c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
}

}  // namespace

// A micro-batch of a pipeline stage, between its forward and its backward.
struct Training::InFlight {
  std::int64_t number = 0;
  Batch batch;
  at::Tensor input;                   // undefined in the first stage
  at::Tensor loss;                    // defined only in the last stage
  std::optional<StageOutput> output;  // absent in the last stage
};

Training::Training(const TrainingSettings& settings)
    : device_(settings.device),
      begin_step_(settings.begin_step),
      spec_(settings.model),
      stage_(stage_blocks(settings.model)),
      link_(settings.stage_link == nullptr ? &no_link_ : settings.stage_link) {
  if (device_.is_meta()) install_meta_kernels();
  if (device_.is_cuda()) prepare_cuda(device_, settings.determinism);
  at::manual_seed(settings.seed);
  model_ = make_model(settings.model, device_);
  data_ = make_data(settings.model, settings.data_file, settings.seed, device_);
  if (spec_.option(std::string(kFloat32Gradients)) == 1) {
    for (const at::Tensor& parameter : parameter_tensors()) parameter.set_grad_dtype(at::kFloat);
  }
  optimizer_ = make_optimizer(settings.optimizer, parameter_tensors(), ops_of(spec_));
}

void Training::use_plan(const Plan& plan, Schedule schedule) {
  checkpoint_.reset();
  if (plan.regions.empty()) return;
  checkpoint_.emplace(plan, schedule, Checkpoint::Options{.on_mismatch = OnMismatch::kRefuse});
}

std::optional<HostMemory> Training::host_memory() const {
  if (!checkpoint_ || !checkpoint_->offloads()) return std::nullopt;
  return checkpoint_->host_memory();
}

void Training::restart_host_counts() const {
  if (checkpoint_) checkpoint_->restart_host_counts();
}

void Training::observe_moves(MoveObserver* observer) const {
  if (checkpoint_) checkpoint_->observe_moves(observer);
}

Batch Training::batch(std::int64_t index) {
  if (!given_batches_.empty()) {
    return given_batches_[static_cast<std::size_t>(index) % given_batches_.size()];
  }
  const c10::impl::ExcludeDispatchKeyGuard unseen(c10::DispatchKey::Fake);
  return model_->part_of_stage(data_->batch(data_index(spec_, index)));
}

std::vector<Batch> Training::batches_of_step(std::int64_t index) {
  const std::int64_t num = micro_batches(spec_);
  std::vector<Batch> batches;
  for (std::int64_t i = 0; i < num; ++i) batches.push_back(batch(index * num + i));
  return batches;
}

at::Tensor Training::loss(const Batch& batch) { return run_stage(batch, {}); }

at::Tensor Training::receive_input(std::int64_t micro_batch) {
  if (stage_.is_first()) return {};
  const auto options = at::TensorOptions().device(device_).dtype(
      spec_.dtype == "bfloat16" ? at::kBFloat16 : at::kFloat);
  at::Tensor input =
      make_stage_input(model_->stage_sizes(), options, [this, micro_batch](const at::Tensor& it) {
        link_->send(it, StageLink::Way::kBackward, micro_batch);
      });
  link_->receive(input, StageLink::Way::kForward, micro_batch);
  return input;
}

at::Tensor Training::run_stage(const Batch& batch, at::Tensor input) {
  at::Tensor output = model_->run_stage(batch, std::move(input));
  const std::int64_t num = micro_batches(spec_);
  return num == 1 || !stage_.is_last() ? output : at::div(output, num);
}

void Training::backward(StageOutput& output, std::int64_t micro_batch) {
  at::Tensor gradient = output.make_gradient();
  link_->receive(gradient, StageLink::Way::kBackward, micro_batch);
  run_backward([&] { output.backward(gradient); });
}

at::Tensor Training::step(std::int64_t index, StepListener& listener) {
  if (begin_step_) begin_step_(index);
  std::optional<Batch> batch;  // the last one lives until the step ends
  const at::Tensor loss =
      stage_.is_whole() ? run_micro_batches(index, listener, batch) : run_passes(index, listener);
  finish_gradients();
  listener.after_backward();
  update();
  listener.after_optimizer();
  clear_gradients();
  return loss;
}

at::Tensor Training::run_micro_batches(std::int64_t index, StepListener& listener,
                                       std::optional<Batch>& batch) {
  const std::int64_t num = micro_batches(spec_);
  at::Tensor loss;
  for (std::int64_t micro_batch = 0; micro_batch < num; ++micro_batch) {
    loss.reset();
    batch.reset();
    batch = listener.batch([&] { return this->batch(index * num + micro_batch); });
    micro_batch == 0 ? listener.before_step() : listener.before_next_micro_batch();
    loss = forward(listener, [&] { return this->loss(*batch); });
    listener.after_forward(loss);
    backward(loss);
  }
  return loss;
}

at::Tensor Training::run_passes(std::int64_t index, StepListener& listener) {
  const std::int64_t first = index * micro_batches(spec_);
  std::deque<InFlight> in_flight;  // in the order of their forward passes
  at::Tensor loss;
  for (const StagePass& pass : rank_passes(pipeline_shape(spec_.dimensions), stage_.stage)) {
    if (pass.kind == StagePass::Kind::kForward) {
      loss.reset();
      in_flight.push_back(pass_forward(first, pass.micro_batch, listener));
    } else {
      pass_backward(in_flight.front());
      loss = std::move(in_flight.front().loss);
      in_flight.pop_front();
    }
  }
  link_->finish_step();
  return loss;
}

Training::InFlight Training::pass_forward(std::int64_t first, std::int64_t micro_batch,
                                          StepListener& listener) {
  InFlight passed{micro_batch, {}, {}, {}, {}};
  passed.batch = listener.batch([&] { return batch(first + micro_batch); });
  passed.input = receive_input(micro_batch);
  micro_batch == 0 ? listener.before_step() : listener.before_next_micro_batch();
  at::Tensor output = forward(listener, [&] { return run_stage(passed.batch, passed.input); });
  if (stage_.is_last()) {
    passed.loss = std::move(output);
  } else {
    link_->send(output, StageLink::Way::kForward, micro_batch);
    passed.output.emplace(output);
    output.reset();
  }
  listener.after_forward(passed.loss);
  return passed;
}

void Training::pass_backward(InFlight& passed) {
  if (passed.output) {
    backward(*passed.output, passed.number);
  } else {
    backward(passed.loss);
  }
}

std::vector<at::Tensor> Training::parameter_tensors() const {
  std::vector<at::Tensor> tensors;
  for (const NamedTensor& parameter : model_->parameters()) tensors.push_back(parameter.tensor);
  return tensors;
}

std::vector<at::Tensor> Training::frozen_tensors() const {
  std::vector<at::Tensor> tensors;
  for (const NamedTensor& weight : model_->frozen()) tensors.push_back(weight.tensor);
  return tensors;
}

void Training::clear_gradients() {
  for (const NamedTensor& parameter : model_->parameters()) parameter.tensor.mutable_grad().reset();
}

at::Tensor Training::forward(StepListener& listener, const std::function<at::Tensor()>& loss) {
  std::optional<Recording> recording;
  if (checkpoint_) recording.emplace(*checkpoint_);
  at::Tensor result = listener.forward(loss);
  if (recording) recording->finish();
  return result;
}

void Training::backward(const at::Tensor& loss) {
  run_backward([&] { loss.backward(); });
}

void Training::run_backward(const std::function<void()>& backward) const {
  // The phase begins here, because the gradient of the loss is allocated before autograd runs.
  const PhaseGuard phase(Phase::kBackward);
  if (!device_.is_meta()) {
    backward();
    return;
  }
  BackwardAsWithData as_with_data;
  const OpModeGuard guard(&as_with_data);
  backward();
}

void Training::finish_gradients() {
  const PhaseGuard phase(Phase::kOptimizer);
  model_->finish_gradients();
}

void Training::update() {
  const PhaseGuard phase(Phase::kOptimizer);
  optimizer_->step();
}

void require_finite(double loss, std::int64_t step) {
  if (std::isfinite(loss)) return;
  throw LossNotFinite("the loss of step " + std::to_string(step) + " is " +
                      (std::isnan(loss) ? "not a number" : "infinite") +
                      "; lower the learning rate or check the data");
}

void warm_up(Training& training, std::int64_t first_step, int num_steps, PassPosition& position) {
  position = {"warm-up", -1, {}};
  Watching listener(position);
  for (int step = 0; step < num_steps; ++step) training.step(first_step + step, listener);
}

}  // namespace rematch
