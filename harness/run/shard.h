// One share of a run of many points: its points and the file of its report. Shares communicate only
// through files (`rematch merge`), so any scheduler can start them. Pure.
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

// Looks up an environment variable. Returns null if it is not set.
using Variable = std::function<const char*(const char* name)>;

// Reads the variables of a Slurm job array. Returns Rejected if this process is not in a job array,
// or if the array has gaps. Also rejects arrays that may be a rerun of part of another array: a
// single task, or an array that begins at neither 0 nor 1.
std::variant<Shard, Rejected> shard_of_slurm(const Variable& variable);

// Returns whether this share measures the point with index `point`. Neighbours are in different
// shares, because they are often the same model and take equally long.
bool takes(const Shard& shard, std::size_t point);

// Returns the name of this share's file. For example "results/mine.json" becomes
// "results/mine.shard-2-of-8.json". Without shards, the name is unchanged.
std::string file_of_shard(const std::string& file, const Shard& shard);

}  // namespace rematch
