// The parts of commands that need LibTorch. CMake links one of two sets of sources: the others
// of this folder, or without_libtorch.cpp, which refuses in one line. So is record_trace().
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

// The hidden subcommand of child processes: no parser, so that they start sooner. False: `command`,
// which is argv, is another.
bool answer_as_child(const std::vector<std::string>& command);

// Before anything else of a command that times ops in this very process. OpenMP reads how idle
// threads wait when it is loaded, which is before main: so the program starts once more, unless the
// variable is set already. `arguments` is argv.
void prepare_timing(char** arguments);

ExitCode run_points(const RunFlags& flags);
ExitCode predict_model(const PredictFlags& flags);
ExitCode doctor(bool json);

// The memory that the device has; nothing if that is not known here.
std::optional<AvailableMemory> memory_limit(const std::string& device);

// The GPUs of this machine that this program can use, as their driver names them.
std::vector<std::string> cards_here();

// rematch search --measure: runs chosen points of a front and its baselines as rematch run does.

// Throws UsageError where what the flags say cannot be measured here: no LibTorch, times of another
// device, a trace without its model.
void require_measurable(const SearchFlags& flags);

// Fills the measured figures of `record`'s front. Ok, or some points failed, or bits differ from
// the reference's. Throws Interrupted, which says what is kept of the runs.
ExitCode measure_front(const SearchFlags& flags, FrontRecord& record);

// A profile measured on this machine: what `profile` and `search` run where no data sheet is named.

// Devices that are measured, not computed: "cpu", "cuda".
inline bool is_measured_device(const std::string& device) {
  return device == "cpu" || device == "cuda" || device == "cuda-dry" || device.starts_with("cuda:");
}

// UsageError in one line unless `device` can be measured here: this build, its driver, a device.
// `command` is what the user typed: "profile --device cuda".
void require_measured_device(const std::string& device, const std::string& command);

struct ProfileSettings {
  ModelSpec model;
  std::string device;
  std::string optimizer;
  int num_threads = 0;  // 0: LibTorch's own choice
  int num_steps = 0;
  bool force = false;                // also what the machine has no memory for
  std::string attention;             // as run's --attention; empty: its default
  bool deterministic_times = false;  // as run's
};

// `trace` is the model's. Throws UsageError, before anything runs, if a step that keeps everything
// does not fit into the memory that there is.
Profile profile_here(const ProfileSettings& settings, const Trace& trace);

// rematch profile --links: starts ranks that measure collectives and copies.

// Kilobytes to megabytes of each kind, in seconds. Says in lines on stderr what was measured.
// Throws UsageError for a device or a layout that cannot be measured here; kSomePointsFailed if a
// rank fails, with its name. `output` empty: to stdout.
ExitCode profile_links(const std::map<std::string, std::int64_t>& layout, const std::string& device,
                       int num_steps, const std::string& output);

}  // namespace rematch
