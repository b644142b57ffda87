// Runs a search for a user: finds the plan that meets a limit, the front that includes this plan,
// and the best plan of a simple form. The command line and the Python package both call these
// functions.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/plan/plan.h"
#include "policies/predict/step/optimizer_bytes.h"
#include "policies/search/front/front_json.h"
#include "policies/search/front/front_search.h"
#include "policies/search/pipeline/pipeline_front.h"
#include "policies/search/region/spans.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// Returns the default search space for a schedule and an optimizer.
SearchSpace usual_space(Schedule schedule, OptimizerKind optimizer);

// Returns the baselines that a search compares its front with by default: the policies of the
// catalogue that resolve for this model, and the plans of PyTorch's planners. Once `stop` returns
// true, returns the baselines that have been resolved so far.
std::vector<Plan> usual_baselines(const Trace& trace, const Profile& profile,
                                  const std::function<bool()>& stop);

// Returns the policies of usual_baselines(), separated by commas.
std::string_view usual_policies();

// Selects what is computed and shown besides the answer.
struct Shown {
  std::size_t num_points = 0;
  std::vector<Plan> baselines;
  bool simple = true;  // whether to find the best plan of a simple form (simple_point.h)
};

// Fills the record's front, answer and simple plan. The record must contain its limit: a budget, a
// largest slowdown, or the device's memory. `search` must be new, and made from the same trace,
// profile and space.
//
// If no plan meets the limit, the record has no answer, and the function returns the lowest peak of
// all plans. If space.stop() stops the search, returns nullopt, and the front contains the plans
// found so far.
std::optional<Bytes> answer_question(const Trace& trace, const Profile& profile,
                                     const SearchSpace& space, const Shown& shown,
                                     FrontSearch& search, FrontRecord& record);

// The same for a pipeline. A simple plan needs one stage on each rank.
std::optional<Bytes> answer_pipeline(const std::vector<SearchedStage>& stages,
                                     const SearchSpace& space, const Shown& shown,
                                     PipelineSearch& search, FrontRecord& record);

}  // namespace rematch
