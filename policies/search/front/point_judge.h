// A plan as a point of a front, for one rank of a step: its figures by the step simulator, its time
// by the profile, and words for people. What the searches of front.h and simple_form.h share.
#pragma once

#include "policies/predict/device/sharding.h"
#include "policies/predict/step/step.h"
#include "policies/search/front/front.h"

namespace rematch {

class PointJudge {
 public:
  // References must outlive it.
  PointJudge(const Trace& trace, const Profile& profile, const SearchSpace& space);
  PointJudge(const PointJudge&) = delete;
  PointJudge& operator=(const PointJudge&) = delete;

  const Trace& trace() const { return step_.trace; }  // of the rank
  Bytes before() const { return before_; }            // alive before the step

  // Without words, since most points are weighed and not shown, and bounded by the time of keeping
  // everything alone.
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
