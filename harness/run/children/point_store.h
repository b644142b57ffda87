// Files that a comparison writes while it runs, so that a killed comparison can resume. There is
// one file per finished child process, written atomically.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reports/record/report.h"

namespace rematch {

class PointStore {
 public:
  // If `folder` is empty, nothing is stored. With `fresh`, existing files are ignored. Throws
  // FileError if the folder cannot be created.
  PointStore(std::string folder, Provenance provenance, bool fresh);

  // Loads the result that an earlier run of the same binary saved under this name on the same kind
  // of machine. For kTimes the GPU must also be the same. Absent if the file is missing or broken,
  // or if the point's status is not ok.
  enum class Figures : std::uint8_t { kExact, kTimes };
  std::optional<PointRecord> load(const std::string& name, Figures figures) const;
  void save(const std::string& name, const PointRecord& record) const;

  // Returns whether the folder contains results that a later run can reuse.
  bool keeps_any() const;

 private:
  std::string path(const std::string& name) const;

  std::string folder_;
  Provenance provenance_;
  bool fresh_;
};

// Returns the file name of a point, made of a prefix of its key and a prefix of the policy's name.
std::string point_name(const PointIdentity& identity, const std::string& policy);

}  // namespace rematch
