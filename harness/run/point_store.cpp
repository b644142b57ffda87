#include "harness/run/point_store.h"

#include <cctype>
#include <filesystem>

#include "harness/run/process.h"
#include "policies/trace/file.h"
#include "policies/trace/json.h"
#include "reports/record/record_json.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kKeyLetters = 12;
constexpr std::size_t kPolicyLetters = 40;

// A program built later may measure something else under the same key.
bool older_than_this_program(const std::string& path) {
  std::error_code ignored;
  return fs::last_write_time(path, ignored) < fs::last_write_time(own_executable(), ignored);
}

}  // namespace

PointStore::PointStore(std::string folder, Provenance provenance, bool fresh)
    : folder_(std::move(folder)), provenance_(std::move(provenance)), fresh_(fresh) {
  if (folder_.empty()) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw FileError("cannot make folder '" + folder_ + "': " + error.message());
}

std::optional<PointRecord> PointStore::load(const std::string& name) const {
  if (folder_.empty() || fresh_ || !fs::exists(path(name))) return std::nullopt;
  if (older_than_this_program(path(name))) return std::nullopt;
  try {
    PointFile file = point_file_from_json(read_json_file(path(name)));
    const bool same_machine =
        fingerprint(file.provenance.environment) == fingerprint(provenance_.environment);
    if (!same_machine || file.point.status != PointStatus::kOk) return std::nullopt;
    return std::move(file.point);
  } catch (const FileError&) {
    return std::nullopt;
  } catch (const FormatError&) {
    return std::nullopt;
  }
}

void PointStore::save(const std::string& name, const PointRecord& record) const {
  if (folder_.empty()) return;
  write_json_file(path(name), point_file_to_json({provenance_, record, {}}));
}

std::string PointStore::path(const std::string& name) const {
  return folder_ + "/" + name + ".json";
}

std::string point_name(const PointIdentity& identity, const std::string& policy) {
  std::string name = point_key(identity).substr(0, kKeyLetters) + "-";
  for (const char letter : policy.substr(0, kPolicyLetters)) {
    name += std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
  }
  return name;
}

}  // namespace rematch
