// A model with its data and its optimizer, which runs training steps under a plan. A StepListener
// observes the steps without changing them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "harness/engine/recording.h"
#include "harness/training/determinism.h"
#include "harness/training/optimizer.h"
#include "harness/training/stage.h"
#include "models/model.h"
#include "models/preset/parallel.h"
#include "policies/plan/plan.h"
#include "policies/trace/phase.h"

namespace rematch {

// Observes a step. The functions are called in the order of their declaration. With several
// micro-batches, batch(), before_next_micro_batch(), forward() and after_forward() are called for
// each later micro-batch. Backward of the one before it may not have run yet in a pipeline stage.
class StepListener {
 public:
  virtual ~StepListener() = default;
  // Must return the result of make(). An override may hold RAII guards while make() runs. Making
  // the batch is not part of the step, even if an earlier micro-batch has run.
  virtual Batch batch(const std::function<Batch()>& make) { return make(); }
  virtual void before_step() {}
  virtual void before_next_micro_batch() {}
  // Must return the result of loss(), which runs forward. An override may hold RAII guards while
  // loss() runs.
  virtual at::Tensor forward(const std::function<at::Tensor()>& loss) { return loss(); }
  // Called after recording has ended. `loss` is undefined in a pipeline stage without the loss.
  virtual void after_forward(const at::Tensor& /*loss*/) {}
  virtual void after_backward() {}
  virtual void after_optimizer() {}  // called before gradients are cleared
};

struct TrainingSettings {
  ModelSpec model;
  std::string data_file;  // if empty, the data shipped with the project
  std::uint64_t seed = 0;
  at::Device device = at::kCPU;
  OptimizerChoice optimizer;
  Determinism determinism = Determinism::kRepeatableBits;
  std::function<void(std::int64_t step)> begin_step;  // called before each step; may be empty
  // Passes tensors between the stages of a pipeline, and must outlive the training. If null, this
  // rank's stage runs alone.
  StageLink* stage_link = nullptr;
};

class Training {
 public:
  // Builds the model and seeds every random generator. Throws what make_model and make_data throw.
  explicit Training(const TrainingSettings& settings);

  // Sets the plan of the following steps. With a plan without regions, steps are not recorded.
  void use_plan(const Plan& plan, Schedule schedule);

  // Runs forward, loss and backward on each micro-batch of step `index`, and then the optimizer.
  // Gradients are cleared afterwards. With a parallel layout, data-parallel ranks take the batches
  // in turn, and all-reduces of gradients count as part of the optimizer. Returns the loss of the
  // last micro-batch without detaching it, because detach would add an op to the step. A stage of a
  // pipeline runs its passes in the order of its schedule. Returns an undefined tensor for a stage
  // without the loss.
  at::Tensor step(std::int64_t index, StepListener& listener);

  // Makes this rank's batch `index`. A step uses as many batches as it has micro-batches. Observers
  // do not see the ops that make a batch, because they are not part of the step.
  Batch batch(std::int64_t index);
  // Makes this rank's batches of step `index`, one for each micro-batch.
  std::vector<Batch> batches_of_step(std::int64_t index);
  // Makes all later steps use these batches, one for each micro-batch. An empty list makes steps
  // use their own batches again.
  void use_batches(std::vector<Batch> batches) { given_batches_ = std::move(batches); }

  // Runs forward once and returns the loss with its graph. The loss is divided by the number of
  // micro-batches, so that gradients that are added up have the scale of their mean.
  at::Tensor loss(const Batch& batch);

  // Whether this rank runs a stage of a pipeline, and which.
  const StageBlocks& stage() const { return stage_; }
  // Allocates the input of this stage for one micro-batch, and receives it. Undefined in the first
  // stage.
  at::Tensor receive_input(std::int64_t micro_batch);
  // Runs this stage forward once. Returns its output with its graph: in the last stage, the loss.
  at::Tensor run_stage(const Batch& batch, at::Tensor input);
  // Allocates the gradient of a stage's output, receives it and runs backward. `output` must not be
  // the loss.
  void backward(StageOutput& output, std::int64_t micro_batch);

  const std::vector<NamedTensor>& parameters() const { return model_->parameters(); }
  std::vector<at::Tensor> parameter_tensors() const;
  std::vector<at::Tensor> frozen_tensors() const;
  Optimizer& optimizer() { return *optimizer_; }
  void clear_gradients();
  // Sums gradients over ranks after backward, if the layout requires it. step() calls this itself.
  void finish_gradients();

  // Returns the host memory that the plan's offloaded values use, or nullopt if the plan offloads
  // nothing. restart_host_counts() resets its peak and its copied bytes.
  std::optional<HostMemory> host_memory() const;
  void restart_host_counts() const;
  // Calls observe_moves() of the current plan's Checkpoint.
  void observe_moves(MoveObserver* observer) const;

 private:
  struct InFlight;
  at::Tensor run_micro_batches(std::int64_t index, StepListener& listener,
                               std::optional<Batch>& batch);
  at::Tensor run_passes(std::int64_t index, StepListener& listener);
  // `first` is the index of the step's first batch.
  InFlight pass_forward(std::int64_t first, std::int64_t micro_batch, StepListener& listener);
  void pass_backward(InFlight& micro_batch);
  at::Tensor forward(StepListener& listener, const std::function<at::Tensor()>& loss);
  void backward(const at::Tensor& loss);
  void run_backward(const std::function<void()>& backward) const;
  void update();

  at::Device device_;
  std::function<void(std::int64_t step)> begin_step_;
  ModelSpec spec_;
  StageBlocks stage_;
  StageLink no_link_;
  StageLink* link_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<DataSource> data_;
  std::vector<Batch> given_batches_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<Checkpoint> checkpoint_;
};

// Thrown if a loss is not finite, because the measured point cannot be compared with others.
struct LossNotFinite : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws LossNotFinite, which names the step, if the loss is not finite.
void require_finite(double loss, std::int64_t step);

// The current pass, step and phase of a measurement. The error of a failed point names this
// position.
struct PassPosition {
  std::string pass = "building the model";
  std::int64_t step = -1;
  std::optional<Phase> phase;

  // Returns a text such as "memory pass, step 0, backward". Before the first step, returns only the
  // pass.
  std::string describe() const {
    if (step < 0 || !phase) return pass;
    return pass + " pass, step " + std::to_string(step) + ", " + std::string(to_string(*phase));
  }
};

// Keeps `position` up to date. Base class of all step listeners that measure.
class Watching : public StepListener {
 public:
  explicit Watching(PassPosition& position) : position_(position) {}
  void before_step() override {
    ++position_.step;
    position_.phase = Phase::kForward;
  }
  void before_next_micro_batch() override { position_.phase = Phase::kForward; }
  void after_forward(const at::Tensor&) override { position_.phase = Phase::kBackward; }
  void after_backward() override { position_.phase = Phase::kOptimizer; }

 private:
  PassPosition& position_;
};

// Number of steps before any measurement. The first step also allocates the optimizer's state; from
// the second step on, all steps allocate alike.
inline constexpr int kWarmUpSteps = 2;

void warm_up(Training& training, std::int64_t first_step, int num_steps, PassPosition& position);

}  // namespace rematch
