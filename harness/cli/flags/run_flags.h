// The flags of `run`, as typed.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/cli/flags/model_flags.h"

namespace rematch {

// --shard slurm: the share of this task of a job array.
inline constexpr const char* kSlurmShard = "slurm";

struct RunFlags {
  explicit RunFlags(CLI::App& app);

  ModelFlags model;
  std::string policies;
  std::vector<std::string> plan_files;
  std::string schedule = "on_demand";
  std::string device = "cpu";
  std::string card;
  std::string attention;
  std::string allocator;
  int num_steps = 10;
  std::string rounds = "4:8";
  std::string precision = "2%";
  std::string optimizer = "adamw";
  std::string data_file;
  std::int64_t seed = 0;
  int num_threads = 0;
  std::optional<int> pretend_rank;
  std::string reference = "none";
  int num_repeats = 0;
  std::string timeout = "10min";
  int num_retries = 1;
  std::string shard = "0/1";
  bool deterministic_times = false;
  bool allow_no_effect = false;
  bool force = false;
  bool fresh = false;
  std::string snapshot;
  std::string output;
  bool json = false;
};

}  // namespace rematch
