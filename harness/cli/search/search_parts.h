// The parts of rematch search around the search itself: its memory limit, offload and link flags,
// advice, the simple plan, --for torch, and --maximize.
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

// Throws UsageError for a size without a unit, for two sizes, and for a size together with
// --max-slowdown. The sizes are --budget (all memory), --free and --activation-budget.
void require_one_budget(const SearchFlags& flags);

// Turns --free or --activation-budget into the record's budget, and prints the sum to stderr. Adds
// the parameters and optimizer state of one rank of --world. For --activation-budget, also adds its
// gradients.
void take_free_memory(const SearchFlags& flags, const SearchSpace& space, const Trace& trace,
                      FrontRecord& record);

// Sets the reserve of the device's memory: --reserve, or the usual one. Subtracts --reserve from
// the budget. Throws UsageError if nothing is left.
void take_reserve(const SearchFlags& flags, const Trace& trace, FrontRecord& record);

// Returns the number of communicators of one rank.
int communicators_of(const Trace& trace, int world);

// Returns the memory of the GPU in the file of --doctor, which `rematch doctor --json` wrote.
// Absent without that flag. Throws UsageError if the file has no GPU, or not the GPU that --device
// names.
std::optional<Bytes> memory_by_doctor(const SearchFlags& flags);

// Returns the driver's name for the GPU in --doctor's file. Empty without --doctor.
std::string doctor_card(const SearchFlags& flags);

// Throws UsageError if the flags of --offload conflict.
void require_offload_flags(const SearchFlags& flags);

// Throws UsageError if the flags of --links conflict. Warns on stderr if the links were measured on
// another device.
void require_link_flags(const SearchFlags& flags);

// Returns op times from the data sheet of --device. If --links is given, takes the times of
// collectives from it. Throws UsageError if the links are for other ranks than the trace.
Profile sheet_times(const SearchFlags& flags, const Trace& trace);

// Sets the link to the host from --links, --link-rate or the data sheet of `device`. Throws
// UsageError if there is none. Has no effect without --offload.
void add_host_link(const SearchFlags& flags, const std::string& device, SearchSpace& space);

// If no plan fits, suggests in one line what would fit. For example "no plan fits h100's 79.1 GiB,
// the lowest peak is 121 GiB; what fits: --world 2 (65.0 GiB a rank)". Each suggestion is tried
// with everything recomputed, so that a suggested setting does fit.
std::string no_plan_fits(const SearchFlags& flags, const Trace& trace, const FrontRecord& record,
                         Bytes limit, Bytes lowest);

// Suggests other flags, such as a dtype or fused ops. Each hint states only what was predicted here
// or which flags have their default value.
std::vector<std::string> search_hints(const SearchFlags& flags, const FrontRecord& record);

// Returns the memory that a search may use: the budget, else the device's memory for tensors.
// Absent if --max-slowdown was given or no memory is known.
std::optional<Bytes> limit_of(const FrontRecord& record);

// Finds the best plan that every trainer can express, to show next to the front. It is the plan
// with the lowest peak within --max-slowdown, else the fastest plan within limit_of(), else the
// fastest plan within the peak of the knee. If none fits, returns the plan with the lowest peak.
// `exact` is the search that made the record's front. Absent if the search was interrupted.
std::optional<SimplePoint> find_simple(const Trace& trace, const Profile& profile,
                                       const SearchSpace& space, const FrontRecord& record,
                                       FrontSearch& exact);

// Returns whether --for torch asks for plans that torch.utils.checkpoint can run. Throws UsageError
// for another target, and for a schedule that torch does not have.
bool is_for_torch(const SearchFlags& flags);

void keep_to_torch(SearchSpace& space);

// Drops baselines that torch cannot run, because a baseline may be returned as the answer.
std::vector<Plan> runnable_by_torch(const Trace& trace, std::vector<Plan> baselines);

// Runs --maximize: finds the batch size or number of tokens with the most tokens per second within
// a budget, and the plan for it. `measured_memory` is the memory that doctor found. Without it, the
// device's data sheet decides. Throws UsageError.
ExitCode maximize(const SearchFlags& flags, const SearchSpace& space,
                  std::optional<Bytes> measured_memory);

}  // namespace rematch
