// Files that a comparison leaves behind while it runs, so that a killed one goes on where it was:
// one per finished child process, written as a whole or not at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reports/record/report.h"

namespace rematch {

class PointStore {
 public:
  // `folder` empty: nothing is kept. `fresh`: what is there is not used. Throws FileError if the
  // folder cannot be made.
  PointStore(std::string folder, Provenance provenance, bool fresh);

  // The result that an earlier run of the same binary left under this name on such a machine;
  // nothing if it is missing, broken, or of a point that did not end ok. For `times` the machine
  // must be this very card.
  enum class Figures : std::uint8_t { kExact, kTimes };
  std::optional<PointRecord> load(const std::string& name, Figures figures) const;
  void save(const std::string& name, const PointRecord& record) const;

  // Is there anything that a later run may go on from?
  bool keeps_any() const;

 private:
  std::string path(const std::string& name) const;

  std::string folder_;
  Provenance provenance_;
  bool fresh_;
};

// A file name for a point: the start of its key, and its policy for people.
std::string point_name(const PointIdentity& identity, const std::string& policy);

}  // namespace rematch
