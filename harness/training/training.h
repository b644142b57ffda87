// One training process: a model, its data and its optimizer. A training runs steps under a plan. A
// pass observes a step through a StepListener. The step itself is the same in all passes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/engine/recording.h"
#include "harness/training/optimizer.h"
#include "models/model.h"
#include "policies/plan/plan.h"
#include "policies/trace/phase.h"

namespace rematch {

// Called at the moments of a step, in this order. The batch is made before before_step() is called.
class StepListener {
 public:
  virtual ~StepListener() = default;
  // Makes the batch, which is not part of the step. A listener may put guards around it.
  virtual Batch batch(const std::function<Batch()>& make) { return make(); }
  virtual void before_step() {}
  // Runs forward, while recording is on. A listener may put guards around it.
  virtual at::Tensor forward(const std::function<at::Tensor()>& loss) { return loss(); }
  virtual void after_forward(const at::Tensor& /*loss*/) {}  // called when recording has ended
  virtual void after_backward() {}
  virtual void after_optimizer() {}  // called while gradients still exist
};

// Whether every run must give the same bits. On a GPU this excludes the fastest kernels of some
// ops. The CPU's kernels always repeat their bits.
enum class Determinism : std::uint8_t { kRepeatableBits, kFastest };

struct TrainingSettings {
  ModelSpec model;
  std::string data_file;  // if empty, the data shipped with the project
  std::uint64_t seed = 0;
  at::Device device = at::kCPU;
  OptimizerChoice optimizer;
  Determinism determinism = Determinism::kRepeatableBits;
  std::function<void(std::int64_t step)> begin_step;  // called before each step; may be empty
};

class Training {
 public:
  // Builds the model and seeds every generator. Throws what make_model and make_data throw.
  explicit Training(const TrainingSettings& settings);

  // Sets the plan of the following steps. A plan without regions records nothing.
  void use_plan(const Plan& plan, Schedule schedule);

  // Runs forward, loss, backward and optimizer on the data of step `index`. Gradients are cleared
  // afterwards. With a layout, ranks that have different data take turns at the source's batches,
  // and sums of gradients over ranks count as part of the optimizer. Returns the loss with what is
  // left of its graph after backward, because a detach would be an op of the step.
  at::Tensor step(std::int64_t index, StepListener& listener);

  // Makes this rank's input of step `index`. Making the input is not part of the step: no observer
  // sees its ops.
  Batch batch(std::int64_t index);

  // Runs forward once and returns the loss with its graph.
  at::Tensor loss(const Batch& batch) { return model_->loss(batch); }

  const std::vector<NamedTensor>& parameters() const { return model_->parameters(); }
  std::vector<at::Tensor> parameter_tensors() const;
  std::vector<at::Tensor> frozen_tensors() const;  // weights that are not trained
  Optimizer& optimizer() { return *optimizer_; }
  void clear_gradients();
  // After backward, sums gradients over ranks where that is required. step() includes this.
  void finish_gradients();

  // Host memory of the plan in use. Absent if the plan offloads nothing. Peak and copied bytes
  // count from restart_host_counts() on.
  std::optional<HostMemory> host_memory() const;
  void restart_host_counts() const;
  // Calls Checkpoint::observe_moves() for the plan in use.
  void observe_moves(MoveObserver* observer) const;

 private:
  at::Tensor forward(const Batch& batch, StepListener& listener);
  void backward(const at::Tensor& loss);
  void update();

  at::Device device_;
  std::function<void(std::int64_t step)> begin_step_;
  ModelSpec spec_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<DataSource> data_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<Checkpoint> checkpoint_;
};

// Thrown if a loss is not finite. The point is then useless in every comparison.
struct LossNotFinite : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws LossNotFinite, which names the step, if the loss is not finite.
void require_finite(double loss, std::int64_t step);

// The position of a pass over a point. If the point fails, its reason names this position.
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

// Keeps `position` up to date. Passes derive from this class to observe more.
class Watching : public StepListener {
 public:
  explicit Watching(PassPosition& position) : position_(position) {}
  void before_step() override {
    ++position_.step;
    position_.phase = Phase::kForward;
  }
  void after_forward(const at::Tensor&) override { position_.phase = Phase::kBackward; }
  void after_backward() override { position_.phase = Phase::kOptimizer; }

 private:
  PassPosition& position_;
};

// Steps before any measurement. The first step allocates the optimizer's state. The second step is
// the first to allocate in the same way as all later steps.
inline constexpr int kWarmUpSteps = 2;

void warm_up(Training& training, std::int64_t first_step, int num_steps, PassPosition& position);

}  // namespace rematch
