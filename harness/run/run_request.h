// Describes what a run measures, as typed values: the model, policies and rounds that a user asked
// for. `rematch run` builds a request from its flags, `search --measure` from a front, and `sweep
// plan` from the arguments in its file. A request does not depend on LibTorch or on this machine:
// run_settings.h adds the settings that depend on the machine.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/run/shard.h"
#include "harness/run/timing/round_rule.h"
#include "harness/training/determinism.h"
#include "harness/training/optimizer_choice.h"
#include "models/preset/preset.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/plan/given_plan.h"
#include "policies/plan/policy.h"

namespace rematch {

struct RunRequest {
  ModelSpec model;
  // The policies to measure, including the reference.
  std::vector<Policy> policies;
  // Requested modes of other systems that have no equivalent policy. The report lists these modes
  // as refused.
  std::vector<RefusedPolicy> refused;
  std::vector<GivenPlan> plans;  // plans read from files, used unchanged
  // If empty, a plan file keeps the schedule for which it was searched, and other plans get
  // usual_schedule() of their policy.
  std::vector<Schedule> schedules;
  // The policy to which all other points are compared. If the run is split into shards, every shard
  // measures the reference, because times from different runs are not comparable.
  std::string reference = "none";
  int num_repeats = 0;  // additional runs of the reference, to measure the noise of its loss
  NoEffect no_effect = NoEffect::kReject;

  std::string device = "cpu";
  std::string allocator;  // if empty, the environment's setting
  std::string attention;  // if empty, the first backend that the device supports
  Determinism timed_as = Determinism::kFastest;
  // If true, timed steps replay one step that was captured into a CUDA graph.
  bool cuda_graph = false;
  OptimizerChoice optimizer;
  std::string data_file;  // if empty, the data shipped with the project
  std::uint64_t seed = 0;
  int num_threads = 0;  // if 0, LibTorch's default, divided by the number of ranks on this machine
  // The rank that one process simulates. If absent, all ranks of the model's layout run.
  std::optional<int> pretended_rank;
  Shard shard;  // the share of a split run that this command measures

  int num_steps = 10;                  // steps of each pass and each round
  std::optional<int> num_timed_steps;  // timed steps of a round; if absent, num_steps
  RoundRule rounds;                    // if `most` is 0, no times are measured
  bool times_only = false;  // skips the exact passes, so there are no op counts and no parity check
  // If true, times all points alternately in one process, and the control (the reference again) in
  // a fresh process. Each point must use a single rank.
  bool in_process = false;
  std::chrono::milliseconds timeout{std::chrono::minutes(10)};  // time limit of each child process
  int num_retries = 1;  // retries after a failure that may be unrelated to the point
  bool fresh = false;   // if true, ignores the finished points of an interrupted run
  bool force = false;   // if true, also runs points that are predicted not to fit
  // File for an allocator snapshot of the last point, or empty. The last point is then measured
  // even if an earlier run has already finished it.
  std::string snapshot_file;
};

// Returns whether the device has the name of a CUDA device, such as "cuda:1" or "cuda-dry".
inline bool is_on_cuda(const RunRequest& request) { return request.device.starts_with("cuda"); }

}  // namespace rematch
