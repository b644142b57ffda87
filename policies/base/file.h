// Reads and writes files of every format. Errors are one line, and a reader never sees a
// half-written file.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "policies/base/bytes.h"
#include "policies/base/json_fwd.h"

namespace rematch {

// A file cannot be opened, read or written. The message is one line: the path and the system's
// reason.
struct FileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A report of 10,000 points takes about 40 MiB, so a file larger than this limit cannot be a
// report.
inline constexpr Bytes kLargestJsonFile{std::int64_t{1} << 30};
inline constexpr int kDeepestJson = 100;

// Parses JSON. Throws FormatError with line and column if the text is empty or malformed, nests
// deeper than kDeepestJson, or has an object that repeats a key. Every message starts with `name`.
Json parse_json(std::string_view text, const std::string& name);

// Receives each element of a list as soon as it is read, with the element's index and the part of
// the document before it. Returns true to consume the element; the document then does not keep it.
using TakeElement = std::function<bool(const Json& so_far, const Json& element, std::size_t index)>;

// Like parse_json, but reads a large list without holding it in memory. `list` is the list's key in
// the document. Each element is first offered to `take`.
Json parse_json_taking(std::string_view text, const std::string& name, std::string_view list,
                       const TakeElement& take);

// Throws FileError if the file is missing, unreadable or a folder. Throws FormatError if it is
// larger than `limit`.
std::string read_text_file(const std::string& path, Bytes limit = kLargestJsonFile);

// Reads and parses a JSON file. Throws like read_text_file and parse_json.
Json read_json_file(const std::string& path, Bytes limit = kLargestJsonFile);

// Replaces the file by a rename. If the process is killed, either the old or the new file remains.
// Calls fsync on the file and its folder. Devices and pipes are written directly. Throws FileError.
void write_file_atomically(const std::string& path, std::string_view text);

// Writes `json` atomically, indented by two spaces, with a final newline.
void write_json_file(const std::string& path, const Json& json);

}  // namespace rematch
