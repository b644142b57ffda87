// Forward declares the JSON types, because the library's full header is slow to compile. Also
// defines FormatError, the error for an unusable file.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <stdexcept>

namespace rematch {

// Keeps the order of keys, which helps people who read the files.
using Json = nlohmann::ordered_json;

class JsonField;

// A file or a part of one does not follow its format. The message is one line with the JSON path.
struct FormatError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace rematch
