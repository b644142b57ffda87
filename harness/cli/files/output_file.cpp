#include "harness/cli/files/output_file.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "harness/cli/exit_code.h"
#include "harness/cli/files/output.h"
#include "policies/base/file.h"
#include "policies/base/hashing.h"
#include "policies/base/json.h"
#include "policies/base/text.h"
#include "reports/schema/validate.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

std::string start_of(const std::string& file) {
  std::array<char, 4096> start{};
  std::ifstream stream(file, std::ios::binary);
  stream.read(start.data(), start.size());
  return {start.data(), static_cast<std::size_t>(stream.gcount())};
}

// Returns the file as JSON. Returns null if the file is not readable as JSON.
Json json_of(const std::string& file) {
  try {
    return read_json_file(file);
  } catch (const std::exception&) {
    return nullptr;
  }
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored);
}

// Returns whether `file` is `input`, or is inside the folder `input`.
bool is_input(const std::string& file, const std::string& input) {
  if (is_same_file(file, input) || is_same_file(file, input.substr(0, input.rfind('#')))) {
    return true;
  }
  std::error_code ignored;
  if (!fs::is_directory(input, ignored)) return false;
  const std::string folder = fs::weakly_canonical(input, ignored).string() + "/";
  return fs::weakly_canonical(file, ignored).string().starts_with(folder);
}

void refuse(const std::string& file, const std::string& why) {
  throw UsageError("-o " + in_quotes(file) + " " + why +
                   "; choose another name, or give --overwrite to replace it");
}

void require_replaceable(const OutputRequest& request) {
  const std::string& file = request.file;
  for (const std::string& input : request.inputs) {
    if (is_input(file, input)) refuse(file, "is an input of this command");
  }
  std::error_code ignored;
  if (fs::file_size(file, ignored) == 0) return;
  const std::string kind = kind_of_file(file);
  if (std::find(request.kinds.begin(), request.kinds.end(), kind) != request.kinds.end()) return;
  std::vector<std::string> kinds(request.kinds.begin(), request.kinds.end());
  refuse(file, "is a file of kind " + (kind.empty() ? "JSON" : kind) +
                   ", and this command writes " + joined(kinds, " or "));
}

// Locks the file against other processes of this machine: binds a socket whose name is made from
// the path. The system releases the socket when the process ends. Returns -1 if the system has no
// such sockets.
int lock_of(const std::string& file) {
  std::error_code ignored;
  // fs::absolute() is called first, because weakly_canonical() leaves the name of a new file
  // relative.
  const fs::path path = fs::weakly_canonical(fs::absolute(file), ignored);
  const std::string name = "rematch " + sha256_hex(path.string());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // The first byte stays zero. This puts the name in Linux's abstract namespace, so no file is
  // created.
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int lock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (lock < 0) return -1;
  if (bind(lock, reinterpret_cast<const sockaddr*>(&address), size) == 0) return lock;
  const bool is_taken = errno == EADDRINUSE;
  close(lock);
  if (!is_taken) return -1;
  throw UsageError("another rematch process is writing " + in_quotes(file) +
                   "; wait until it has ended, or choose another name");
}

// Returns the model that the JSON, or its first point, names. Returns "" if there is none.
std::string model_of(const Json& json) {
  if (!json.is_object()) return "";
  if (json.contains("model") && json["model"].is_string()) return json["model"];
  for (const char* list : {"points", "planned"}) {
    if (!json.contains(list) || !json[list].is_array()) continue;
    for (const Json& point : json[list]) {
      if (std::string model = model_of(point); !model.empty()) return model;
    }
  }
  return "";
}

}  // namespace

std::string kind_of_file(const std::string& file) {
  constexpr unsigned char kPickle = 0x80;
  const std::string start = start_of(file);
  if (start.starts_with("<!DOCTYPE html")) return std::string(file_kind::kPage);
  if (start.starts_with("<svg") || start.starts_with("<?xml")) {
    return std::string(file_kind::kPicture);
  }
  if (start.starts_with("\"\"\"The plan '")) return std::string(file_kind::kPython);
  if (!start.empty() && static_cast<unsigned char>(start[0]) == kPickle) {
    return std::string(file_kind::kSnapshot);
  }
  const bool may_be_json = start.starts_with("{") || start.starts_with("[");
  const Json json = may_be_json ? json_of(file) : Json();
  return json.is_null() ? std::string(file_kind::kText)
                        : std::string(schema_kind(json).value_or(""));
}

OutputFile::OutputFile(const OutputRequest& request)
    : file_(request.file), overwrite_(request.overwrite) {
  if (file_.empty()) return;
  require_writable(file_);
  std::error_code ignored;
  if (fs::exists(file_, ignored) && !fs::is_regular_file(file_, ignored)) return;
  if (!overwrite_ && fs::exists(file_, ignored)) require_replaceable(request);
  lock_ = lock_of(file_);
}

OutputFile::~OutputFile() {
  if (lock_ >= 0) close(lock_);
}

void OutputFile::require_model(const std::string& model) const {
  std::error_code ignored;
  if (file_.empty() || overwrite_ || !fs::is_regular_file(file_, ignored)) return;
  const std::string found = model_of(json_of(file_));
  if (found.empty() || found == model) return;
  refuse(file_, "is for model " + found + ", and this command writes a file for model " + model);
}

std::vector<std::string> policy_files(const std::string& policies) {
  std::vector<std::string> files;
  for (const std::string_view name :
       split_at_commas(policies).value_or(std::vector<std::string_view>{})) {
    if (trimmed(name).ends_with(".json")) files.emplace_back(trimmed(name));
  }
  return files;
}

}  // namespace rematch
