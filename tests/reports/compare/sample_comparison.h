// Synthetic reports for the tests of compare. The functions are pure.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "reports/compare/compare.h"

namespace rematch::testing {

inline constexpr Bytes kMiB{1 << 20};

inline std::size_t at(Phase phase) { return static_cast<std::size_t>(phase); }

// Sets the medians of the rounds, in microseconds. Each round has two equal steps.
void set_rounds(PointRecord& point, const std::vector<double>& microseconds);

// A sample_point() without its last step, whose loss is not a number.
PointRecord finite_point(const std::string& policy = "none");
PointRecord timed_point(const std::string& policy, const std::vector<double>& microseconds);

Report report_of(const std::vector<PointRecord>& points);

CompareRecord compare(const Report& base, const Report& candidate,
                      const CompareSettings& settings = {});
CompareRecord compare(const PointRecord& base, const PointRecord& candidate,
                      const CompareSettings& settings = {});

const MetricRecord& metric_of(const CompareRecord& record, Metric metric, std::size_t row = 0);

inline const std::vector<double> kBase = {10000, 10010, 9990, 10005};

std::vector<double> scaled(double factor);  // kBase times the factor, plus 3 us

// In slower_report(), policy `full` is a tenth slower than in base_report(), mostly because
// recomputed attention takes longer. It also recomputes different ops.
Report slower_report();
Report base_report();

// Two points with kernel records, whose steps take 10,000 us and 11,003 us. The second has 800 us
// more of recomputed attention, 300 us in a new class, 200 us less of forward matmuls, and 103 us
// without a kernel. The first has totals of two steps, the second of four.
std::pair<PointRecord, PointRecord> points_with_kernels();

}  // namespace rematch::testing
