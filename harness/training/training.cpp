#include "harness/training/training.h"

#include <ATen/Context.h>
#include <ATen/ops/div.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "harness/measure/step_place.h"
#include "harness/trace/backward_as_with_data.h"
#include "harness/trace/meta_kernels.h"
#include "models/preset/parallel.h"
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

Training::Training(const TrainingSettings& settings)
    : device_(settings.device), begin_step_(settings.begin_step), spec_(settings.model) {
  if (device_.is_meta()) install_meta_kernels();
  if (device_.is_cuda()) prepare_cuda(device_, settings.determinism);
  at::manual_seed(settings.seed);
  model_ = make_model(settings.model, device_);
  data_ = make_data(settings.model, settings.data_file, settings.seed, device_);
  if (spec_.option(std::string(kFloat32Gradients)) == 1) {
    for (const at::Tensor& parameter : parameter_tensors()) parameter.set_grad_dtype(at::kFloat);
  }
  optimizer_ = make_optimizer(settings.optimizer, parameter_tensors());
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
  const c10::impl::ExcludeDispatchKeyGuard unseen(c10::DispatchKey::Fake);
  return data_->batch(data_index(spec_, index));
}

at::Tensor Training::loss(const Batch& batch) {
  const at::Tensor loss = model_->loss(batch);
  const std::int64_t num = micro_batches(spec_);
  return num == 1 ? loss : at::div(loss, num);
}

at::Tensor Training::step(std::int64_t index, StepListener& listener) {
  if (begin_step_) begin_step_(index);
  const std::int64_t num = micro_batches(spec_);
  at::Tensor loss;
  std::optional<Batch> batch;  // the last one lives until the step ends
  for (std::int64_t micro_batch = 0; micro_batch < num; ++micro_batch) {
    loss.reset();
    batch.reset();
    batch = listener.batch([&] { return this->batch(index * num + micro_batch); });
    micro_batch == 0 ? listener.before_step() : listener.before_next_micro_batch();
    loss = forward(*batch, listener);
    listener.after_forward(loss);
    backward(loss);
  }
  finish_gradients();
  listener.after_backward();
  update();
  listener.after_optimizer();
  clear_gradients();
  return loss;
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

at::Tensor Training::forward(const Batch& batch, StepListener& listener) {
  std::optional<Recording> recording;
  if (checkpoint_) recording.emplace(*checkpoint_);
  at::Tensor loss = listener.forward([&] { return this->loss(batch); });
  if (recording) recording->finish();
  return loss;
}

void Training::backward(const at::Tensor& loss) {
  // The phase begins here, because the gradient of the loss is allocated before autograd runs.
  const PhaseGuard phase(Phase::kBackward);
  if (!device_.is_meta()) {
    loss.backward();
    return;
  }
  BackwardAsWithData as_with_data;
  const OpModeGuard guard(&as_with_data);
  loss.backward();
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
