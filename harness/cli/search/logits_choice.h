// The choice that a search has for the loss of a language model with fused ops: backward computes
// the logits again, or forward keeps them. Kept logits take memory while the loss runs, and save a
// matmul.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "harness/cli/flags/shared_flags.h"
#include "policies/search/front/front_json.h"

namespace rematch {

// Words of a plan whose step keeps its logits.
inline constexpr std::string_view kKeepsLogits = "the loss keeps its logits";

// Returns the flags of the same search with kept logits. Absent if the search has no choice: the
// model has no fused loss, the flags decide, or a trainer that has no such loss runs the plan. Also
// absent if the times cannot tell the two apart: a data sheet without measured ceilings prices
// every backward as twice its forward, and a profile has the times of one of the two.
std::optional<SearchFlags> with_kept_logits(const SearchFlags& flags);

// Returns whether plans with kept logits differ from plans without. The fused loss keeps small
// logits in any case.
bool has_choice(const FrontRecord& kept, const FrontRecord& recomputed);

// Says how many points of a front keep the logits, and whether the answer does.
std::string words_of_logits(const FrontRecord& record);

}  // namespace rematch
