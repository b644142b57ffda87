#include "reports/compare/metrics.h"

#include <stdexcept>

#include "tests/reports/compare/sample_comparison.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

using testing::at;
using testing::base_report;
using testing::compare;
using testing::kMiB;
using testing::metric_of;
using testing::points_with_kernels;
using testing::sample_point;
using testing::slower_report;

double share_of(const ExplanationRecord& explanation, const std::string& name) {
  for (const ContributionRecord& part : explanation.parts) {
    if (part.name == name) return part.share_ratio;
  }
  throw std::logic_error("no part " + name);
}

}  // namespace

// Policy `full` is 1003 us slower, and 950 us of this are recomputed attention.
TEST_CASE("a difference is split into its parts, with their shares") {
  const CompareRecord record = compare(base_report(), slower_report());
  const ComparedRow& full = record.rows[1];
  REQUIRE(full.explanations.size() == 4);
  CHECK(full.explanations[0].by == "phase and op class");
  CHECK(full.explanations[0].parts[0].name == "attention_forward in recompute");
  CHECK(full.explanations[0].parts[0].share_ratio == Approx(950.0 / 1003).epsilon(0.001));
  CHECK_THAT(full.explanations[0].sentence, Catch::StartsWith("95 % of the +10 % is attention "));
  CHECK(full.explanations[1].parts[0].name == "saved_activations");
  CHECK(full.explanations[1].parts[0].share_ratio == 1);
  CHECK(full.explanations[2].sentence == "100 % of the +3.8 % is attention forward in recompute");
}

// The peak grows by 100 MiB: gradients grow by 147 MiB and parameters by 3 MiB, while activations
// shrink by 50 MiB.
TEST_CASE("parts are sorted by absolute size, and small parts are not named") {
  const auto mib = [](std::int64_t count) { return Bytes{count * kMiB.count}; };
  PointRecord base = sample_point("full");
  PointRecord candidate = base;
  base.memory->holders_at_peak = {{Holder::kParameters, kMiB},
                                  {Holder::kSavedActivations, mib(50)}};
  candidate.memory->holders_at_peak = {{Holder::kParameters, mib(4)},
                                       {Holder::kGradients, mib(147)}};
  candidate.memory->peak_allocated = *base.memory->peak_allocated + mib(100);
  const ExplanationRecord bytes = compare(base, candidate).rows[0].explanations.at(0);
  REQUIRE(bytes.parts.size() == 3);
  CHECK(bytes.parts[1].name == "saved_activations");
  CHECK(bytes.parts[1].share_ratio == Approx(-0.5));
  CHECK_THAT(bytes.sentence,
             Catch::StartsWith("147 % of the ") && Catch::EndsWith(", -50 % saved activations"));
}

TEST_CASE("differing kernels are listed by phase and class, and fail the condition 'counts'") {
  PointRecord other = sample_point();
  other.kernels->count[at(Phase::kRecompute)] = {{"attention_forward", 16}};
  other.kernels->count[at(Phase::kForward)]["unknown"] = 0;
  CompareSettings settings;
  settings.fail_on = {FailOn::kCounts};
  const CompareRecord record = compare(sample_point(), other, settings);
  CHECK(record.failed_on == std::vector<std::string>{"counts"});
  const ExplanationRecord& kernels = record.rows[0].explanations.at(0);
  CHECK(kernels.metric == Metric::kKernelCount);
  CHECK(kernels.by == "phase and kernel class");
  REQUIRE(kernels.parts.size() == 2);
  CHECK(kernels.parts[0].name == "attention_forward in recompute");
  CHECK(kernels.parts[0].share_ratio == Approx(16.0 / 14));
  CHECK(kernels.parts[1].share_ratio == Approx(-2.0 / 14));
}

TEST_CASE("a time difference is explained by kernel class, if kernels were timed") {
  const auto [base, candidate] = points_with_kernels();
  const CompareRecord record = compare(base, candidate);
  const ExplanationRecord& time = record.rows[0].explanations.at(0);
  CHECK(time.by == "phase and kernel class");
  REQUIRE(time.parts.size() == 4);
  const double all =
      *metric_of(record, Metric::kStepTime).candidate - *metric_of(record, Metric::kStepTime).base;
  CHECK(share_of(time, "attention_forward kernels in recompute") == Approx(800e3 / all));
  CHECK(share_of(time, "fill kernels in recompute") == Approx(300e3 / all));
  CHECK(share_of(time, "matmul kernels in forward") == Approx(-200e3 / all));
  CHECK(share_of(time, "time without a kernel") == Approx(1 - 900e3 / all).margin(1e-5));
  CHECK_THAT(time.sentence,
             Catch::StartsWith("80 % of the +10 % is attention forward kernels in recompute, 30 % "
                               "fill kernels in recompute, -20 % matmul kernels in forward"));
}

TEST_CASE(
    "kernel times that overlap, are unreliable or are equal do not explain a time difference") {
  auto [base, candidate] = points_with_kernels();
  candidate.time->phases["backward"] += std::chrono::microseconds(1000);
  const auto by = [&] { return compare(base, candidate).rows[0].explanations.at(0); };
  candidate.kernels->time[at(Phase::kForward)]["matmul"] = std::chrono::seconds(1);
  for (const ContributionRecord& part : by().parts) CHECK(part.name != "time without a kernel");
  candidate.kernels->invalid = "2 records were dropped";
  base.time->classes = {};
  CHECK(by().by == "phase");
  candidate.kernels = base.kernels;
  CHECK(by().by == "phase");
}

}  // namespace rematch
