// Generates a script that starts workers, on this machine or as a Slurm job array. The array
// survives requeue, preemption, node crashes and its own time limit. Pure.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace rematch {

struct JobScript {
  std::string program;  // path of rematch on the job's nodes
  std::string folder;   // path of the sweep's folder on the job's nodes
  std::string name;     // name of the job
  int num_workers = 1;
  // The following fields are only for Slurm.
  std::chrono::minutes time{};  // time limit of one task
  std::string
      gres;  // Slurm's generic resources, such as "gpu:h100:1"; if empty, the script requests none
  int num_cpus = 8;                  // number of cores per task
  std::vector<std::string> options;  // "partition=gpu"
  // words before the program, such as srun or a container's command
  std::string prefix;
};

// Returns the part of a task's time limit that a worker may use. Slurm's warning signal may come up
// to a minute early, and the last comparison needs time to stop cleanly. Negative if the limit is
// too short.
std::chrono::seconds worker_time(std::chrono::minutes limit);

std::string slurm_script(const JobScript& job);
std::string local_script(const JobScript& job);

// Adds single quotes if a shell needs them.
std::string shell_word(const std::string& text);
// Returns the command line that the user typed, quoted for a shell. `command` is argv.
std::string shell_line(const std::vector<std::string>& command);

// Parses Slurm's time limits, such as "45", "90:00", "12:00:00" or "2-00:00:00". Negative for
// UNLIMITED and for any other text.
std::chrono::minutes slurm_minutes(const std::string& text);

}  // namespace rematch
