#include "harness/run/children/point_store.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "reports/record/json/record_json.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kKeyLetters = 12;
constexpr std::size_t kPolicyLetters = 40;

// Compares hashes of the program, because a rebuilt program may measure something different under
// the same key.
bool is_same_program(const Provenance& left, const Provenance& right) {
  return left.program_sha256 && left.program_sha256 == right.program_sha256;
}

}  // namespace

PointStore::PointStore(std::string folder, Provenance provenance, bool fresh)
    : folder_(std::move(folder)), provenance_(std::move(provenance)), fresh_(fresh) {
  if (folder_.empty()) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw FileError("cannot make folder '" + folder_ + "': " + error.message());
}

std::optional<PointRecord> PointStore::load(const std::string& name, Figures figures) const {
  if (folder_.empty() || fresh_ || !fs::exists(path(name))) return std::nullopt;
  try {
    PointFile file = point_file_from_json(read_json_file(path(name)));
    const Environment& there = file.provenance.environment;
    const Environment& here = provenance_.environment;
    const bool same_card = figures == Figures::kExact || there.device_uuid == here.device_uuid;
    if (!same_card || fingerprint(there) != fingerprint(here)) return std::nullopt;
    if (!is_same_program(file.provenance, provenance_)) return std::nullopt;
    if (file.point.status != PointStatus::kOk) return std::nullopt;
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

bool PointStore::keeps_any() const {
  std::error_code none;
  if (folder_.empty()) return false;
  const fs::directory_iterator files(folder_, none);
  return std::any_of(begin(files), end(files), [](const fs::directory_entry& entry) {
    return entry.path().extension() == ".json";
  });
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
