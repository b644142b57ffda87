// One share of a run of many points: which points it measures, and where its report goes. Shares
// only exchange files (`rematch merge`), so any scheduler can start them. Pure.
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

// "2/8". Returns Rejected for anything else, and for an index that is not below the count.
std::variant<Shard, Rejected> parse_shard(std::string_view text);

// Looks up a variable of the environment. Null if it is not set.
using Variable = std::function<const char*(const char* name)>;

// Reads the variables of a Slurm job array. Returns Rejected outside of one, if the task's share is
// ambiguous, and for an array with gaps. Also rejects arrays that may be a rerun of part of another
// one: a single task, or an array that begins at neither 0 nor 1.
std::variant<Shard, Rejected> shard_of_slurm(const Variable& variable);

// Returns whether this share measures point number `point` of the whole list. Neighbours go to
// different shares, because they are often the same model and take equally long.
bool takes(const Shard& shard, std::size_t point);

// "results/mine.json" becomes "results/mine.shard-2-of-8.json", so that shares started by the same
// command line do not overwrite each other. A run that is not split keeps its name.
std::string file_of_shard(const std::string& file, const Shard& shard);

}  // namespace rematch
