// One share of a run of many points: which points it measures, and where its report goes. Shares
// meet in files alone (`rematch merge`), so any scheduler can start them. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "policies/plan/plan.h"

namespace rematch {

// Share `index` of `count`, from 0.
struct Shard {
  int index = 0;
  int count = 1;
  bool operator==(const Shard&) const = default;
};

// "2/8". Rejected: anything else, and an index that is not below the count.
std::variant<Shard, Rejected> parse_shard(std::string_view text);

// How a variable of the environment is looked up; null where it is not set.
using Variable = std::function<const char*(const char* name)>;

// From the variables of a Slurm job array. Rejected: outside one, what leaves open which share a
// task is, an array with gaps, and one that may be a part of another run again: a single task, or
// one that begins at neither 0 nor 1.
std::variant<Shard, Rejected> shard_of_slurm(const Variable& variable);

// Is the point at this place of the whole list measured by this share? Neighbours go to different
// shares: they tend to be the same model, and to take as long as each other.
bool takes(const Shard& shard, std::size_t point);

// "results/mine.json" becomes "results/mine.shard-2-of-8.json", so that shares started by one
// command line do not write over each other; the whole run keeps its name.
std::string file_of_shard(const std::string& file, const Shard& shard);

}  // namespace rematch
