// Implements rematch profile, which measures op times on this machine. In a build without LibTorch,
// without_libtorch.cpp implements it instead.
#pragma once

#include <string>

#include "models/preset/preset.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// Throws UsageError, in one line, if this build or this machine's driver cannot measure `device`.
// `command` is what the user typed, such as "profile --device cuda".
void require_measured_device(const std::string& device, const std::string& command);

struct ProfileSettings {
  ModelSpec model;
  std::string device;
  std::string optimizer;
  int num_threads = 0;  // if 0, LibTorch chooses the number of threads
  int num_steps = 0;
  bool force = false;     // whether to run even if the predicted peak exceeds the machine's memory
  std::string attention;  // value of --attention; if empty, the default of rematch run
  bool deterministic_times = false;  // value of --deterministic-times, as in rematch run
};

// Measures a profile on this machine. `trace` is the trace of the model. Throws UsageError, before
// anything runs, if a step that keeps all activations does not fit into memory.
Profile profile_here(const ProfileSettings& settings, const Trace& trace);

// Returns whether rematch can measure on this device, such as "cpu" or "cuda". Any other name is
// the name of a data sheet.
inline bool is_measured_device(const std::string& device) {
  return device == "cpu" || device == "cuda" || device == "cuda-dry" || device.starts_with("cuda:");
}

}  // namespace rematch
