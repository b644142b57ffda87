#include "harness/run/children/rank_records.h"

#include <limits>

#include "harness/measure/hash.h"
#include "reports/record/point.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

constexpr auto kInForward = static_cast<std::size_t>(Phase::kForward);
constexpr auto kInRecompute = static_cast<std::size_t>(Phase::kRecompute);

PointRecord of_rank(int rank, std::int64_t peak) {
  PointRecord record;
  record.counts.emplace();
  record.counts->counted_steps = 2;
  record.counts->by_op[kInForward] = {{"aten::mm", 6}, {"_c10d_functional::all_reduce", 4}};
  record.memory.emplace();
  record.memory->peak_allocated = Bytes{peak};
  StepRecord step;
  step.loss_bits = "0x1";
  step.parameter_hash = "p" + std::to_string(rank);
  step.gradient_hashes = {{"w", "g" + std::to_string(rank)}};
  record.steps = {step};
  note_rank(rank, {}, record);
  return record;
}

TEST_CASE("collectives are counted by kind, and waits and other ops are not counted") {
  OpCounts ops;
  ops[kInForward] = {{"_c10d_functional::all_gather_into_tensor", 2},
                     {"_c10d_functional::all_gather_into_tensor_coalesced", 3},
                     {"_c10d_functional::wait_tensor", 5},
                     {"aten::mm", 7}};
  ops[kInRecompute] = {{"_c10d_functional::reduce_scatter_tensor", 1}};
  const RanksRecord::Counts counts = collectives_in(ops);
  CHECK(counts[kInForward] == std::map<std::string, std::int64_t>{{"all_gather", 5}});
  CHECK(counts[kInRecompute] == std::map<std::string, std::int64_t>{{"reduce_scatter", 1}});
}

TEST_CASE(
    "a merged point has the highest peak of all ranks, and the gradient hashes of every rank") {
  const PointRecord merged = merge_ranks({of_rank(0, 100), of_rank(1, 300), of_rank(2, 200)});
  CHECK(merged.status == PointStatus::kOk);
  CHECK(merged.memory->peak_allocated == Bytes{300});
  REQUIRE(merged.ranks);
  CHECK(merged.ranks->worst_rank == 1);
  REQUIRE(merged.ranks->ranks.size() == 3);
  CHECK(merged.ranks->ranks[2].peak_allocated == Bytes{200});
  CHECK(merged.ranks->collectives[kInForward].at("all_reduce") == 4);
  const std::map<std::string, std::string>& hashes = merged.steps.at(0).gradient_hashes;
  CHECK(hashes.at("w") == "g0");
  CHECK(hashes.at("rank2/w") == "g2");
  PointRecord other = of_rank(1, 300);
  other.steps[0].parameter_hash = "another";
  const PointRecord different = merge_ranks({of_rank(0, 100), other, of_rank(2, 200)});
  CHECK(different.steps.at(0).parameter_hash != merged.steps.at(0).parameter_hash);
}

// Makes records of four ranks in two pairs. The ranks of a pair have the same batch, so they also
// have the same loss.
std::vector<PointRecord> with_losses(const std::map<std::string, std::int64_t>& dimensions,
                                     const std::vector<float>& losses) {
  std::vector<PointRecord> ranks;
  for (std::size_t rank = 0; rank < losses.size(); ++rank) {
    PointRecord& record = ranks.emplace_back(of_rank(static_cast<int>(rank), 100));
    record.identity.dimensions = dimensions;
    record.steps[0].loss = losses[rank];
    record.steps[0].loss_bits = bits_of(losses[rank]);
  }
  return ranks;
}

TEST_CASE("if ranks have separate batches, the loss is the mean of their losses") {
  const PointRecord merged =
      merge_ranks(with_losses({{"fsdp", 2}, {"tp", 2}}, {2.0F, 2.0F, 2.5F, 2.5F}));
  const StepRecord& step = merged.steps.at(0);
  CHECK(step.loss == 2.25);
  CHECK(step.loss_bits == bits_of(2.25));
  CHECK(step.gradient_hashes.at("rank0/loss") == bits_of(2.0F));
  CHECK(step.gradient_hashes.at("rank3/loss") == bits_of(2.5F));
}

TEST_CASE("if ranks have separate tokens of a batch, the loss is the mean of their losses") {
  for (const char* axis : {"ulysses", "cp"}) {
    const PointRecord merged = merge_ranks(with_losses({{axis, 2}}, {2.0F, 2.5F}));
    CHECK(merged.steps.at(0).loss == 2.25);
    CHECK(merged.steps.at(0).gradient_hashes.at("rank0/loss") == bits_of(2.0F));
  }
  const PointRecord inside =
      merge_ranks(with_losses({{"cp", 2}, {"fsdp", 4}, {"tp", 1}}, {2.0F, 2.5F, 4.0F, 5.5F}));
  CHECK(inside.steps.at(0).loss == 3.5);
}

TEST_CASE("the loss of ranks of tp is the loss of rank 0, bit for bit") {
  const PointRecord merged = merge_ranks(with_losses({{"tp", 2}}, {2.0F, 2.0F}));
  CHECK(merged.steps.at(0).loss == 2.0);
  CHECK(merged.steps.at(0).loss_bits == bits_of(2.0F));
  CHECK_FALSE(merged.steps.at(0).gradient_hashes.contains("rank0/loss"));
}

TEST_CASE("the mean loss is not finite if one rank's loss is not finite") {
  const float infinite = std::numeric_limits<float>::infinity();
  const PointRecord merged = merge_ranks(with_losses({{"ep", 2}}, {2.0F, infinite}));
  CHECK_FALSE(merged.steps.at(0).loss);
  CHECK(number_of_bits(merged.steps.at(0).loss_bits) == std::numeric_limits<double>::infinity());
}

TEST_CASE("ranks that executed different ops make the point invalid") {
  PointRecord other = of_rank(1, 300);
  other.counts->by_op[kInForward]["aten::mm"] = 5;
  const PointRecord merged = merge_ranks({of_rank(0, 100), other});
  CHECK(merged.status == PointStatus::kInvalid);
  CHECK(merged.reason == "rank 1 executed different ops: 5 aten::mm in forward, rank 0 6");
}

TEST_CASE(
    "the reason comes from the rank that ran out of memory, not from the ranks that lost contact "
    "with it") {
  PointRecord lost = of_rank(0, 100);
  lost.status = PointStatus::kCrash;
  lost.reason = "rank 1 is gone";
  PointRecord full = of_rank(1, 300);
  full.status = PointStatus::kOom;
  full.reason = "out of memory";
  const PointRecord merged = merge_ranks({lost, full});
  CHECK(merged.status == PointStatus::kOom);
  CHECK(merged.reason == "rank 1: out of memory");
}

}  // namespace
}  // namespace rematch
