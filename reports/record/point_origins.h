// The provenance of each point in a report. A merged report has points of several commands. Its own
// provenance holds only what these commands have in common.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "reports/record/report.h"

namespace rematch {

class PointOrigins {
 public:
  explicit PointOrigins(const Report& report)  // `report` must outlive this object and must not
                                               // change
      : report_(report), origins_(report.points.size(), {&report.provenance, 0}) {
    fingerprints_.push_back(fingerprint(report.provenance.environment));
    for (const ReportSource& source : report.sources) {
      const std::size_t number = fingerprints_.size();
      fingerprints_.push_back(fingerprint(source.provenance.environment));
      for (const std::size_t point : source.points) {
        origins_.at(point) = {&source.provenance, number};
      }
    }
  }

  // `point` must be an element of the report's points.
  const Provenance& of(const PointRecord& point) const { return *origins_[index_of(point)].from; }
  const std::string& fingerprint_of(const PointRecord& point) const {
    return fingerprints_[origins_[index_of(point)].fingerprint];
  }

  bool is_merged() const { return report_.sources.size() > 1; }

 private:
  struct Origin {
    const Provenance* from = nullptr;
    std::size_t fingerprint = 0;
  };
  std::size_t index_of(const PointRecord& point) const {
    return static_cast<std::size_t>(&point - report_.points.data());
  }

  const Report& report_;
  std::vector<std::string> fingerprints_;
  std::vector<Origin> origins_;
};

}  // namespace rematch
