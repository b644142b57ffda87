#include "harness/sweep/shard.h"

#include <charconv>
#include <filesystem>

namespace rematch {
namespace {

constexpr int kMostShards = 1'000'000;

// A number from 0 that is all of `text`.
std::optional<int> number_in(std::string_view text) {
  int number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && rest == text.data() + text.size();
  if (!whole || number < 0 || number > kMostShards) return std::nullopt;
  return number;
}

std::optional<int> number_of(const Variable& variable, const char* name) {
  const char* text = variable(name);
  return text == nullptr ? std::nullopt : number_in(text);
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
      "' is no shard; give INDEX/COUNT with the index from 0 and below the count, such as 0/4");
  return Rejected{std::move(message)};
}

std::variant<std::optional<Shard>, Rejected> shard_of_slurm(const Variable& variable) {
  const char* task = variable("SLURM_ARRAY_TASK_ID");
  const char* tasks = variable("SLURM_ARRAY_TASK_COUNT");
  if (task == nullptr || tasks == nullptr) return std::optional<Shard>();
  const std::optional<int> id = number_in(task);
  const std::optional<int> count = number_in(tasks);
  const int first = number_of(variable, "SLURM_ARRAY_TASK_MIN").value_or(0);
  const int step = number_of(variable, "SLURM_ARRAY_TASK_STEP").value_or(1);
  const bool usable = id && count && *count > 0 && step > 0 && *id >= first;
  if (usable) {
    const int last = number_of(variable, "SLURM_ARRAY_TASK_MAX").value_or(*id);
    const int offset = *id - first;
    const bool even =
        offset % step == 0 && offset / step < *count && (last - first) / step < *count;
    if (even) return std::optional<Shard>(Shard{offset / step, *count});
  }
  return Rejected{std::string("the job array's task ") + task + " of " + tasks +
                  " tasks is no evenly spaced index, so its shard is not known; give --shard "
                  "INDEX/COUNT, or --shard 0/1 for everything"};
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
