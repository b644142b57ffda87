// What a search may use: the device's memory, and the host's over the link.
#pragma once

#include <optional>
#include <string>

#include "harness/cli/flags/shared_flags.h"
#include "policies/search/front/front.h"
#include "policies/search/front/front_json.h"
#include "policies/search/region/span_options.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// How much memory a search may use. --budget says all of it, --free and --activation-budget what is
// left beside what every plan holds, and --doctor what the device has.

// Throws UsageError for a size without a unit, for two of them, and beside --max-slowdown.
void require_one_budget(const SearchFlags& flags);

// Turns --free and --activation-budget into the record's budget, and says on stderr what of. What
// one rank of --world holds between two steps is added, and for --activation-budget its gradients.
void take_free_memory(const SearchFlags& flags, const SearchSpace& space, const Trace& trace,
                      FrontRecord& record);

// The memory of the GPU that `rematch doctor --json` found, from the file of --doctor; nothing
// without that flag. Throws UsageError: the file has no GPU, or one that --device does not name.
std::optional<Bytes> memory_by_doctor(const SearchFlags& flags);

// --offload and --links of rematch search.

// Throws UsageError for flags that do not go together.
void require_offload_flags(const SearchFlags& flags);

// The same for --links. Says on stderr where they were measured on another device.
void require_link_flags(const SearchFlags& flags);

// Times by the data sheet of --device, those of collectives by --links if it is given. Throws
// UsageError where the links are of other ranks than the trace's.
Profile sheet_times(const SearchFlags& flags, const Trace& trace);

// The link that --link-rate or --links gives, or else the data sheet of `device`. Throws UsageError
// where there is neither. Does nothing without --offload.
void add_host_link(const SearchFlags& flags, const std::string& device, SearchSpace& space);

}  // namespace rematch
