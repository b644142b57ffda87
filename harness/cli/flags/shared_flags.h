// Groups of flags that several commands share. Each value is stored as the user typed it, because a
// sweep passes it on to rematch run.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/cli/files/output_file.h"
#include "harness/cli/flags/flag_values.h"
#include "harness/cli/flags/model_flags.h"
#include "policies/base/json_fwd.h"
#include "policies/trace/profile.h"
#include "reports/render/tables/grid.h"

namespace rematch {

// The flags of a command that writes a file.
struct OutputFlags {
  std::string output;  // if empty, the command writes to stdout
  bool overwrite = false;

  void add_output_flags(CLI::App& app, const std::string& help);
  // Returns the request with which output_file.h checks the output. The file may be of any of
  // `kinds`.
  OutputRequest request(std::vector<std::string_view> kinds,
                        std::vector<std::string> inputs = {}) const;
};

// The flags of a command that prints its result as JSON or as a table, and may write it to a file.
struct RecordFlags : OutputFlags {
  bool json = false;
  bool markdown = false;

  void add_record_flags(CLI::App& app, const std::string& schema);
  // Throws UsageError if the flags ask for two formats on stdout.
  void require_one_format() const;
  void show_record(const std::function<Json()>& record,
                   const std::function<std::string(TableFormat)>& table) const;
};

// The flags that choose plans, for run and predict.
struct PolicyFlags {
  std::string policies;
  std::vector<std::string> plan_files;
  bool allow_no_effect = false;

  void add_policy_flags(CLI::App& app);
};

// The flags that say how points are measured, for run and search --measure.
struct MeasureFlags {
  int num_steps = 10;
  std::optional<int> num_timed_steps;
  bool in_process = false;
  std::string rounds = "4:8";
  std::string precision = "2%";
  std::int64_t seed = 0;
  int num_threads = 0;  // if 0, LibTorch chooses the number of threads
  std::string timeout = "10min";
  int num_retries = 1;
  bool fresh = false;
  bool force = false;

  // `when` precedes the description of each flag. For example "With --measure: ".
  void add_measure_flags(CLI::App& app, const std::string& when = "");
};

// The flags for the kernels of timed steps, for run, profile and search. All three commands must
// time the same kernels.
struct KernelFlags {
  std::string attention;
  bool deterministic_times = false;

  void add_kernel_flags(CLI::App& app, const std::string& when = "");
};

// Returns the names of all flags of the command, such as "--steps".
std::vector<std::string> flags_of(const CLI::App& command);

void add_threads(CLI::App& app, int& num_threads);
void add_force(CLI::App& app, bool& force);
void add_any_card(CLI::App& app, bool& any_card);

// Adds --reserve: memory of the card that tensors cannot use.
void add_reserve(CLI::App& app, std::string& reserve);
void add_ceilings(CLI::App& app, std::string& file);
// Returns nothing if the flag was not given. 0B is accepted. Throws UsageError.
std::optional<Bytes> parse_reserve(const std::string& text);
// Returns `memory` minus `reserve`. Throws UsageError if nothing is left.
Bytes memory_less_reserve(Bytes memory, Bytes reserve);

// The value of --shard with which each task of a Slurm job array measures its own share.
inline constexpr const char* kSlurmShard = "slurm";

struct RunFlags : PolicyFlags, MeasureFlags, KernelFlags, OutputFlags {
  explicit RunFlags(CLI::App& app);

  ModelFlags model;
  std::string schedule = kUsualSchedule;
  std::string device = "cpu";
  std::string card;
  bool cuda_graph = false;
  std::string allocator;
  std::string optimizer = "adamw";
  std::string data_file;
  std::optional<int> pretend_rank;
  std::string reference = "none";
  int num_repeats = 0;
  std::string shard = "0/1";
  bool times_only = false;
  std::string snapshot;
  bool json = false;
  std::vector<std::string> command;  // argv, which is written to the report
};

struct PredictFlags : PolicyFlags {
  explicit PredictFlags(CLI::App& app);

  ModelFlags model;
  std::string trace_file;
  std::string schedule = kUsualSchedule;
  std::string optimizer = "adamw";
  const CLI::Option* optimizer_option = nullptr;  // used to find out whether the flag was given
  bool round_512 = false;
  std::string device;
  std::string links_file;     // measured links; if empty, the links of a data sheet are used
  std::string ceilings_file;  // measured ceilings; if empty, the rates of a data sheet are used
  std::string profile_file;
  bool any_card = false;
  std::string reserve;  // if empty, the card's usual reserve is used
  bool json = false;
};

// Returns the op times to predict with. Absent if no flag names a source of times.
std::optional<Profile> profile_of(const PredictFlags& flags, const Trace& trace);

struct SearchFlags : MeasureFlags, KernelFlags, OutputFlags {
  explicit SearchFlags(CLI::App& app);

  ModelFlags model;
  std::string trace_file;
  std::string profile_file;
  bool any_card = false;
  std::string device;
  std::string doctor_file;
  std::string schedule = "on_demand";
  const CLI::Option* schedule_option = nullptr;  // used to find out whether the flag was given
  std::string target;  // value of --for; if empty, plans are for rematch's engine
  std::string optimizer = "adamw";
  std::string budget;
  std::string free;  // memory that remains after parameters and optimizer state
  std::string
      activation_budget;  // memory that remains after parameters, optimizer state and gradients
  std::string
      reserve;  // if empty: the usual reserve for a device's memory, no reserve for a budget
  std::string max_slowdown;
  std::string maximize;
  std::string baselines;
  std::string links_file;     // measured links; if empty, the links of a data sheet are used
  std::string ceilings_file;  // measured ceilings; if empty, the rates of a data sheet are used
  std::string link_rate;
  int num_points = 16;
  int num_measured = 0;  // number of points to run; if 0, no point is run
  bool hull = false;
  bool offload = false;
  bool simple = false;
  bool json = false;
  bool fail_behind_baselines = false;
  std::vector<std::string> command;  // argv, which is written to the reports of runs
};

}  // namespace rematch
