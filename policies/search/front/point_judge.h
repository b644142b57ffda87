// Turns a plan into a point of a front, for one rank of a step. The bytes come from the step
// simulator and the time from the profile.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "policies/predict/device/sharding.h"
#include "policies/predict/pipeline/rank_holds.h"
#include "policies/predict/pipeline/schedule.h"
#include "policies/predict/step/step.h"
#include "policies/search/front/front.h"
#include "policies/search/front/searched_stage.h"
#include "policies/search/region/span_options.h"

namespace rematch {

class PointJudge {
 public:
  // `stages` are the stages of one rank of a pipeline, or one model without stages.
  PointJudge(const std::vector<SearchedStage>& stages, const SearchSpace& space);
  PointJudge(const PointJudge&) = delete;
  PointJudge& operator=(const PointJudge&) = delete;

  // Returns the trace of one rank, for one of the stages.
  const Trace& trace(std::size_t stage) const { return stages_.at(stage)->step.trace; }
  Bytes before() const { return before_; }  // bytes alive before a micro-batch

  // Computes the figures of a plan's point. Leaves its text empty, because most points are never
  // shown: see add_words(). The point's step_time_bound is only the time of keeping everything.
  FrontPoint judge(Plan plan);
  void add_words(FrontPoint& point) const;

  // For a rank with several stages: the figures of one stage's plan, without the rank's other
  // stages. The peaks are those of the passes, in the order of HeldByOthers; absent passes have 0.
  struct StageFigures {
    StageHolds holds;
    HeldByOthers own_peaks;
  };
  StageFigures figures_of_stage(std::size_t stage, const Plan& plan);
  // Returns the peak of the rank under one plan for each stage.
  Bytes peak_of(const std::vector<const StageFigures*>& stages) const;

 private:
  struct Stage {
    Stage(const SearchedStage& stage, const SearchSpace& space);

    ShardedStep step;
    const Profile& profile;
    StepSimulator simulator;
  };

  // Simulates the stages of a rank. Fills the figures except the text of the peak's place.
  FrontPoint judge_stages(const Plan& plan);

  const SearchSpace& space_;
  std::vector<std::unique_ptr<Stage>> stages_;
  std::vector<PassMoment> moments_;  // empty for one stage
  std::chrono::nanoseconds step_time_{};
  Bytes before_;
};

}  // namespace rematch
