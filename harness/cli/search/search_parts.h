// The parts of rematch search around the search itself: what it may use, what follows the front,
// advice, and --maximize.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/cli/exit_code.h"
#include "harness/cli/flags/shared_flags.h"
#include "policies/base/bytes.h"
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

// Sets what is reserved of the device's memory, as --reserve says or as usual, and takes --reserve
// off the budget. Throws UsageError if nothing is left.
void take_reserve(const SearchFlags& flags, const Trace& trace, FrontRecord& record);

// Communicators of one rank of the record's step.
int communicators_of(const Trace& trace, int world);

// The memory of the GPU that `rematch doctor --json` found, from the file of --doctor; nothing
// without that flag. Throws UsageError: the file has no GPU, or one that --device does not name.
std::optional<Bytes> memory_by_doctor(const SearchFlags& flags);

// That GPU's name, as its driver gives it; empty without the flag.
std::string doctor_card(const SearchFlags& flags);

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

// Advice, found by trying: what would fit where no plan does, and other dtypes and ops. Everything
// recomputed is the measure, so that what is said to fit does.

// One line: "no plan fits h100's 79.1 GiB, the lowest peak is 121 GiB; what fits: --world 2 (65.0
// GiB a rank)".
std::string no_plan_fits(const SearchFlags& flags, const Trace& trace, const FrontRecord& record,
                         Bytes limit, Bytes lowest);

// Each claims only what a prediction made here says, or what the flags leave at their default.
std::vector<std::string> search_hints(const SearchFlags& flags, const FrontRecord& record);

// The plan of a search that every trainer can express, beside its front.

// The memory that a search may use: the budget, else the device's memory. Nothing where a slowdown
// was asked about, and where no memory is known.
std::optional<Bytes> limit_of(const FrontRecord& record);

// For what the record asks, or where it asks nothing for the peak of the knee. The record's front
// is that of `exact`. An interrupted search has none.
std::optional<SimplePoint> find_simple(const Trace& trace, const Profile& profile,
                                       const SearchSpace& space, const FrontRecord& record,
                                       FrontSearch& exact);

// --for torch: a search of plans that torch.utils.checkpoint can run.

// Throws UsageError for another target, and for a schedule that torch does not have.
bool is_for_torch(const SearchFlags& flags);

void keep_to_torch(SearchSpace& space);

// A baseline can be the answer, so those that torch cannot run are none of such a search.
std::vector<Plan> runnable_by_torch(const Trace& trace, std::vector<Plan> baselines);

// --maximize: which batch size, or number of tokens, makes the most tokens a second within a
// budget, and under which plan.

// `measured_memory`: what doctor found on the device; if none, the device's sheet says. Throws
// UsageError.
ExitCode maximize(const SearchFlags& flags, const SearchSpace& space,
                  std::optional<Bytes> measured_memory);

}  // namespace rematch
