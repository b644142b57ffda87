// Shared code of the subcommands that run points: the environment of child processes, the
// provenance of a report, and the exit code for its points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/cli/exit_code.h"
#include "harness/cli/flags/shared_flags.h"
#include "harness/run/run_request.h"
#include "policies/search/front/front.h"
#include "reports/record/report.h"

namespace rematch {

// Returns the request that `rematch search --measure` runs. It contains the front's baselines and
// the points with the indices `chosen`. Throws UsageError.
RunRequest request_of(const SearchFlags& flags, const std::string& device, const Front& front,
                      const std::vector<std::size_t>& chosen);

// Sets environment variables so that waiting threads of child processes do not spin. Spinning
// threads slow down steps on a busy machine. Call this before LibTorch runs.
void prepare_children();

Provenance make_provenance(const std::vector<std::string>& command, const std::string& device,
                           const std::string& allocator, std::uint64_t seed);

// Returns the folder in which a run keeps its finished points. The folder is next to the report.
// Empty if there is no report.
std::string points_folder_of(const std::string& output);

// Returns kOk, kSomePointsFailed, or kGateFailed if bits differ from the reference's.
ExitCode exit_code_of(const Report& report);

// Writes the report of an interrupted run to `output`, if `output` is given. Keeps an existing
// report that has at least as many points. Returns text to append to the status line, or "".
std::string keep_partial(const std::string& output, const Report& partial);

}  // namespace rematch
