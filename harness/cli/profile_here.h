// A profile measured on this machine: what `profile` and `search` run where no data sheet is named.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "harness/cli/exit_code.h"
#include "models/preset/preset.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// Devices that are measured, not computed: "cpu", "cuda".
bool is_measured_device(const std::string& device);

// UsageError in one line unless `device` can be measured here: this build, its driver, a device.
// `command` is what the user typed: "profile --device cuda".
void require_measured_device(const std::string& device, const std::string& command);

struct ProfileSettings {
  ModelSpec model;
  std::string device;
  std::string optimizer;
  int num_threads = 0;  // 0: LibTorch's own choice
  int num_steps = 0;
  bool force = false;  // also what the machine has no memory for
};

// `trace` is the model's. Throws UsageError, before anything runs, if a step that keeps everything
// does not fit into the memory that there is.
Profile profile_here(const ProfileSettings& settings, const Trace& trace);

// rematch profile --links: starts ranks that measure collectives and copies.

struct LinksSettings {
  std::map<std::string, std::int64_t> layout;
  std::string device;
  int num_steps = 0;
  std::string output;  // empty: stdout
};

// Kilobytes to megabytes of each kind, in seconds. Says in lines on stderr what was measured.
// Throws UsageError for a device or a layout that cannot be measured here; kSomePointsFailed if a
// rank fails, with its name.
ExitCode profile_links(const LinksSettings& settings);

}  // namespace rematch
