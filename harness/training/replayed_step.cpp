#include "harness/training/replayed_step.h"

#include <ATen/core/function_schema.h>
#include <c10/util/Exception.h>
#include <c10/util/ScopeExit.h>

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "harness/engine/interception.h"
#include "harness/training/cuda_graph.h"
#include "policies/trace/phase.h"

namespace rematch {
namespace {

// Follows the ops that have begun and not ended, so that a failed capture can name its op.
class OpsInFlight final : public OpObserver {
 public:
  void about_to_run(const c10::OperatorHandle& op, Phase phase,
                    const torch::jit::Stack& /*stack*/) override {
    const std::lock_guard lock(mutex_);
    in_flight_[std::this_thread::get_id()].push_back(op.schema().name() + " in " +
                                                     std::string(to_string(phase)));
  }
  void executed(const c10::OperatorHandle& /*op*/, Phase /*phase*/,
                const torch::jit::Stack& /*stack*/) override {
    const std::lock_guard lock(mutex_);
    in_flight_[std::this_thread::get_id()].pop_back();
  }

  // Returns text such as "aten::_local_scalar_dense in forward". Empty if no op has failed.
  std::string failed() const {
    const std::lock_guard lock(mutex_);
    for (const auto& [thread, ops] : in_flight_) {
      if (!ops.empty()) return ops.front();
    }
    return {};
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::thread::id, std::vector<std::string>> in_flight_;
};

std::string reason(const std::string& op, const std::string& error) {
  return "the step cannot be captured into a CUDA graph: " + (op.empty() ? "" : op + ": ") +
         error.substr(0, error.find('\n')) + "; leave out --cuda-graph";
}

}  // namespace

ReplayedStep::ReplayedStep(Training& training, at::Device device)
    : training_(training), graph_(make_cuda_graph(device)) {
  if (graph_ == nullptr) throw NotCapturable(reason("", "this program is not linked with CUDA"));
}

ReplayedStep::~ReplayedStep() = default;

void ReplayedStep::run(const std::function<void()>& work) { graph_->run(work); }

void ReplayedStep::capture(std::int64_t index) {
  graph_->run([&] { batches_ = training_.batches_of_step(index); });
  training_.use_batches(batches_);
  const auto own_batches = c10::make_scope_exit([&] { training_.use_batches({}); });
  OpsInFlight ops;
  try {
    const OpObserverGuard observe(&ops);
    graph_->capture([&] {
      StepListener nobody;
      loss_ = training_.step(index, nobody).detach();
    });
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    training_.clear_gradients();
    throw NotCapturable(reason(ops.failed(), error.what_without_backtrace()));
  }
}

at::Tensor ReplayedStep::step(std::int64_t index, StepListener& listener) {
  graph_->run([&] {
    const std::vector<Batch> made = training_.batches_of_step(index);
    for (std::size_t i = 0; i < made.size(); ++i) {
      for (std::size_t tensor = 0; tensor < made[i].tensors.size(); ++tensor) {
        batches_[i].tensors[tensor].copy_(made[i].tensors[tensor]);
      }
    }
  });
  listener.before_step();
  graph_->replay();
  listener.after_optimizer();
  return loss_;
}

}  // namespace rematch
