// The flags of rematch search, for its parts.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "harness/cli/flags/measure_flags.h"
#include "harness/cli/flags/model_flags.h"

namespace rematch {

struct SearchFlags : MeasureFlags {
  explicit SearchFlags(CLI::App& app);

  ModelFlags model;
  std::string trace_file;
  std::string profile_file;
  std::string device;
  std::string doctor_file;
  std::string schedule = "on_demand";
  const CLI::Option* schedule_option = nullptr;  // whether it was given
  std::string target;                            // of --for; empty: rematch's engine
  std::string optimizer = "adamw";
  std::string budget;
  std::string free;               // beside parameters and optimizer state
  std::string activation_budget;  // beside those and gradients
  std::string max_slowdown;
  std::string maximize;
  std::string baselines;
  std::string links_file;  // measured links; empty: a data sheet's
  std::string link_rate;
  std::string output;
  int num_points = 16;
  int num_measured = 0;  // 0: nothing is run
  bool hull = false;
  bool offload = false;
  bool simple = false;
  bool json = false;
  bool fail_behind_baselines = false;
};

}  // namespace rematch
