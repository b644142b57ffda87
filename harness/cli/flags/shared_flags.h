// Groups of flags that several commands share.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/cli/flags/model_flags.h"
#include "policies/base/json_fwd.h"
#include "policies/trace/profile.h"
#include "reports/render/tables/grid.h"

namespace rematch {

// A command that makes a record: as JSON or as a table on stdout, and in a file.
struct RecordFlags {
  bool json = false;
  bool markdown = false;
  std::string output;

  void add_record_flags(CLI::App& app, const std::string& schema);
  // Throws UsageError for two formats of stdout.
  void require_one_format() const;
  void show_record(const std::function<Json()>& record,
                   const std::function<std::string(TableFormat)>& table) const;
};

// Flags that several subcommands share, as typed: which plans, for run and predict; how points are
// measured, for run and search --measure. A sweep hands its words on to run.

struct PolicyFlags {
  std::string policies;
  std::vector<std::string> plan_files;
  bool allow_no_effect = false;

  void add_policy_flags(CLI::App& app);
};

struct MeasureFlags {
  int num_steps = 10;
  std::optional<int> num_timed_steps;
  bool in_process = false;
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

// The kernels of timed steps, for run, profile and search: what they time must be the same program.
struct KernelFlags {
  std::string attention;
  bool deterministic_times = false;

  void add_kernel_flags(CLI::App& app, const std::string& when = "");
};

// "--steps", of every flag that the command has.
std::vector<std::string> flags_of(const CLI::App& command);

void add_threads(CLI::App& app, int& num_threads);
void add_force(CLI::App& app, bool& force);
void add_any_card(CLI::App& app, bool& any_card);

// --reserve: memory of the card that tensors cannot have.
void add_reserve(CLI::App& app, std::string& reserve);
// Nothing if the flag was not given. 0B is a size here. Throws UsageError.
std::optional<Bytes> parse_reserve(const std::string& text);
// Returns what `reserve` leaves of `memory`. Throws UsageError if that is nothing.
Bytes memory_less_reserve(Bytes memory, Bytes reserve);

// --shard slurm: the share of this task of a job array.
inline constexpr const char* kSlurmShard = "slurm";

struct RunFlags : PolicyFlags, MeasureFlags, KernelFlags {
  explicit RunFlags(CLI::App& app);

  ModelFlags model;
  std::string schedule = "on_demand";
  std::string device = "cpu";
  std::string card;
  std::string allocator;
  std::string optimizer = "adamw";
  std::string data_file;
  std::optional<int> pretend_rank;
  std::string reference = "none";
  int num_repeats = 0;
  std::string shard = "0/1";
  bool times_only = false;
  std::string snapshot;
  std::string output;
  bool json = false;
  std::vector<std::string> command;  // argv: it goes into the report
};

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
  bool any_card = false;
  std::string reserve;  // empty: the card's usual one
  bool json = false;
};

// The source of times; nothing if no flag names one.
std::optional<Profile> profile_of(const PredictFlags& flags, const Trace& trace);

struct SearchFlags : MeasureFlags, KernelFlags {
  explicit SearchFlags(CLI::App& app);

  ModelFlags model;
  std::string trace_file;
  std::string profile_file;
  bool any_card = false;
  std::string device;
  std::string doctor_file;
  std::string schedule = "on_demand";
  const CLI::Option* schedule_option = nullptr;  // whether it was given
  std::string target;                            // of --for; empty: rematch's engine
  std::string optimizer = "adamw";
  std::string budget;
  std::string free;               // beside parameters and optimizer state
  std::string activation_budget;  // beside those and gradients
  std::string reserve;            // empty: of a device's memory its usual one, of a budget none
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
  std::vector<std::string> command;  // argv: it goes into the reports of runs
};

}  // namespace rematch
