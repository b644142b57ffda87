// A search that no plan fits: what would fit, found by trying. Everything recomputed is the
// measure, so that what is said to fit does.
#pragma once

#include <optional>
#include <string>

#include "harness/cli/flags/shared_flags.h"
#include "policies/base/bytes.h"
#include "policies/search/front/front_json.h"
#include "policies/trace/trace.h"

namespace rematch {

// The peak of a step, or of a rank's, if everything is recomputed; nothing if the model has no
// blocks.
std::optional<Bytes> recomputed_peak(const Trace& trace, const FrontRecord& record);

// One line: "no plan fits h100's 79.1 GiB, the lowest peak is 121 GiB; what fits: --world 2 (65.0
// GiB a rank)".
std::string no_plan_fits(const SearchFlags& flags, const Trace& trace, const FrontRecord& record,
                         Bytes limit, Bytes lowest);

}  // namespace rematch
