// One share of a run of many points: the points that it measures and the file of its report. Shares
// communicate only through files (`rematch merge`), so any scheduler can start them. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "policies/base/rejected.h"

namespace rematch {

// Share `index` of `count` shares. The first index is 0.
struct Shard {
  int index = 0;
  int count = 1;
  bool operator==(const Shard&) const = default;
};

// Parses a share such as "2/8". Returns Rejected for any other form, and for an index that is not
// below the count.
std::variant<Shard, Rejected> parse_shard(std::string_view text);

// Looks up a variable of the environment. Returns null if it is not set.
using Variable = std::function<const char*(const char* name)>;

// Reads the variables of a Slurm job array. Returns Rejected if this is no job array, if the array
// has gaps, or if the task's share is ambiguous. Also rejects arrays that may be a rerun of part of
// another array: a single task, or an array that begins at neither 0 nor 1.
std::variant<Shard, Rejected> shard_of_slurm(const Variable& variable);

// Returns whether this share measures point number `point` of the whole list. Neighbours go to
// different shares, because they are often the same model and take equally long.
bool takes(const Shard& shard, std::size_t point);

// Returns a file name for each share. For example "results/mine.json" becomes
// "results/mine.shard-2-of-8.json". Shares started by the same command line therefore do not
// overwrite each other. A run that is not split keeps its file name.
std::string file_of_shard(const std::string& file, const Shard& shard);

}  // namespace rematch
