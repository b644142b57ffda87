#include "reports/render/tables/load_table.h"

#include "tests/support/catch.h"

namespace rematch {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kWide = 2000;

// Batch 2 makes the most; 4 is the largest that fits.
LargestLoad found_loads() {
  LargestLoad found;
  found.tried = {{1, 1000.0}, {2, 1500.0}, {4, 1200.0}, {8, std::nullopt}};
  found.largest = 4;
  found.best = 2;
  return found;
}

std::string text_of(int world, int num_batches, const LargestLoad& found) {
  std::map<std::int64_t, LoadPlan> plans;
  for (const TriedLoad& tried : found.tried) {
    if (!tried.tokens_per_second) continue;
    plans[tried.load] = {tried.load,
                         *tried.tokens_per_second,
                         *tried.tokens_per_second * num_batches,
                         milliseconds(tried.load),
                         Bytes{tried.load << 30},
                         tried.load * 10,
                         "layers 0-3: keep all"};
  }
  LoadsRecord record;
  record.model = "llama3_8b";
  record.device = "h100";
  record.budget = Bytes{std::int64_t{70} << 30};
  record.world = world;
  record.num_batches = num_batches;
  record.dimension = "batch";
  record.most = 8;
  add_loads(found, std::move(plans), record);
  return loads_to_text(record, TableFormat::kText, kWide);
}

TEST_CASE("loads say which is the largest that fits and which makes the most") {
  const std::string text = text_of(1, 1, found_loads());
  CHECK_THAT(text, Catch::Contains("the largest batch that fits is 4; the highest throughput is "
                                   "1500 tokens/s at 2. "));
  CHECK_THAT(text, Catch::Contains("highest throughput: layers 0-3: keep all"));
  CHECK_THAT(text, !Catch::Contains("rank"));
  LargestLoad all = found_loads();
  all.tried.back().tokens_per_second = 1100;
  all.largest = 8;
  CHECK_THAT(text_of(1, 1, all), Catch::Contains("is 8, the most that was asked for;"));
}

TEST_CASE("rates of one of several ranks say so, and what all make together") {
  const std::string text = text_of(8, 8, found_loads());
  CHECK_THAT(text, Catch::Contains("tokens/s per rank (roofline)"));
  CHECK_THAT(text, Catch::Contains("within 70.0 GiB on each of 8 ranks: "));
  CHECK_THAT(text, Catch::Contains("1500 tokens/s per rank, 12000 over all 8, at 2. "));
  CHECK_THAT(text, Catch::Contains("communication by its link, as if nothing ran beside it"));
}

TEST_CASE("ranks that share a batch make its tokens together") {
  const std::string text = text_of(8, 4, found_loads());
  CHECK_THAT(text, Catch::Contains("tokens/s per 2 ranks (roofline)"));
  CHECK_THAT(text, Catch::Contains("1500 tokens/s per 2 ranks, 6000 over all 8, at 2. "));
}

TEST_CASE("loads that were stopped claim no largest and no best") {
  LargestLoad found = found_loads();
  found.is_complete = false;
  const std::string text = text_of(1, 1, found);
  CHECK_THAT(text, Catch::Contains("stopped before every load was tried: the largest batch known "
                                   "to fit is 4; of those tried, the highest"));
  CHECK_THAT(text, !Catch::Contains("that fits is"));
  CHECK(text_of(1, 1, {}).empty());
}

}  // namespace
}  // namespace rematch
