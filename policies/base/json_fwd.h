// The names of the JSON types, for headers that only hand them on: the library's own header is the
// costliest one to compile. And the error of a file that cannot be used.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <stdexcept>

namespace rematch {

using Json = nlohmann::ordered_json;  // keeps the order of keys, for people

class JsonField;

// A file, or a part of one, that is not what its format says. One line, with the JSON path.
struct FormatError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace rematch
