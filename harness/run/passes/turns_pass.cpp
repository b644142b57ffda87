#include <c10/core/CachingDeviceAllocator.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "harness/run/passes/early_end.h"
#include "harness/run/passes/passes.h"
#include "harness/run/passes/point_process.h"
#include "harness/run/timing/time_summary.h"
#include "harness/run/timing/turns.h"
#include "harness/training/device.h"

namespace rematch {
namespace {

// One training whose plan changes from turn to turn.
class Turns {
 public:
  explicit Turns(const TurnsRequest& request) : request_(request), job_(request.arms.front()) {
    for (const PointRequest& arm : request.arms) records_.push_back(empty_record(arm));
  }

  std::vector<PointRecord> run() {
    build_training();
    if (training_) {
      std::vector<Arm> arms;
      for (std::size_t index = 0; index < records_.size(); ++index)
        arms.push_back({index, false, {}});
      take_turns(
          arms, request_.reference, request_.rule, [](int) { return std::nullopt; },
          [this](const Arm& arm, const Turn& turn) { return measure(arm.point, turn); });
      for (const Arm& arm : arms) summarize(arm);
    }
    return std::move(records_);
  }

 private:
  // If the model does not fit into memory, every arm gets the same failure.
  void build_training() {
    PointRecord built = records_.front();
    run_to_early_end(position_, job_.device(), built, [&] {
      training_ = std::make_unique<Training>(training_settings(request_.arms.front(), job_));
    });
    if (training_) return;
    for (PointRecord& record : records_) {
      record.status = built.status;
      record.reason = built.reason;
      record.failure = built.failure;
      record.memory = built.memory;
    }
  }

  // Returns the record of one round of an arm. Does not run an arm that has already ended early.
  PointRecord measure(std::size_t arm, const Turn& turn) {
    PointRecord& record = records_[arm];
    if (record.status != PointStatus::kOk) return record;
    release_former_plan();
    const PointRequest& request = request_.arms[arm];
    PointRecord round = empty_record(request);
    run_to_early_end(position_, job_.device(), round, [&] {
      training_->use_plan(request.plan, request.identity.schedule);
      const StepsToTime steps{next_step_, request.num_steps, warm_up(), request.cuda_graph};
      next_step_ = time_pass(*training_, job_, steps, position_, round);
      note_determinism(request, round);
      if (round.time->device_state) round.time->device_state->round_repeats = turn.repeat;
    });
    record.status = round.status;
    record.reason = round.reason;
    record.failure = round.failure;
    record.warm_up_steps = round.warm_up_steps;
    if (round.status != PointStatus::kOk) {
      record.memory = round.memory;
      training_->clear_gradients();
    }
    return round;
  }

  // Empties the allocator's cache, so that memory left by the previous plan does not count in the
  // next plan's peaks.
  void release_former_plan() {
    training_->use_plan({}, Schedule::kOnDemand);
    if (job_.device().is_cuda()) {
      c10::getDeviceAllocator(job_.device().type())->emptyCache();
    }
  }

  // The first step under a plan fills the allocator's cache.
  WarmUp warm_up() const {
    if (next_step_ == 0) return warm_up_of_process(job_.device());
    return {.min_steps = 1};
  }

  void summarize(const Arm& arm) {
    PointRecord& record = records_[arm.point];
    if (record.status == PointStatus::kOk) record.time = summarize_rounds(arm.rounds);
  }

  const TurnsRequest& request_;
  Job job_;
  std::unique_ptr<Training> training_;
  std::vector<PointRecord> records_;  // indexed by arm
  PassPosition position_;
  std::int64_t next_step_ = 0;
};

}  // namespace

std::vector<PointRecord> run_turns(const TurnsRequest& request) {
  prepare_process(request.arms.front());
  return Turns(request).run();
}

}  // namespace rematch
