// How much memory a search may use. --budget says all of it, --free and --activation-budget what is
// left beside what every plan holds, and --doctor what the device has.
#pragma once

#include <optional>

#include "harness/cli/flags/search_flags.h"
#include "policies/search/front/front.h"
#include "policies/search/front/front_json.h"
#include "policies/trace/trace.h"

namespace rematch {

// Throws UsageError for a size without a unit, for two of them, and beside --max-slowdown.
void require_one_budget(const SearchFlags& flags);

// Turns --free and --activation-budget into the record's budget, and says on stderr what of. What
// one rank of --world holds between two steps is added, and for --activation-budget its gradients.
void take_free_memory(const SearchFlags& flags, const SearchSpace& space, const Trace& trace,
                      FrontRecord& record);

// The memory of the GPU that `rematch doctor --json` found, from the file of --doctor; nothing
// without that flag. Throws UsageError: the file has no GPU, or one that --device does not name.
std::optional<Bytes> memory_by_doctor(const SearchFlags& flags);

}  // namespace rematch
