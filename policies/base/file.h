// Files of every format: reading with one-line errors, and writing so that a reader never sees half
// a file.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "policies/base/bytes.h"
#include "policies/base/json_fwd.h"

namespace rematch {

// A file that cannot be opened, read or written. One line: the path and the system's reason.
struct FileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A report of 10,000 points is about 40 MiB; larger than this is some other file.
inline constexpr Bytes kLargestJsonFile{std::int64_t{1} << 30};
inline constexpr int kDeepestJson = 100;

// `name` stands before every message. Throws FormatError with line and column if the text is empty
// or malformed, nests deeper than kDeepestJson, or repeats a key in an object.
Json parse_json(std::string_view text, const std::string& name);

// Given each element of a list as soon as it is read, with the document as far as it is read and
// the element's index. True: it has been used and is not kept.
using TakeElement = std::function<bool(const Json& so_far, const Json& element, std::size_t index)>;

// As parse_json; elements of the list under the document's key `list` are first offered to `take`,
// so that a large file need not be held as a whole.
Json parse_json_taking(std::string_view text, const std::string& name, std::string_view list,
                       const TakeElement& take);

// Throws FileError if the file is missing, unreadable or a folder, FormatError if it is larger than
// `limit`.
std::string read_text_file(const std::string& path, Bytes limit = kLargestJsonFile);

// Its JSON. Throws as both.
Json read_json_file(const std::string& path, Bytes limit = kLargestJsonFile);

// Replaces the file as a whole: a temporary file in the same folder, fsync, rename, fsync of the
// folder. A killed process leaves the old file or the new one. Devices and pipes are written
// directly. Throws FileError.
void write_file_atomically(const std::string& path, std::string_view text);

// The same with `json` indented by two spaces and a newline at the end.
void write_json_file(const std::string& path, const Json& json);

}  // namespace rematch
