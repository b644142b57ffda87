// The flags of `predict`, as typed.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "harness/cli/flags/measure_flags.h"
#include "harness/cli/flags/model_flags.h"
#include "policies/trace/profile.h"

namespace rematch {

struct PredictFlags : PolicyFlags {
  explicit PredictFlags(CLI::App& app);

  ModelFlags model;
  std::string trace_file;
  std::string schedule = "on_demand";
  const CLI::Option* schedule_option = nullptr;  // whether it was given
  std::string optimizer = "adamw";
  const CLI::Option* optimizer_option = nullptr;  // whether it was given
  bool round_512 = false;
  std::string device;
  std::string links_file;  // measured links; empty: a data sheet's
  std::string profile_file;
  bool json = false;
};

// The source of times; nothing if no flag names one.
std::optional<Profile> profile_of(const PredictFlags& flags, const Trace& trace);

}  // namespace rematch
