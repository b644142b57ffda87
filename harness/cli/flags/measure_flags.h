// Flags that several subcommands share, as typed: which plans, for run and predict; how points are
// measured, for run and search --measure. A sweep hands its words on to run.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace rematch {

struct PolicyFlags {
  std::string policies;
  std::vector<std::string> plan_files;
  bool allow_no_effect = false;

  void add_policy_flags(CLI::App& app);
};

struct MeasureFlags {
  int num_steps = 10;
  std::string rounds = "4:8";
  std::string precision = "2%";
  std::int64_t seed = 0;
  int num_threads = 0;  // 0: LibTorch's choice
  std::string timeout = "10min";
  int num_retries = 1;
  bool fresh = false;
  bool force = false;

  // `when` stands before what each flag does: "With --measure: ".
  void add_measure_flags(CLI::App& app, const std::string& when = "");
};

void add_threads(CLI::App& app, int& num_threads);
void add_force(CLI::App& app, bool& force);

}  // namespace rematch
