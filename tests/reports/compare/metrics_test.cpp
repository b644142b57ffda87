#include "reports/compare/metrics.h"

#include <functional>
#include <random>

#include "tests/reports/compare/sample_comparison.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

using testing::at;
using testing::compare;
using testing::finite_point;
using testing::kBase;
using testing::metric_of;
using testing::report_of;
using testing::sample_point;
using testing::scaled;
using testing::timed_point;

CompareVerdict time_verdict(const std::vector<double>& base, const std::vector<double>& candidate,
                            const CompareSettings& settings = {}) {
  return metric_of(compare(timed_point("none", base), timed_point("none", candidate), settings),
                   Metric::kStepTime)
      .verdict;
}

// Returns the share of reports in which at least one row is called slower or faster. One unit of
// `noise` is 2 %, twice the smallest difference that counts.
double reports_with_alarm(int num_reports, int num_rows, double slowdown,
                          const std::function<double(std::mt19937&)>& noise) {
  std::mt19937 bits(5);
  int alarms = 0;
  for (int trial = 0; trial < num_reports; ++trial) {
    std::vector<PointRecord> base;
    std::vector<PointRecord> candidate;
    for (int row = 0; row < num_rows; ++row) {
      std::vector<double> rounds[2];
      for (int round = 0; round < 8; ++round) {
        rounds[round % 2].push_back(10000 * (1 + 0.02 * noise(bits)) *
                                    (round % 2 == 1 ? slowdown : 1));
      }
      base.push_back(timed_point(std::to_string(row), rounds[0]));
      candidate.push_back(timed_point(std::to_string(row), rounds[1]));
    }
    CompareSettings settings;
    settings.metrics = {Metric::kStepTime};
    const CompareRecord record = compare(report_of(base), report_of(candidate), settings);
    const auto& verdicts = record.summary.at(Metric::kStepTime);
    alarms +=
        verdicts.contains(CompareVerdict::kFaster) || verdicts.contains(CompareVerdict::kSlower)
            ? 1
            : 0;
  }
  return static_cast<double>(alarms) / num_reports;
}

}  // namespace

TEST_CASE("times are called different only if they differ by more than the noise and the floor") {
  CHECK(time_verdict(kBase, scaled(1.0)) == CompareVerdict::kSame);
  CHECK(time_verdict(kBase, scaled(1.1)) == CompareVerdict::kSlower);
  CHECK(time_verdict(scaled(1.1), kBase) == CompareVerdict::kFaster);
  // The difference is 1.5 %, but the rounds of each report vary by 2 %.
  CHECK(time_verdict({100, 102, 98, 101}, {101.5, 103.5, 99.5, 102.5}) == CompareVerdict::kUnsure);
  // One round does not show how much rounds vary.
  CHECK(time_verdict({100}, {200}) == CompareVerdict::kUnsure);
  CHECK(time_verdict({}, {200}) == CompareVerdict::kNotMeasured);
}

TEST_CASE("a difference below either floor does not count") {
  CompareSettings percent;
  percent.floors[Metric::kStepTime] = {0.2, 0};
  CHECK(time_verdict(kBase, scaled(1.1), percent) == CompareVerdict::kSame);
  CompareSettings absolute;
  absolute.floors[Metric::kStepTime] = {
      // Differences below 2 ms do not count. The base takes 10 ms, so a factor of 1.1 adds only 1
      // ms.
      0.01, 2e6};
  CHECK(time_verdict(kBase, scaled(1.1), absolute) == CompareVerdict::kSame);
  CHECK(time_verdict(kBase, scaled(1.3), absolute) == CompareVerdict::kSlower);

  PointRecord more = sample_point();
  more.memory->peak_allocated = *more.memory->peak_allocated + Bytes{1000};
  more.memory->holders_at_peak[Holder::kSavedActivations] += Bytes{1000};
  const CompareRecord higher = compare(sample_point(), more);
  CHECK(metric_of(higher, Metric::kPeakAllocated).verdict == CompareVerdict::kHigher);
  CHECK(higher.rows[0].explanations.size() == 1);
  CompareSettings bytes;
  bytes.floors[Metric::kPeakAllocated] = {0, 1000};
  const CompareRecord same = compare(sample_point(), more, bytes);
  CHECK(metric_of(same, Metric::kPeakAllocated).verdict == CompareVerdict::kSame);
  CHECK(same.rows[0].explanations.empty());
}

// A row that is called slower in a report of one row is unsure in a report of 300 rows, because its
// p-value is multiplied by 300.
TEST_CASE("more rows require stronger evidence for a difference") {
  const std::vector<double> noisy = {100, 102, 98, 101};
  const std::vector<double> slower = {110, 112, 108, 111};
  CHECK(time_verdict(noisy, slower) == CompareVerdict::kSlower);
  std::vector<PointRecord> base;
  std::vector<PointRecord> candidate;
  for (int row = 0; row < 300; ++row) {
    const std::string policy = std::to_string(row);
    base.push_back(timed_point(policy, noisy));
    candidate.push_back(timed_point(policy, row == 0 ? slower : scaled(0.01)));
  }
  const CompareRecord record = compare(report_of(base), report_of(candidate));
  CHECK(metric_of(record, Metric::kStepTime).verdict == CompareVerdict::kUnsure);
  CHECK(metric_of(record, Metric::kStepTime).interval->at(0) > 1.01);
}

TEST_CASE("at most 1 % of comparisons of identical runs report a difference", "[property]") {
  const auto normal = [](std::mt19937& bits) { return std::normal_distribution<double>()(bits); };
  const auto heavy = [](std::mt19937& bits) {
    return std::student_t_distribution<double>(3)(bits);
  };
  for (const int rows : {1, 14}) {
    CAPTURE(rows);
    CHECK(reports_with_alarm(7000 / rows, rows, 1, normal) <= 0.01);
    CHECK(reports_with_alarm(7000 / rows, rows, 1, heavy) <= 0.01);
  }
  CHECK(reports_with_alarm(100, 1, 1.2, normal) > 0.9);
}

TEST_CASE(
    "op counts are compared per step; if their sums are equal, the counts of each op are "
    "compared") {
  PointRecord longer = sample_point();
  longer.counts->counted_steps *= 3;
  for (auto& phase : longer.counts->by_op) {
    for (auto& [op, executed] : phase) executed *= 3;
  }
  for (auto& phase : longer.counts->by_class) {
    for (auto& [op_class, executed] : phase) executed *= 3;
  }
  CHECK(metric_of(compare(sample_point(), longer), Metric::kExecutedOps).verdict ==
        CompareVerdict::kSame);
  longer.counts->by_class[at(Phase::kBackward)][OpClass::kMatmul] += 1;
  const MetricRecord by_class = metric_of(compare(sample_point(), longer), Metric::kExecutedOps);
  CHECK(by_class.verdict == CompareVerdict::kDifferent);
  CHECK(by_class.note == "the same ops, but different counts of class matmul in backward");

  PointRecord other = sample_point();
  auto& forward = other.counts->by_op[at(Phase::kForward)];
  forward["aten::mm"] = forward.at("aten::addmm");
  forward.erase("aten::addmm");
  const CompareRecord record = compare(sample_point(), other);
  CHECK(metric_of(record, Metric::kExecutedOps).verdict == CompareVerdict::kDifferent);
  CHECK_THAT(metric_of(record, Metric::kExecutedOps).note,
             Catch::Contains("aten::addmm in forward"));
  CHECK(metric_of(record, Metric::kRecomputedOps).verdict == CompareVerdict::kSame);
}

TEST_CASE(
    "kernel counts are compared per step; if their sums are equal, the counts of each class are "
    "compared") {
  PointRecord other = sample_point();
  const auto kernels_of = [&](const PointRecord& candidate) {
    return metric_of(compare(sample_point(), candidate), Metric::kKernelCount);
  };
  other.kernels->counted_steps *= 2;
  auto& forward = other.kernels->count[at(Phase::kForward)];
  for (auto& [kernel_class, count] : forward) count *= 2;
  CHECK(kernels_of(other).verdict == CompareVerdict::kSame);
  CHECK(kernels_of(other).base == 73);  // 128 + 16 + 2 = 146 kernels in two steps

  forward["copy"] = forward.at("unknown");
  forward.erase("unknown");
  CHECK(kernels_of(other).verdict == CompareVerdict::kDifferent);
  CHECK(kernels_of(other).note ==
        "the same number of kernels, but different counts by name: copy in forward");

  forward["copy"] += 4;
  CHECK(kernels_of(other).verdict == CompareVerdict::kHigher);
  other.kernels->invalid = "2 records were dropped";
  CHECK(kernels_of(other).verdict == CompareVerdict::kNotMeasured);
}

TEST_CASE("losses are compared bitwise, at every step") {
  const PointRecord base = finite_point();
  PointRecord other = base;
  other.steps[0].loss_bits = "0x3fc00001";
  const MetricRecord loss = metric_of(compare(base, other), Metric::kLoss);
  CHECK(loss.verdict == CompareVerdict::kDifferent);
  CHECK(loss.note == "first differs at step 0");
  CHECK(metric_of(compare(base, base), Metric::kLoss).verdict == CompareVerdict::kSame);
  // The loss does not show a difference in the gradients, parameters or random generators of the
  // last step, so these are compared too.
  const auto changed = [&](const std::function<void(StepRecord&)>& change) {
    PointRecord edited = base;
    change(edited.steps[0]);
    return metric_of(compare(base, edited), Metric::kLoss);
  };
  const auto notes = [&](const std::function<void(StepRecord&)>& change) {
    CHECK(changed(change).verdict == CompareVerdict::kDifferent);
    return changed(change).note;
  };
  CHECK(notes([](StepRecord& step) { step.parameter_hash = "ab"; }) ==
        "equal, but the bits of parameters first differ at step 0");
  CHECK(notes([](StepRecord& step) { step.gradient_hashes["head.weight"] = "dd"; }) ==
        "equal, but the bits of head.weight first differ at step 0");
  CHECK(notes([](StepRecord& step) { step.gradient_norm_bits = "0x00000000"; }) ==
        "equal, but gradients are all zero at step 0");
  CHECK(notes([](StepRecord& step) { step.gradient_norm_bits = "0x7ff8000000000000"; }) ==
        "equal, but gradients are not finite at step 0");
  const MetricRecord lost = changed([](StepRecord& step) { step.generator_hash.clear(); });
  CHECK(lost.verdict == CompareVerdict::kUnsure);
  CHECK(lost.note == "equal, but the candidate has no bits of the generator state at step 0");
  // Both reports have NaN with the same bits.
  const MetricRecord broken = metric_of(compare(sample_point(), sample_point()), Metric::kLoss);
  CHECK(broken.verdict == CompareVerdict::kDifferent);
  CHECK(broken.note == "not finite at step 1");
}

}  // namespace rematch
