// Turns what a user's input was refused with into an error that ends the command.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "harness/cli/exit_code.h"
#include "policies/plan/rejected.h"
#include "policies/trace/json_fwd.h"

namespace rematch {

// The value. Throws UsageError with the message of a Rejected.
template <class T>
T require(std::variant<T, Rejected> result) {
  if (const auto* rejected = std::get_if<Rejected>(&result)) throw UsageError(rejected->message);
  return std::get<T>(std::move(result));
}

// A JSON file that the command line names. Throws UsageError if it cannot be read.
Json require_json_file(const std::string& path);

}  // namespace rematch
