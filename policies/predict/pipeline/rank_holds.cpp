#include "policies/predict/pipeline/rank_holds.h"

#include <algorithm>

namespace rematch {
namespace {

// Adds what the micro-batches of one stage hold.
void add_micro_batches(const StageHolds& holds, const HeldByStage& held, HolderBytes& sum) {
  sum[Holder::kSavedActivations] +=
      holds.in_flight * held.in_flight + holds.for_weights * held.for_weights;
}

Bytes gradients_of(const StageHolds& holds, const HeldByStage& held) {
  Bytes gradients;
  if (held.has_gradients) gradients += holds.gradients - holds.weight_gradients;
  if (held.has_weight_gradients) gradients += holds.weight_gradients;
  return gradients;
}

HolderBytes held_at(const PassMoment& moment, const std::vector<const StageHolds*>& stages) {
  HolderBytes sum;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    if (stages[stage] == nullptr) continue;
    const StageHolds& holds = *stages[stage];
    const HeldByStage& held = moment.held[stage];
    add_micro_batches(holds, held, sum);
    if (stage != moment.stage) {
      sum += holds.standing;
      sum[Holder::kGradients] += gradients_of(holds, held);
    } else if (held.has_gradients && !held.has_weight_gradients) {
      // The running stage counts all its gradients once it has some.
      sum[Holder::kGradients] -= holds.weight_gradients;
    }
  }
  return sum;
}

}  // namespace

HeldByOthers held_by_others(const std::vector<PassMoment>& moments,
                            const std::vector<const StageHolds*>& stages, std::size_t stage) {
  HeldByOthers most;
  for (const PassMoment& moment : moments) {
    if (moment.stage != stage) continue;
    const bool is_weights = moment.kind == StagePass::Kind::kWeights;
    HeldDuring& during = is_weights                                 ? most.weights
                         : moment.kind == StagePass::Kind::kForward ? most.forward
                                                                    : most.backward;
    const HeldByStage& own = moment.held[stage];
    const bool is_first = is_weights ? !own.has_weight_gradients : !own.has_gradients;
    std::optional<HolderBytes>& highest = is_first ? during.first : during.later;
    const HolderBytes held = held_at(moment, stages);
    if (!highest || held.total() > highest->total()) highest = held;
  }
  for (std::size_t other = 0; other < stages.size(); ++other) {
    if (other == stage || stages[other] == nullptr) continue;
    most.optimizer += stages[other]->standing;
    most.optimizer[Holder::kGradients] += stages[other]->gradients;
  }
  return most;
}

}  // namespace rematch
