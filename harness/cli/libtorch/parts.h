// The parts of commands that need LibTorch. CMake links either the other sources of this folder or
// without_libtorch.cpp. The latter rejects every call with one line, including record_trace().
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/cli/exit_code.h"
#include "harness/measure/machine_memory.h"
#include "models/preset/preset.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

struct PredictFlags;
struct RunFlags;
struct SearchFlags;
struct FrontRecord;

bool has_libtorch();

// Runs the hidden subcommand of child processes. It uses no parser, so that they start sooner.
// `command` is argv. Returns false if it is another command.
bool answer_as_child(const std::vector<std::string>& command);

// Call it first in a command that times ops in its own process. OpenMP reads how idle threads wait
// when it is loaded, which is before main(). So the program restarts itself with OMP_WAIT_POLICY
// set, unless it is already set. `arguments` is argv.
void prepare_timing(char** arguments);

ExitCode run_points(const RunFlags& flags);
ExitCode predict_model(const PredictFlags& flags);
ExitCode doctor(bool json);

// Returns the memory that the device has. Absent if it is unknown here.
std::optional<AvailableMemory> memory_limit(const std::string& device);

// Returns the GPUs of this machine that this program can use, by their driver's names.
std::vector<std::string> cards_here();

// Throws UsageError if search --measure cannot measure here: no LibTorch, times of another device,
// or a trace without its model.
void require_measurable(const SearchFlags& flags);

// Runs search --measure: runs the chosen points of a front and its baselines as rematch run does.
// Fills the measured figures of `record`'s front. Returns kOk, kSomePointsFailed, or kGateFailed if
// bits differ from the reference's. Throws Interrupted, which says what is kept of the runs.
ExitCode measure_front(const SearchFlags& flags, FrontRecord& record);

// Returns whether the device is measured ("cpu", "cuda"). The others are data sheets.
inline bool is_measured_device(const std::string& device) {
  return device == "cpu" || device == "cuda" || device == "cuda-dry" || device.starts_with("cuda:");
}

// Throws UsageError, in one line, unless this build, its driver and a device can measure `device`
// here. `command` is what the user typed: "profile --device cuda".
void require_measured_device(const std::string& device, const std::string& command);

struct ProfileSettings {
  ModelSpec model;
  std::string device;
  std::string optimizer;
  int num_threads = 0;  // 0: LibTorch's own choice
  int num_steps = 0;
  bool force = false;                // runs even if the predicted peak exceeds the machine's memory
  std::string attention;             // see run's --attention; empty: its default
  bool deterministic_times = false;  // see run's flag of the same name
};

// Measures a profile on this machine. `trace` is the model's. Throws UsageError, before anything
// runs, if a step that keeps everything does not fit into memory.
Profile profile_here(const ProfileSettings& settings, const Trace& trace);

// Runs rematch profile --links: starts ranks that measure collectives and copies of kilobytes to
// megabytes, for seconds. Prints a summary to stderr. An empty `output` writes to stdout. Throws
// UsageError for a device or layout that cannot be measured here. Returns kSomePointsFailed, naming
// the rank, if a rank fails.
ExitCode profile_links(const std::map<std::string, std::int64_t>& layout, const std::string& device,
                       int num_steps, const std::string& output);

}  // namespace rematch
