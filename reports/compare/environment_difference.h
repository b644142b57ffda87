// What makes two reports' times incomparable: another device, other clocks, other versions.
#pragma once

#include <string>
#include <vector>

#include "reports/record/compare.h"
#include "reports/record/report.h"

namespace rematch {

// Everything that the fingerprint covers, the kind of execution, variables that change bits or
// bytes, and clocks that differ by more than a twentieth or that one side does not know. Empty:
// comparable.
std::vector<NamedDifference> environment_differences(const Provenance& base,
                                                     const Provenance& candidate);

SourceRecord describe_source(const Provenance& provenance, const std::string& file);

// "libtorch_version 2.11.0 and 2.12.0, threads 2 and 4".
std::string describe(const std::vector<NamedDifference>& differences);

}  // namespace rematch
