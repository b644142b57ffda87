#include "reports/compare/compare.h"

#include <cmath>
#include <functional>
#include <random>

#include "policies/trace/file.h"
#include "policies/trace/json.h"
#include "reports/compare/environment_difference.h"
#include "reports/record/record_json.h"
#include "reports/render/compare_table.h"
#include "reports/render/page.h"
#include "reports/schema/validate.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;
using testing::sample_oom;
using testing::sample_point;
using testing::sample_provenance;
using testing::sample_recomputing;

constexpr Bytes kMiB{1 << 20};

std::size_t at(Phase phase) { return static_cast<std::size_t>(phase); }

// Block medians in microseconds; the two steps of a block are alike.
void set_blocks(PointRecord& point, const std::vector<double>& microseconds) {
  point.time->samples.clear();
  for (const double block : microseconds) {
    const nanoseconds step(std::llround(block * 1000));
    point.time->samples.push_back({step, step});
  }
}

// Without the sample's last step, whose loss is not a number.
PointRecord finite_point(const std::string& policy = "none") {
  PointRecord point = sample_point(policy);
  point.steps.pop_back();
  return point;
}

PointRecord timed_point(const std::string& policy, const std::vector<double>& microseconds) {
  PointRecord point = finite_point(policy);
  set_blocks(point, microseconds);
  return point;
}

Report report_of(const std::vector<PointRecord>& points) {
  return Report{sample_provenance(), points, {}};
}

CompareRecord compare(const Report& base, const Report& candidate,
                      const CompareSettings& settings = {}) {
  return compare_reports(base, "base.json", candidate, "candidate.json", settings);
}

CompareRecord compare(const PointRecord& base, const PointRecord& candidate,
                      const CompareSettings& settings = {}) {
  return compare(report_of({base}), report_of({candidate}), settings);
}

const MetricRecord& metric_of(const CompareRecord& record, Metric metric, std::size_t row = 0) {
  for (const MetricRecord& found : record.rows.at(row).metrics) {
    if (found.metric == metric) return found;
  }
  throw std::logic_error("no such metric");
}

const std::vector<double> kBase = {10000, 10010, 9990, 10005};

std::vector<double> scaled(double factor) {
  std::vector<double> blocks;
  for (const double block : kBase) blocks.push_back(block * factor + 3);
  return blocks;
}

CompareVerdict time_verdict(const std::vector<double>& base, const std::vector<double>& candidate,
                            const CompareSettings& settings = {}) {
  return metric_of(compare(timed_point("none", base), timed_point("none", candidate), settings),
                   Metric::kStepTime)
      .verdict;
}

// A tenth slower, with the extra time all in the backward's attention; and other recompute.
Report slower_report() {
  Report report = report_of({timed_point("none", kBase), timed_point("full", kBase),
                             timed_point("attn_only", kBase), finite_point("save_mm")});
  PointRecord& full = report.points[1];
  set_blocks(full, scaled(1.1));
  full.time->classes[at(Phase::kRecompute)][OpClass::kAttentionForward] =
      std::chrono::microseconds(950);
  full.memory->peak_allocated = *full.memory->peak_allocated + kMiB;
  full.memory->holders_at_peak[Holder::kSavedActivations] += kMiB;
  full.counts->by_class[at(Phase::kRecompute)] = {{OpClass::kAttentionForward, 80}};
  full.counts->by_op[at(Phase::kRecompute)] = {{"rematch::attention", 80}};
  report.points[2] = sample_oom("attn_only");
  report.points[2].identity = sample_point("attn_only").identity;
  report.points[3].steps[0].loss_bits = "0x3fc00001";
  report.points.push_back(finite_point("skip_nth(2)"));
  return report;
}

Report base_report() {
  return report_of({timed_point("none", scaled(1.0)), timed_point("full", kBase),
                    timed_point("attn_only", kBase), finite_point("save_mm"),
                    finite_point("save_compute")});
}

}  // namespace

TEST_CASE("a time is called different only beyond its noise and the floor") {
  CHECK(time_verdict(kBase, scaled(1.0)) == CompareVerdict::kSame);
  CHECK(time_verdict(kBase, scaled(1.1)) == CompareVerdict::kSlower);
  CHECK(time_verdict(scaled(1.1), kBase) == CompareVerdict::kFaster);
  // 1.5 % with a spread of 2 %.
  CHECK(time_verdict({100, 102, 98, 101}, {101.5, 103.5, 99.5, 102.5}) == CompareVerdict::kUnsure);
  // Too few blocks for a spread.
  CHECK(time_verdict({100}, {200}) == CompareVerdict::kUnsure);
  CHECK(time_verdict({}, {200}) == CompareVerdict::kNotMeasured);
}

TEST_CASE("a difference below either floor is none") {
  CompareSettings percent;
  percent.floors[Metric::kStepTime] = {0.2, 0};
  CHECK(time_verdict(kBase, scaled(1.1), percent) == CompareVerdict::kSame);
  CompareSettings absolute;
  absolute.floors[Metric::kStepTime] = {0.01, 2e6};  // 2 ms of 10; 1.1 makes 1
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

// The same ratio and spread in 1 and in 300 rows: the p-value of one row is multiplied by the rows.
TEST_CASE("many rows need surer differences") {
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

// Block medians with a spread of 2 %, twice the floor; the whole report is one trial.
double reports_with_alarm(int num_reports, int num_rows, double slowdown,
                          const std::function<double(std::mt19937&)>& noise) {
  std::mt19937 bits(5);
  int alarms = 0;
  for (int trial = 0; trial < num_reports; ++trial) {
    std::vector<PointRecord> base;
    std::vector<PointRecord> candidate;
    for (int row = 0; row < num_rows; ++row) {
      std::vector<double> blocks[2];
      for (int block = 0; block < 8; ++block) {
        blocks[block % 2].push_back(10000 * (1 + 0.02 * noise(bits)) *
                                    (block % 2 == 1 ? slowdown : 1));
      }
      base.push_back(timed_point(std::to_string(row), blocks[0]));
      candidate.push_back(timed_point(std::to_string(row), blocks[1]));
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

TEST_CASE("reports of identical runs raise a false alarm at most once in a hundred", "[property]") {
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

TEST_CASE("counts are compared for one step, and by op where the sums are equal") {
  PointRecord longer = sample_point();
  longer.counts->counted_steps *= 3;
  for (auto& phase : longer.counts->by_op) {
    for (auto& [op, executed] : phase) executed *= 3;
  }
  CHECK(metric_of(compare(sample_point(), longer), Metric::kExecutedOps).verdict ==
        CompareVerdict::kSame);

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

TEST_CASE("kernels are compared for one step, by class where the sums are equal, if they count") {
  PointRecord other = sample_point();
  const auto kernels_of = [&](const PointRecord& candidate) {
    return metric_of(compare(sample_point(), candidate), Metric::kKernelCount);
  };
  other.kernels->counted_steps *= 2;
  auto& forward = other.kernels->count[at(Phase::kForward)];
  for (auto& [kernel_class, count] : forward) count *= 2;
  CHECK(kernels_of(other).verdict == CompareVerdict::kSame);
  CHECK(kernels_of(other).base == 73);  // (128 + 16 + 2) / 2

  forward["copy"] = forward.at("unknown");
  forward.erase("unknown");
  CHECK(kernels_of(other).verdict == CompareVerdict::kDifferent);
  CHECK(kernels_of(other).note == "as many kernels, but others: copy in forward");

  forward["copy"] += 4;
  CHECK(kernels_of(other).verdict == CompareVerdict::kHigher);
  other.kernels->invalid = "2 records were dropped";
  CHECK(kernels_of(other).verdict == CompareVerdict::kNotMeasured);
}

TEST_CASE("a difference in kernels is said by phase and class, and fails where counts must hold") {
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

TEST_CASE("losses are compared by their bits, at every step") {
  const PointRecord base = finite_point();
  PointRecord other = base;
  other.steps[0].loss_bits = "0x3fc00001";
  const MetricRecord loss = metric_of(compare(base, other), Metric::kLoss);
  CHECK(loss.verdict == CompareVerdict::kDifferent);
  CHECK(loss.note == "first differs at step 0");
  CHECK(metric_of(compare(base, base), Metric::kLoss).verdict == CompareVerdict::kSame);
  // Not a number with the same bits on both sides.
  const MetricRecord broken = metric_of(compare(sample_point(), sample_point()), Metric::kLoss);
  CHECK(broken.verdict == CompareVerdict::kDifferent);
  CHECK(broken.note == "is not finite at step 1");
}

TEST_CASE("points that only one report has, or that failed, are listed and never compared") {
  const CompareRecord record = compare(base_report(), slower_report());
  REQUIRE(record.rows.size() == 3);
  REQUIRE(record.missing.size() == 1);
  CHECK(record.missing[0].policy == "save_compute");
  REQUIRE(record.extra.size() == 1);
  CHECK(record.extra[0].policy == "skip_nth(2)");
  CHECK(record.extra[0].identity_differences.empty());  // the base has nothing like it
  REQUIRE(record.failed.size() == 1);
  CHECK(record.failed[0].policy == "attn_only");
  CHECK(record.failed[0].base_status == PointStatus::kOk);
  CHECK(record.failed[0].candidate_status == PointStatus::kOom);
  CHECK_THAT(record.failed[0].reason, Catch::Contains("20 MiB"));
}

TEST_CASE("a policy that resolves to another plan is still the same policy") {
  PointRecord changed = sample_point("full");
  changed.identity.plan_sha256 = std::string(64, 'c');
  const CompareRecord record = compare(sample_point("full"), changed);
  REQUIRE(record.rows.size() == 1);
  CHECK(record.rows[0].plan_differs);
  CHECK(record.rows[0].base_key != record.rows[0].candidate_key);
  PointRecord larger = sample_point("full");
  larger.identity.dimensions["layers"] = 9;
  CHECK(compare(sample_point("full"), larger).rows.empty());
}

// full: 1000 us slower, of which its recompute's attention has 950.
TEST_CASE("what a difference consists of is said, with its share") {
  const CompareRecord record = compare(base_report(), slower_report());
  const ComparedRow& full = record.rows[1];
  REQUIRE(full.explanations.size() == 4);
  CHECK(full.explanations[0].by == "phase and op class");
  CHECK(full.explanations[0].parts[0].name == "attention_forward in recompute");
  CHECK(full.explanations[0].parts[0].share_ratio == Approx(950.0 / 1003).epsilon(0.001));
  CHECK_THAT(full.explanations[0].sentence, Catch::StartsWith("95 % of the +10 % is attention_"));
  CHECK(full.explanations[1].parts[0].name == "saved_activations");
  CHECK(full.explanations[1].parts[0].share_ratio == 1);
  CHECK(full.explanations[2].sentence == "100 % of the +3.8 % is attention_forward in recompute");
}

// 100 MiB more at the peak: 147 of gradients and 3 of parameters more, 50 of activations less.
TEST_CASE("parts stand by their size whichever way they moved, and small ones are not named") {
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
             Catch::StartsWith("147 % of the ") && Catch::EndsWith(", -50 % saved_activations"));
}

// Kernels of a step of 10,000 us, and of one of 11,003: 800 us more in recompute's attention, 300
// in a new class, 200 less in forward's matmuls; the other 103 run no kernel. Totals of two steps,
// and of four.
std::pair<PointRecord, PointRecord> points_with_kernels() {
  using std::chrono::microseconds;
  PointRecord base = timed_point("full", kBase);
  PointRecord candidate = timed_point("full", scaled(1.1));
  base.kernels->counted_steps = 2;
  base.kernels->time = {};
  base.kernels->time[at(Phase::kForward)] = {{"matmul", microseconds(2 * 3000)},
                                             {"attention_forward", microseconds(2 * 900)}};
  base.kernels->time[at(Phase::kRecompute)] = {{"attention_forward", microseconds(2 * 900)}};
  candidate.kernels->counted_steps = 4;
  candidate.kernels->time = {};
  candidate.kernels->time[at(Phase::kForward)] = {{"matmul", microseconds(4 * 2800)},
                                                  {"attention_forward", microseconds(4 * 900)}};
  candidate.kernels->time[at(Phase::kRecompute)] = {{"attention_forward", microseconds(4 * 1700)},
                                                    {"fill", microseconds(4 * 300)}};
  return {std::move(base), std::move(candidate)};
}

double share_of(const ExplanationRecord& explanation, const std::string& name) {
  for (const ContributionRecord& part : explanation.parts) {
    if (part.name == name) return part.share_ratio;
  }
  throw std::logic_error("no part " + name);
}

TEST_CASE("where kernels were timed, a difference in time is said by kernel class") {
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
             Catch::StartsWith("80 % of the +10 % is attention_forward kernels in recompute, 30 % "
                               "fill kernels in recompute, -20 % matmul kernels in forward"));
}

TEST_CASE("kernels that overlap, cannot be trusted or take equal times do not explain by a rest") {
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

TEST_CASE("what to fail on is found in the verdicts") {
  CompareSettings settings;
  settings.fail_on = {FailOn::kSlower, FailOn::kPeak,    FailOn::kCounts,
                      FailOn::kLoss,   FailOn::kMissing, FailOn::kFailed};
  CHECK(compare(base_report(), slower_report(), settings).failed_on ==
        std::vector<std::string>{"slower", "peak", "counts", "loss", "missing", "failed"});
  CHECK(compare(base_report(), base_report(), settings).failed_on.empty());
  // The other way round only what changed in either direction remains.
  CHECK(compare(slower_report(), base_report(), settings).failed_on ==
        std::vector<std::string>{"counts", "loss", "missing"});
}

TEST_CASE("what was not compared is not passed") {
  CompareSettings settings;
  const auto open = [&](FailOn what, const PointRecord& base, const PointRecord& candidate) {
    settings.fail_on = {what};
    const CompareRecord record = compare(base, candidate, settings);
    CHECK(record.failed_on.empty());
    const std::vector<std::string> lines = undecided(record);
    return lines.empty() ? "" : lines.at(0);
  };
  const PointRecord full = timed_point("full", kBase);
  for (const FailOn what : {FailOn::kSlower, FailOn::kPeak, FailOn::kCounts, FailOn::kLoss}) {
    CHECK(open(what, full, full).empty());
    CHECK(open(what, full, timed_point("none", kBase)) ==
          std::string(to_string(what)) + " (no point is in both reports and finished in both)");
  }
  struct Case {
    FailOn what;
    const char* metric;
    void (*forget)(PointRecord&);
  };
  const Case rows[] = {
      {FailOn::kSlower, "step_time", [](PointRecord& point) { point.time.reset(); }},
      {FailOn::kPeak, "peak_allocated",
       [](PointRecord& point) { point.memory->peak_allocated.reset(); }},
      {FailOn::kCounts, "executed_ops", [](PointRecord& point) { point.counts.reset(); }},
      {FailOn::kCounts, "kernel_count", [](PointRecord& point) { point.kernels.reset(); }},
      {FailOn::kLoss, "loss", [](PointRecord& point) { point.steps.clear(); }}};
  for (const Case& row : rows) {
    CAPTURE(row.metric);
    const std::string line = std::string(to_string(row.what)) + " (" + row.metric + " is not known";
    PointRecord bare = full;
    row.forget(bare);
    CHECK(open(row.what, full, bare) == line + " in the candidate for full on_demand)");
    CHECK(open(row.what, bare, full) == line + " in the base for full on_demand)");
  }
  PointRecord bare = full;
  bare.time.reset();
  CHECK(open(FailOn::kSlower, bare, bare) ==
        "slower (step_time is known on neither side for full on_demand)");
  CHECK_THAT(open(FailOn::kSlower, timed_point("full", {100}), timed_point("full", {200})),
             Catch::Contains("one block on a side"));
  // No kernels on a CPU is no obstacle while ops are counted.
  bare = full;
  bare.kernels.reset();
  CHECK(open(FailOn::kCounts, bare, bare).empty());
}

TEST_CASE("a different environment is named") {
  Report other = base_report();
  other.provenance.environment.libtorch_version = "2.12.0";
  other.provenance.environment.hostname = "elsewhere";
  const CompareRecord record = compare(base_report(), other);
  REQUIRE(record.environment_differences.size() == 1);
  CHECK(record.environment_differences[0] ==
        NamedDifference{"libtorch_version", "unknown", "2.12.0"});
  CHECK_THAT(record.verdict, Catch::Contains("libtorch_version unknown and 2.12.0"));
}

TEST_CASE(
    "a variable that changes bits or bytes, or a clock that one side does not know, differs") {
  using Differences = std::vector<NamedDifference>;
  const auto differences = [](const std::function<void(Environment&)>& change) {
    Provenance other = sample_provenance();
    change(other.environment);
    return environment_differences(sample_provenance(), other);
  };
  CHECK(differences([](Environment& environment) {
          environment.variables["NVIDIA_TF32_OVERRIDE"] = "0";
          environment.variables["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True";
        }) == Differences{{"NVIDIA_TF32_OVERRIDE", "unset", "0"},
                          {"PYTORCH_CUDA_ALLOC_CONF", "unset", "expandable_segments:True"}});
  CHECK(differences([](Environment& environment) {
          environment.variables["OMP_NUM_THREADS"] = "3";
          environment.variables["SLURM_JOB_ID"] = "17";
        }).empty());
  CHECK(differences([](Environment& environment) { environment.sm_clock_mhz = 1755; }) ==
        Differences{{"sm_clock_mhz", "unknown", "1755"}});
  Provenance measured = sample_provenance();
  Provenance near = measured;
  measured.environment.sm_clock_mhz = 1755;
  near.environment.sm_clock_mhz = 1740;
  CHECK(environment_differences(measured, near).empty());
  CHECK(differences([](Environment& environment) {
          environment.pcie_current_generation = 1;  // at rest
          environment.pcie_current_width = 8;
          environment.other_processes = 3;
        }).empty());
}

TEST_CASE("a change that rounding would hide is told by how much it is, with its unit") {
  CompareSettings settings;
  settings.floors[Metric::kStepTime] = {0, 0};
  const PointRecord base = timed_point("none", {100000, 100001, 100002, 100001});
  PointRecord changed = timed_point("none", {100010, 100011, 100012, 100011});
  changed.steps.back().loss = *base.steps.back().loss + 2.5e-7;
  changed.steps.back().loss_bits = "0x3fc00001";
  const std::string text = render_compare(compare(base, changed, settings), TableFormat::kText);
  CHECK_THAT(text, Catch::Contains("(+2.5e-07)"));
  CHECK_THAT(text, Catch::Contains("step_time 100 ms to 100 ms (+10.0 us)"));
}

TEST_CASE("a compare record's JSON fits its schema, reads back and is the approved one",
          "[golden]") {
  CompareSettings settings;
  settings.fail_on = {FailOn::kSlower, FailOn::kLoss};
  const CompareRecord record = compare(base_report(), slower_report(), settings);
  const Json json = compare_to_json(record);
  CHECK(validate(json).value_or("") == "");
  CHECK(compare_to_json(compare_from_json(json)) == json);
  testing::check_golden("compare/compare.json", json.dump(2) + "\n");
  testing::check_golden("compare/compare.txt", render_compare(record, TableFormat::kText));
  testing::check_golden("compare/compare.md", render_compare(record, TableFormat::kMarkdown));
}

TEST_CASE("a compare record whose row has other metrics than its floors is refused by path") {
  const Json json = compare_to_json(compare(base_report(), slower_report()));
  const auto refusal = [&](const char* pointer) {
    Json broken = json;
    Json& list = broken[Json::json_pointer(pointer)];
    list.erase(2);
    CHECK_THROWS_WITH(compare_from_json(broken),
                      "rows[0].metrics: are not the metrics that `floors` names");
  };
  refusal("/floors");
  refusal("/rows/0/metrics");
}

// Rows of every verdict, with names that are long or mean something in markup, kernels, points of
// one side alone, and another version.
TEST_CASE("the page of a comparison", "[golden]") {
  Report base = base_report();
  Report candidate = slower_report();
  const auto [below, above] = points_with_kernels();
  base.points[1].kernels = below.kernels;
  candidate.points[1].kernels = above.kernels;
  const auto add = [&](const std::string& policy, const std::vector<double>& left,
                       const std::vector<double>& right) {
    base.points.push_back(timed_point(policy, left));
    candidate.points.push_back(timed_point(policy, right));
  };
  add("torchtune(ac_mode=selective,ac_option=2,save=[attention,aten::mm,aten::addmm])", kBase,
      scaled(0.8));
  add("<script>alert('x')</script>", kBase, scaled(2.6));
  add("nth_first(2)", {10000, 13000, 9000, 10100}, {10100, 9100, 13100, 11000});
  add("nth_last(2)", kBase, scaled(1.0));
  base.points.back().memory->peak_allocated = Bytes{40 * kMiB.count};
  candidate.provenance.environment.libtorch_version = "2.12.0";
  const std::string page = render_page({}, {{"compare.json", compare(base, candidate)}});
  testing::check_golden("render/compare.html", page);
  CHECK_THAT(page, !Catch::Contains("<script") && Catch::Contains("kernels in recompute"));
}

// The base has seeds 0 and 1, the candidate seed 1 and another width: of the base's two the one
// with seed 1 is most like it.
TEST_CASE("a point without a partner says in what it differs from the most similar one") {
  PointRecord zero = sample_point("none");
  zero.identity.seed = 0;
  PointRecord one = zero;
  one.identity.seed = 1;
  PointRecord wide = one;
  const auto [name, width] = *one.identity.dimensions.begin();
  wide.identity.dimensions[name] = width + 1;
  const CompareRecord record = compare(report_of({zero, one}), report_of({wide}));
  REQUIRE(record.missing.size() == 2);
  REQUIRE(record.extra.size() == 1);
  const NamedDifference in_width{name, std::to_string(width), std::to_string(width + 1)};
  const NamedDifference in_seed{"seed", "0", "1"};
  CHECK((record.extra[0].identity_differences == std::vector<NamedDifference>{in_width}));
  CHECK(
      (record.missing[0].identity_differences == std::vector<NamedDifference>{in_width, in_seed}));
  CHECK((record.missing[1].identity_differences == std::vector<NamedDifference>{in_width}));
  CHECK_THAT(render_compare(record, TableFormat::kMarkdown),
             Catch::Contains("in the base, 1 in the candidate"));
  const Json json = compare_to_json(record);
  CHECK((compare_from_json(json).missing[0].identity_differences ==
         record.missing[0].identity_differences));
}

}  // namespace rematch
