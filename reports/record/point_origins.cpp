#include "reports/record/point_origins.h"

namespace rematch {

PointOrigins::PointOrigins(const Report& report)
    : report_(report), origins_(report.points.size(), {&report.provenance, 0}) {
  fingerprints_.push_back(fingerprint(report.provenance.environment));
  for (const ReportSource& source : report.sources) {
    const std::size_t number = fingerprints_.size();
    fingerprints_.push_back(fingerprint(source.provenance.environment));
    for (const std::size_t point : source.points) origins_.at(point) = {&source.provenance, number};
  }
}

}  // namespace rematch
