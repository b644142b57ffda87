// Shared by all subcommands that run points: values of their flags, the environment of child
// processes, where a report comes from, and the exit code for its points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/cli/exit_code.h"
#include "harness/cli/flags/shared_flags.h"
#include "harness/run/comparison.h"
#include "harness/training/optimizer.h"
#include "policies/search/front/front.h"
#include "reports/record/report.h"

namespace rematch {

// Throws UsageError.
OptimizerChoice parse_optimizer(const std::string& text);

// Sets steps, rounds, seed and child processes as the flags say. Throws UsageError.
void measure_by(const MeasureFlags& flags, ComparisonSettings& settings);

// Device, rounding of sizes, and allocator; empty: as the environment says. Throws UsageError.
void run_on(const std::string& device, const std::string& allocator, VariantSettings& settings);

// Which attention runs, who chooses it for times, and with which kernels steps are timed. The
// settings have device and model already. Throws UsageError.
void choose_kernels(const KernelFlags& flags, VariantSettings& settings);

// What `rematch run` measures. Throws UsageError.
ComparisonSettings settings_of(const RunFlags& flags);

// What `rematch search --measure` does: the `chosen` points of `front` and its baselines, on the
// device that the front's times are of. Throws UsageError.
ComparisonSettings settings_of(const SearchFlags& flags, const std::string& device,
                               const Front& front, const std::vector<std::size_t>& chosen);

// Variables that children inherit; before anything of LibTorch runs. Threads that spin while they
// wait make a step several times as long on a machine that does something else besides (seen: 0.35
// s became 1 to 10 s).
void prepare_children();

// As typed, quoted where a shell needs it; `command` is argv.
std::string shell_line(const std::vector<std::string>& command);

Provenance make_provenance(const std::vector<std::string>& command, const std::string& device,
                           const std::string& allocator, std::uint64_t seed);

// The folder beside a report that keeps finished points; empty if there is no report.
std::string points_folder_of(const std::string& output);

// Ok, some points failed, or bits differ from the reference's.
ExitCode exit_code_of(const Report& report);

// The report of an interrupted run.

// Writes it where the whole report would be, so that it can be merged and compared; a report of as
// many points that is there stays. `output` empty: nothing is written. Returns what is to be said
// of it behind a line, empty for nothing.
std::string keep_partial(const std::string& output, const Report& partial);

}  // namespace rematch
