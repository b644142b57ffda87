#include "harness/run/shard.h"

#include <cstdint>
#include <filesystem>

#include "policies/base/text.h"

namespace rematch {
namespace {

constexpr int kMaxShards = 1'000'000;

// Parses a number of at least 0. Absent if `text` contains anything else.
std::optional<int> number_in(std::string_view text) {
  const auto number = parse_number<int>(text);
  return number && *number >= 0 && *number <= kMaxShards ? number : std::nullopt;
}

std::optional<int> number_of(const Variable& variable, const char* name) {
  const char* text = variable(name);
  return text == nullptr ? std::nullopt : number_in(text);
}

// The variables of a Slurm job array. If some tasks of an array are resubmitted, they have the
// variables of a smaller array.
struct JobArray {
  int first = 0;
  int last = 0;
  int step = 1;
  int count = 0;
};

std::optional<JobArray> job_array(const Variable& variable) {
  const auto first = number_of(variable, "SLURM_ARRAY_TASK_MIN");
  const auto last = number_of(variable, "SLURM_ARRAY_TASK_MAX");
  const auto count = number_of(variable, "SLURM_ARRAY_TASK_COUNT");
  const int step = number_of(variable, "SLURM_ARRAY_TASK_STEP").value_or(1);
  if (!first || !last || !count || step < 1) return std::nullopt;
  return JobArray{*first, *last, step, *count};
}

// Returns why the share of task `id` is ambiguous, or "" if the share is clear. Assumes that a
// complete array begins at 0 or 1.
std::string why_open(const JobArray& array, int id) {
  if (array.count == 1) {
    return "has only this task, so it may be a rerun of part of a larger array";
  }
  if (array.first > 1) {
    return "begins at " + std::to_string(array.first) +
           ", so it may be a rerun of part of a larger array";
  }
  const std::int64_t span = std::int64_t{array.count - 1} * array.step;
  const int offset = id - array.first;
  if (array.last - array.first != span || offset < 0 || offset > span || offset % array.step != 0) {
    return "of " + std::to_string(array.count) + " tasks has unevenly spaced task numbers";
  }
  return "";
}

}  // namespace

std::variant<Shard, Rejected> parse_shard(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    const std::optional<int> index = number_in(text.substr(0, slash));
    const std::optional<int> count = number_in(text.substr(slash + 1));
    if (index && count && *index < *count) return Shard{*index, *count};
  }
  std::string message = "'";
  message.append(text).append(
      "' is not a shard; give INDEX/COUNT with 0 <= INDEX < COUNT, such as 0/4; in a task of a "
      "Slurm job array, --shard slurm runs the share of that task");
  return Rejected{std::move(message)};
}

std::variant<Shard, Rejected> shard_of_slurm(const Variable& variable) {
  const char* task = variable("SLURM_ARRAY_TASK_ID");
  if (task == nullptr) {
    return Rejected{
        "--shard slurm requires a task of a job array, but SLURM_ARRAY_TASK_ID is not set; start "
        "the run with sbatch --array, give --shard INDEX/COUNT, or omit --shard to run everything"};
  }
  const std::optional<JobArray> array = job_array(variable);
  const std::optional<int> id = number_in(task);
  const std::string open =
      array && id ? why_open(*array, *id) : "does not say how its tasks are numbered";
  if (open.empty()) return Shard{(*id - array->first) / array->step, array->count};
  return Rejected{std::string("task ") + task +
                  "'s share of the points is not known: its job array " + open +
                  "; give --shard INDEX/COUNT, counted from 0 over the whole array, or "
                  "--shard 0/1 to run everything"};
}

bool takes(const Shard& shard, std::size_t point) {
  return point % static_cast<std::size_t>(shard.count) == static_cast<std::size_t>(shard.index);
}

std::string file_of_shard(const std::string& file, const Shard& shard) {
  if (shard.count == 1 || file.empty()) return file;
  const std::filesystem::path path(file);
  const std::string share =
      ".shard-" + std::to_string(shard.index) + "-of-" + std::to_string(shard.count);
  return (path.parent_path() / (path.stem().string() + share + path.extension().string())).string();
}

}  // namespace rematch
