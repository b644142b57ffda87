// Unwraps the result of a check of user input. Throws UsageError if the input was rejected.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "harness/cli/exit_code.h"
#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/base/rejected.h"

namespace rematch {

// Returns the value of the variant. If the variant is Rejected, throws UsageError with its message.
template <class T>
T require(std::variant<T, Rejected> result) {
  if (const auto* rejected = std::get_if<Rejected>(&result)) throw UsageError(rejected->message);
  return std::get<T>(std::move(result));
}

// Calls `read` and returns its result. Turns a FormatError into a UsageError that names the file.
template <class Read>
auto require_readable(const std::string& path, const Read& read) {
  try {
    return read();
  } catch (const FormatError& error) {
    const std::string message = error.what();
    const bool is_named = message.find(path) != std::string::npos;
    throw UsageError(is_named ? message : std::string(path).append(": ").append(message));
  }
}

// Reads a JSON file that the command line names. Throws UsageError if it cannot be read, and
// FormatError if it is not JSON.
inline Json require_json_file(const std::string& path) {
  try {
    return read_json_file(path);
  } catch (const FileError& error) {
    throw UsageError(error.what());
  }
}

// Parses the file and returns the result of `read`. Throws UsageError if the file cannot be read or
// `read` throws FormatError. Throws FormatError if the file is not JSON.
template <class Read>
auto require_json_file(const std::string& path, const Read& read) {
  const Json json = require_json_file(path);
  return require_readable(path, [&] { return read(json); });
}

}  // namespace rematch
