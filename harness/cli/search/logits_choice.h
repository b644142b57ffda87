// The choice that a search makes for the loss of a language model with fused ops: backward computes
// the logits again, or forward keeps them. Kept logits take memory while the loss runs, and save a
// matmul.
#pragma once

#include <optional>
#include <string>

#include "harness/cli/flags/shared_flags.h"
#include "policies/search/front/front_json.h"

namespace rematch {

// Returns the flags of the same search with kept logits. Absent if the search has no choice: the
// model has no fused loss, or the flags decide. Also absent if the times cannot tell the two apart:
// a data sheet without measured ceilings prices every backward as twice its forward.
std::optional<SearchFlags> with_kept_logits(const SearchFlags& flags);

// Whether the search with kept logits has the better plan: only there a plan fits, or its answer is
// faster. A search without a question is judged by its fastest plan that fits.
bool is_better_with_kept_logits(const FrontRecord& kept, const FrontRecord& recomputed);

// Says what was chosen, and what the other choice would give.
std::string words_of_logits(const FrontRecord& kept, const FrontRecord& recomputed);

}  // namespace rematch
