// The flags of `run`, as typed.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "harness/cli/flags/measure_flags.h"
#include "harness/cli/flags/model_flags.h"

namespace rematch {

// --shard slurm: the share of this task of a job array.
inline constexpr const char* kSlurmShard = "slurm";

struct RunFlags : PolicyFlags, MeasureFlags {
  explicit RunFlags(CLI::App& app);

  ModelFlags model;
  std::string schedule = "on_demand";
  std::string device = "cpu";
  std::string card;
  std::string attention;
  std::string allocator;
  std::string optimizer = "adamw";
  std::string data_file;
  std::optional<int> pretend_rank;
  std::string reference = "none";
  int num_repeats = 0;
  std::string shard = "0/1";
  bool deterministic_times = false;
  std::string snapshot;
  std::string output;
  bool json = false;
};

}  // namespace rematch
