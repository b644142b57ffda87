// Turns a plan into a point of a front, for one rank of a step. The bytes come from the step
// simulator and the time from the profile.
#pragma once

#include "policies/predict/device/sharding.h"
#include "policies/predict/step/step.h"
#include "policies/search/front/front.h"

namespace rematch {

class PointJudge {
 public:
  // The references must outlive the judge.
  PointJudge(const Trace& trace, const Profile& profile, const SearchSpace& space);
  PointJudge(const PointJudge&) = delete;
  PointJudge& operator=(const PointJudge&) = delete;

  const Trace& trace() const { return step_.trace; }  // the trace of one rank
  Bytes before() const { return before_; }            // bytes alive before a micro-batch

  // Computes the figures of a plan's point. Leaves its text empty, because most points are never
  // shown: see add_words(). The point's step_time_bound is only the time of keeping everything.
  FrontPoint judge(Plan plan);
  void add_words(FrontPoint& point) const;

 private:
  ShardedStep step_;
  const Profile& profile_;
  const SearchSpace& space_;
  StepSimulator simulator_;
  Bytes before_;
};

}  // namespace rematch
