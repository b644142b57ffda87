#include "reports/render/noise.h"

#include "reports/render/tables/report_table.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

using testing::sample_point;
using testing::sample_provenance;
using testing::sample_recomputing;

// A report from a machine that is too noisy for timing: policy `none`, and four policies whose
// ratios have wide intervals. The last interval spans a factor of four.
Report noisy_report() {
  Report report{sample_provenance(), {}, {}};
  report.points.push_back(sample_point("none"));
  report.points[0].time->control = ControlRecord{1.4, {{0.5, 3744.95}}};
  for (const char* policy : {"first_n(4)", "attn_only", "save_mm", "sac_titan"}) {
    PointRecord point = sample_recomputing(policy, 4, Bytes{30 << 20}, 1.0);
    point.time->ratio = StepRatioRecord{"none", 1.0, {{0.8, 1.25}}, "unsure"};
    point.time->quality = TimeQuality{"noisy", 0.18, 0.0, {"steps of one process spread by 18 %"}};
    report.points.push_back(point);
  }
  report.points[4].time->ratio->interval = {{0.4, 1.64}};
  report.points[4].time->quality->verdict = "few_rounds";
  return report;
}

std::size_t occurrences(const std::string& text, const std::string& words) {
  std::size_t number = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) {
    ++number;
  }
  return number;
}

}  // namespace

// An interval that spans more than a factor of 2 could contain the ratio of any policy. The
// interval from 0.8 to 1.25 spans a factor of 1.6, and the one from 0.4 to 1.64 a factor of 4.1.
TEST_CASE("a time whose interval is as wide as the effect of any policy is too noisy") {
  CHECK_FALSE(is_too_noisy(std::nullopt));
  CHECK_FALSE(is_too_noisy({{0.8, 1.25}}));
  CHECK_FALSE(is_too_noisy({{1.0, 2.0}}));
  CHECK(is_too_noisy({{0.4, 1.64}}));
  CHECK(is_too_noisy({{0.0, 0.0}}) == false);
  CHECK(is_too_noisy({{0.0, 1.0}}));
}

TEST_CASE("noise is mentioned once below the table, with advice") {
  const std::string text = render_table(noisy_report(), TableFormat::kText, 1000);
  CHECK(occurrences(text, "spread by") == 1);
  CHECK(occurrences(text, "idle machine") == 1);
  CHECK(occurrences(text, "time unsure") == 3);             // three rows say that the time is
                                                            // unsure
  CHECK(occurrences(text, "1.00 [0.80 1.25]") == 3);        // these rows show the interval of the
                                                            // ratio
  CHECK(occurrences(text, "; too noisy to measure") == 1);  // one row shows no interval, because
                                                            // the interval is too wide
  CHECK_THAT(text, Catch::Contains(
                       "4 of 4 step times cannot be distinguished from the reference's. Unreliable "
                       "times: 1 with few rounds, 3 noisy (first_n(4) on_demand, "
                       "attn_only on_demand, save_mm on_demand and 1 more)"));
}

TEST_CASE("excessive noise is described in words, not as a percentage") {
  const std::string text = render_table(noisy_report(), TableFormat::kText, 1000);
  CHECK_THAT(text, Catch::Contains("the two timings of none on_demand differ by more than any "
                                   "policy would: this machine is too noisy for timing."));
  CHECK(text.find("3745") == std::string::npos);
  CHECK(text.find("1.64") == std::string::npos);
}

TEST_CASE("tables contain plain words instead of enumerator names") {
  const std::string text = render_table(noisy_report(), TableFormat::kText, 1000);
  for (const char* name : {"few_rounds", "saved_activations", "recompute_transient"}) {
    CHECK(text.find(name) == std::string::npos);
  }
  CHECK_THAT(text, Catch::Contains("held by saved activations 40 %"));
}

}  // namespace rematch
