#include "reports/render/tables/load_table.h"

#include "tests/support/catch.h"

namespace rematch {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kWide = 2000;

LoadPlan plan_of(std::int64_t load, double rate) {
  return {load, rate, {}, milliseconds(load), Bytes{load << 30}, load * 10, "layers 0-3: keep all"};
}

// Batch 2 has the highest throughput. Batch 4 is the largest batch that fits.
LoadsRecord found_loads(int world = 1, int num_batches = 1) {
  LoadsRecord record;
  record.model = "llama3_8b";
  record.device = "h100";
  record.budget = Bytes{std::int64_t{70} << 30};
  record.world = world;
  record.num_batches = num_batches;
  record.dimension = "batch";
  record.most = 8;
  record.tried = {plan_of(1, 1000), plan_of(2, 1500), plan_of(4, 1200),
                  LoadPlan{8, {}, {}, {}, {}, {}, {}}};
  record.largest = 4;
  record.best = 2;
  return record;
}

std::string text_of(LoadsRecord record) {
  for (LoadPlan& plan : record.tried) {
    if (!plan.tokens_per_second) continue;
    plan.tokens_per_second_all_ranks = *plan.tokens_per_second * record.num_batches;
  }
  return loads_to_text(record, TableFormat::kText, kWide);
}

TEST_CASE("a table of loads names the largest load that fits and the fastest load") {
  const std::string text = text_of(found_loads());
  CHECK_THAT(text, Catch::Contains("the largest batch that fits is 4; the highest throughput is "
                                   "1500 tokens/s at 2. "));
  CHECK_THAT(text, Catch::Contains("highest throughput: layers 0-3: keep all"));
  CHECK_THAT(text, !Catch::Contains("rank"));
  LoadsRecord all = found_loads();
  all.tried.back() = plan_of(8, 1100);
  all.largest = 8;
  CHECK_THAT(text_of(all), Catch::Contains("is 8, the largest that was tried;"));
}

TEST_CASE("the table gives the rate per rank and the rate of all ranks together") {
  const std::string text = text_of(found_loads(8, 8));
  CHECK_THAT(text, Catch::Contains("tokens/s per rank (roofline)"));
  CHECK_THAT(text, Catch::Contains("within 70.0 GiB on each of 8 ranks: "));
  CHECK_THAT(text, Catch::Contains("1500 tokens/s per rank, 12000 over all 8, at 2. "));
  CHECK_THAT(text, Catch::Contains("communication by its link, without overlap"));
}

TEST_CASE("the table gives one rate for all ranks that share a batch") {
  const std::string text = text_of(found_loads(8, 4));
  CHECK_THAT(text, Catch::Contains("tokens/s per 2 ranks (roofline)"));
  CHECK_THAT(text, Catch::Contains("1500 tokens/s per 2 ranks, 6000 over all 8, at 2. "));
}

TEST_CASE("a stopped search of loads claims neither a largest nor a best load") {
  LoadsRecord found = found_loads();
  found.is_complete = false;
  const std::string text = text_of(found);
  CHECK_THAT(text, Catch::Contains("stopped before every load was tried: the largest batch known "
                                   "to fit is 4; of the loads that were tried, the highest"));
  CHECK_THAT(text, !Catch::Contains("that fits is"));
  CHECK(text_of(LoadsRecord()).empty());
}

}  // namespace
}  // namespace rematch
