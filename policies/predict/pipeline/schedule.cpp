#include "policies/predict/pipeline/schedule.h"

#include <algorithm>
#include <cstddef>
#include <set>

#include "policies/trace/accumulation.h"

namespace rematch {
namespace {

using Kind = StagePass::Kind;

// Returns the k-th forward pass of a rank, or the k-th backward pass.
StagePass pass_of(const PipelineShape& shape, std::int64_t rank, Kind kind, std::int64_t k) {
  const std::int64_t ranks = shape.num_ranks;
  if (shape.stages_per_rank == 1) return {kind, k, rank};
  const std::int64_t group = ranks * shape.stages_per_rank;
  std::int64_t position = k % group / ranks;
  if (kind != Kind::kForward) position = shape.stages_per_rank - 1 - position;
  return {kind, k / group * ranks + k % ranks, position * ranks + rank};
}

std::int64_t num_warm_up_passes(const PipelineShape& shape, std::int64_t rank) {
  const std::int64_t after = shape.num_ranks - rank - 1;
  const std::int64_t num = shape.stages_per_rank == 1
                               ? after
                               : 2 * after + (shape.stages_per_rank - 1) * shape.num_ranks;
  return std::min(num, shape.micro_batches * shape.stages_per_rank);
}

}  // namespace

std::vector<std::int64_t> PipelineShape::stages_of(std::int64_t rank) const {
  std::vector<std::int64_t> stages;
  for (std::int64_t stage = rank; stage < num_stages(); stage += num_ranks) stages.push_back(stage);
  return stages;
}

PipelineShape pipeline_shape(const std::map<std::string, std::int64_t>& dimensions) {
  const auto size_of = [&](std::string_view name, std::int64_t absent) {
    const auto found = dimensions.find(std::string(name));
    return found == dimensions.end() ? absent : found->second;
  };
  return {size_of(kPipeline, 1), size_of(kAccumulate, 1), size_of(kInterleave, 1),
          size_of(kZeroBubble, 0) == 1};
}

std::string_view schedule_name(const PipelineShape& shape) {
  if (shape.splits_backward) return "ZB-H1";
  return shape.stages_per_rank > 1 ? "interleaved 1F1B" : "1F1B";
}

std::vector<StagePass> rank_passes(const PipelineShape& shape, std::int64_t rank) {
  const std::int64_t num = shape.micro_batches * shape.stages_per_rank;
  const std::int64_t ahead = num_warm_up_passes(shape, rank);
  std::vector<StagePass> passes;
  const auto add = [&](Kind kind, std::int64_t k) {
    passes.push_back(pass_of(shape, rank, kind, k));
  };
  for (std::int64_t next = 0; next < num + ahead; ++next) {
    if (next < num) add(Kind::kForward, next);
    if (next < ahead) continue;
    add(Kind::kBackward, next - ahead);
    if (shape.splits_backward && next - ahead >= rank) add(Kind::kWeights, next - ahead - rank);
  }
  if (!shape.splits_backward) return passes;
  for (std::int64_t next = std::max<std::int64_t>(0, num - rank); next < num; ++next) {
    add(Kind::kWeights, next);
  }
  return passes;
}

std::vector<PassMoment> pass_moments(const PipelineShape& shape, std::int64_t rank) {
  std::set<PassMoment> moments;
  std::vector<HeldByStage> held(static_cast<std::size_t>(shape.stages_per_rank));
  for (const StagePass& pass : rank_passes(shape, rank)) {
    const auto stage = static_cast<std::size_t>(pass.stage / shape.num_ranks);
    HeldByStage& own = held[stage];
    if (pass.kind == Kind::kBackward) --own.in_flight;
    if (pass.kind == Kind::kWeights) --own.for_weights;
    moments.insert({pass.kind, stage, held});
    if (pass.kind == Kind::kForward) {
      ++own.in_flight;
      continue;
    }
    if (pass.kind == Kind::kBackward) {
      own.has_gradients = true;
      if (shape.splits_backward) ++own.for_weights;
    }
    if (pass.kind == Kind::kWeights || !shape.splits_backward) own.has_weight_gradients = true;
  }
  return {moments.begin(), moments.end()};
}

std::int64_t most_in_flight(const PipelineShape& shape, std::int64_t stage) {
  const auto position = static_cast<std::size_t>(stage / shape.num_ranks);
  std::int64_t most = 0;
  for (const PassMoment& moment : pass_moments(shape, stage % shape.num_ranks)) {
    if (moment.stage == position) most = std::max(most, moment.held[position].in_flight + 1);
  }
  return most;
}

}  // namespace rematch
