// Made-up reports for the tests of compare. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "reports/compare/compare.h"

namespace rematch::testing {

inline constexpr Bytes kMiB{1 << 20};

inline std::size_t at(Phase phase) { return static_cast<std::size_t>(phase); }

// Round medians in microseconds; the two steps of a round are alike.
void set_rounds(PointRecord& point, const std::vector<double>& microseconds);

// Without the sample's last step, whose loss is not a number.
PointRecord finite_point(const std::string& policy = "none");
PointRecord timed_point(const std::string& policy, const std::vector<double>& microseconds);

Report report_of(const std::vector<PointRecord>& points);

CompareRecord compare(const Report& base, const Report& candidate,
                      const CompareSettings& settings = {});
CompareRecord compare(const PointRecord& base, const PointRecord& candidate,
                      const CompareSettings& settings = {});

const MetricRecord& metric_of(const CompareRecord& record, Metric metric, std::size_t row = 0);

inline const std::vector<double> kBase = {10000, 10010, 9990, 10005};

std::vector<double> scaled(double factor);  // kBase by it, and 3 us more

// A tenth slower, with the extra time all in the backward's attention; and other recompute.
Report slower_report();
Report base_report();

// Kernels of a step of 10,000 us, and of one of 11,003: 800 us more in recompute's attention, 300
// in a new class, 200 less in forward's matmuls; the other 103 run no kernel. Totals of two steps,
// and of four.
std::pair<PointRecord, PointRecord> points_with_kernels();

}  // namespace rematch::testing
