// The text of a script that starts workers: on this machine, or as a Slurm job array that survives
// requeue, preemption, crashes of nodes and its own time limit. Pure.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace rematch {

struct JobScript {
  std::string program;  // of rematch, as the nodes see it
  std::string folder;   // of the sweep, the same
  std::string name;     // of the job
  int num_workers = 1;
  // Slurm's alone:
  std::chrono::minutes time{};       // limit of one task
  std::string gres;                  // "gpu:h100:1"; empty: none is asked for
  int num_cpus = 8;                  // of a task
  std::vector<std::string> options;  // "partition=gpu"
  std::string prefix;                // stands before the program: a container, srun
};

// The part of its task's time limit that a worker may use: Slurm's signal that the limit is near
// comes up to a minute early, and the last comparison is to be stopped in order. Below zero: the
// limit is too short.
std::chrono::seconds worker_time(std::chrono::minutes limit);

std::string slurm_script(const JobScript& job);
std::string local_script(const JobScript& job);

// In single quotes where a shell needs them.
std::string shell_word(const std::string& text);

// "45", "90:00", "12:00:00", "2-00:00:00", as Slurm writes limits. Below zero: UNLIMITED, or none.
std::chrono::minutes slurm_minutes(const std::string& text);

}  // namespace rematch
