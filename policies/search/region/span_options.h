// All ways worth having to run the spans of a trace: which regions, and what each keeps. These
// are the options that layer mixing chooses from.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/predict/device/links.h"
#include "policies/predict/step/optimizer_bytes.h"
#include "policies/search/mix/layer_mix.h"
#include "policies/search/region/span_pricing.h"
#include "policies/search/region/spans.h"

namespace rematch {

enum class Reach : std::uint8_t { kAll, kHull };  // all options, or those on the convex hull

struct SearchSpace {
  Schedule schedule = Schedule::kOnDemand;
  OptimizerModel optimizer = OptimizerModel::kAdamW;  // whose state is part of every peak
  int world = 1;     // above 1: the trace is of a whole model, shared out by sharding.h
  bool cuts = true;  // of a block into several regions at scope boundaries
  // Each region is one scope, and none keeps a draw before one that it draws again: what
  // torch.utils.checkpoint can run on modules (policies/export).
  bool whole_modules = false;
  // Blocks that may share one region. None: 2 sqrt(all blocks), on the hull 4.
  std::optional<int> most_in_segment;
  Reach reach = Reach::kAll;
  // Options of a block that are less than this share of its recompute time faster than a smaller
  // one are left out. 0: all options.
  double resolution_ratio = 0.005;
  // The link to the host over which blocks and segments may offload what they hold. None: they do
  // not. Copies count with nothing of them hidden.
  std::optional<HostLink> offload;
  // How many of the save sets on a block's hull may be offloaded.
  std::size_t most_offloaded_sets = 4;
  // Asked between two parts of the work. Once it says true, the rest is left out that a front does
  // not need, and what there is makes the front.
  std::function<bool()> stop;
  bool is_stopped() const { return stop && stop(); }
};

// An option with what a plan needs to know of it.
struct SpanOption {
  LayerOption figures;
  std::vector<PickedRegion> regions;  // none: autograd keeps what it saves
};

// Gaps of the options: for each way to run a block there is an option that holds
// no more, is slower by at most `time` and has a transient larger by at most `transient`.
struct OptionGap {
  std::chrono::nanoseconds time{};
  Bytes transient;
};

struct SpanOptions {
  std::vector<std::vector<SpanOption>> lists;  // by kind
  // By kind, over all save sets of all cuts. Segments are what they are: see README.md.
  std::vector<OptionGap> gaps;
};

SpanOptions make_options(const Trace& trace, const SpanMap& map, const OpTimes& times,
                         const SearchSpace& space);

// The options as a problem of layer mixing, exact for those that there are.
MixProblem mix_problem(const SpanMap& map, const SpanOptions& options);
// With options better by their gaps, so that whatever way there is to run a block, cut or not, some
// option is no worse: no plan is better than the best mix of these.
MixProblem relaxed_mix_problem(const SpanMap& map, const SpanOptions& options);

}  // namespace rematch
