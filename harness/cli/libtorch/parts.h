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

// Runs the hidden subcommand of child processes. It uses no parser, so that children start sooner.
// `command` is argv. Returns false if `command` is not the hidden subcommand.
bool answer_as_child(const std::vector<std::string>& command);

// Call this first in a command that times ops in its own process. OpenMP is loaded before main(),
// and reads at that time how idle threads wait. So the program restarts itself with OMP_WAIT_POLICY
// set, unless the variable is already set. `arguments` is argv.
void prepare_timing(char** arguments);

ExitCode run_points(const RunFlags& flags);
ExitCode predict_model(const PredictFlags& flags);
ExitCode doctor(bool json);

// Returns the memory of the device. Absent if the memory is unknown on this machine.
std::optional<AvailableMemory> memory_limit(const std::string& device);

// Returns the GPUs of this machine that this program can use, under their driver's names.
std::vector<std::string> cards_here();

// Throws UsageError if search --measure cannot measure here. Reasons: the build has no LibTorch,
// the times are those of another device, or the trace comes without its model.
void require_measurable(const SearchFlags& flags);

// Runs search --measure: runs the chosen points of a front and its baselines as rematch run does.
// Fills the measured figures of `record`'s front. Returns kOk, kSomePointsFailed, or kGateFailed if
// bits differ from the reference's. Throws Interrupted; its message says what is kept of the runs.
ExitCode measure_front(const SearchFlags& flags, FrontRecord& record);

// Returns whether rematch measures on this device ("cpu", "cuda"). All other devices are data
// sheets.
inline bool is_measured_device(const std::string& device) {
  return device == "cpu" || device == "cuda" || device == "cuda-dry" || device.starts_with("cuda:");
}

// Throws UsageError, in one line, unless this build and its driver can measure `device` here.
// `command` is what the user typed, such as "profile --device cuda".
void require_measured_device(const std::string& device, const std::string& command);

struct ProfileSettings {
  ModelSpec model;
  std::string device;
  std::string optimizer;
  int num_threads = 0;  // LibTorch chooses the number if this is 0
  int num_steps = 0;
  bool force = false;     // whether to run even if the predicted peak exceeds the machine's memory
  std::string attention;  // see run's --attention, whose default is used if this is empty
  bool deterministic_times = false;  // see run's flag of the same name
};

// Measures a profile on this machine. `trace` is the model's. Throws UsageError, before anything
// runs, if a step that keeps everything does not fit into memory.
Profile profile_here(const ProfileSettings& settings, const Trace& trace);

// Runs rematch profile --links. Starts ranks that measure collectives and copies of kilobytes to
// megabytes, which takes seconds. Prints a summary to stderr. If `output` is empty, writes to
// stdout. Throws UsageError for a device or layout that cannot be measured here. If a rank fails,
// names the rank and returns kSomePointsFailed.
ExitCode profile_links(const std::map<std::string, std::int64_t>& layout, const std::string& device,
                       int num_steps, const std::string& output);

}  // namespace rematch
