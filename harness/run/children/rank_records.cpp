#include "harness/run/children/rank_records.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "harness/measure/hash.h"
#include "harness/run/passes/op_counts.h"
#include "models/preset/parallel.h"
#include "policies/base/hashing.h"
#include "policies/trace/collective.h"
#include "reports/record/point.h"

namespace rematch {
namespace {

// Orders statuses by how well they explain why a point failed. The best explanation gets 0.
int rank_of_reason(PointStatus status) {
  switch (status) {
    case PointStatus::kOk:
      return 9;
    case PointStatus::kCrash:  // a crash is often only the result of another rank's failure
      return 2;
    case PointStatus::kOom:
      return 0;
    default:
      return 1;
  }
}

Bytes peak_of(const PointRecord& record) {
  if (!record.memory || !record.memory->peak_allocated) return {};
  return *record.memory->peak_allocated;
}

std::string name_on(std::size_t rank, const std::string& tensor) {
  return "rank" + std::to_string(rank) + "/" + tensor;
}

// Rank 0's hashes keep their names. The rank is added to the names of the other ranks' hashes.
void add_steps(std::size_t rank, const std::vector<StepRecord>& steps, PointRecord& merged) {
  for (std::size_t step = 0; step < steps.size() && step < merged.steps.size(); ++step) {
    StepRecord& whole = merged.steps[step];
    const StepRecord& own = steps[step];
    for (const auto& [tensor, hash] : own.gradient_hashes) {
      whole.gradient_hashes[name_on(rank, tensor)] = hash;
    }
    whole.gradient_hashes[name_on(rank, "loss")] = own.loss_bits;
    whole.parameter_hash = sha256_hex(whole.parameter_hash + own.parameter_hash);
    whole.generator_hash = sha256_hex(whole.generator_hash + own.generator_hash);
  }
}

// If ranks have different batches, or different tokens of a batch, a step's loss is the mean over
// the ranks, as in a trainer's log. Ranks of tp have the same loss. The hashes contain the exact
// loss of each rank.
void average_losses(const std::vector<PointRecord>& ranks, PointRecord& merged) {
  ModelSpec spec;
  spec.dimensions = merged.identity.dimensions;
  // Ranks of tp are consecutive: see Note [Ranks of a layout]. The last stage of a pipeline has the
  // loss.
  const auto sharing = static_cast<std::size_t>(rank_axis(spec, "tp").size);
  const auto world = static_cast<std::size_t>(world_size(spec));
  const std::size_t of_stage = world / static_cast<std::size_t>(num_stages(spec.dimensions));
  const std::size_t num_losses = of_stage / sharing;
  const std::size_t first = world - of_stage;
  if (num_losses <= 1 && first == 0) return;
  for (std::size_t step = 0; step < merged.steps.size(); ++step) {
    double sum = 0;
    for (std::size_t rank = first; rank < ranks.size(); rank += sharing) {
      if (step >= ranks[rank].steps.size()) return;
      sum += number_of_bits(ranks[rank].steps[step].loss_bits).value();
    }
    StepRecord& whole = merged.steps[step];
    whole.gradient_hashes[name_on(0, "loss")] = whole.loss_bits;
    const double mean = sum / static_cast<double>(num_losses);
    whole.loss_bits = bits_of(mean);
    whole.loss = std::isfinite(mean) ? std::optional(mean) : std::nullopt;
  }
}

template <class Counts>
void add_to(const Counts& counts, Counts& sum) {
  for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
    for (const auto& [name, number] : counts[phase]) sum[phase][name] += number;
  }
}

// Adds what one rank of another stage executed.
void add_counts(const CountsRecord& stage, CountsRecord& sum) {
  add_to(stage.by_op, sum.by_op);
  add_to(stage.by_class, sum.by_class);
}

void add_collectives(const RanksRecord& stage, RanksRecord& sum) {
  add_to(stage.collectives, sum.collectives);
  add_to(stage.collective_bytes, sum.collective_bytes);
}

}  // namespace

RanksRecord::Counts collectives_in(const OpCounts& ops) {
  RanksRecord::Counts collectives;
  for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
    for (const auto& [op, executed] : ops[phase]) {
      const auto kind = collective_kind(op);
      if (kind) collectives[phase][std::string(to_string(*kind))] += executed;
    }
  }
  return collectives;
}

void note_rank(int rank, const RanksRecord::Counts& collective_bytes, PointRecord& record) {
  if (!record.counts) return;
  RanksRecord& ranks = record.ranks.emplace();
  ranks.counted_steps = record.counts->counted_steps;
  ranks.collectives = collectives_in(record.counts->by_op);
  ranks.collective_bytes = collective_bytes;
  RankRecord& own = ranks.ranks.emplace_back();
  own.rank = ranks.worst_rank = rank;
  if (!record.memory) return;
  own.peak_allocated = record.memory->peak_allocated;
  own.after_forward = record.memory->after_forward;
}

PointRecord merge_ranks(std::vector<PointRecord> ranks) {
  const auto worst_end = std::min_element(
      ranks.begin(), ranks.end(), [](const PointRecord& one, const PointRecord& other) {
        return rank_of_reason(one.status) < rank_of_reason(other.status);
      });
  if (worst_end->status != PointStatus::kOk) {
    PointRecord failed = std::move(*worst_end);
    failed.reason = "rank " + std::to_string(worst_end - ranks.begin()) + ": " + failed.reason;
    return failed;
  }
  const auto highest = std::max_element(ranks.begin(), ranks.end(),
                                        [](const PointRecord& one, const PointRecord& other) {
                                          return peak_of(one) < peak_of(other);
                                        });
  const std::optional<MemoryRecord> memory = highest->memory;
  const int worst_rank = static_cast<int>(highest - ranks.begin());
  PointRecord merged = ranks.front();
  merged.memory = memory;
  ModelSpec spec;
  spec.dimensions = merged.identity.dimensions;
  const std::size_t of_stage = ranks.size() / static_cast<std::size_t>(num_stages(spec.dimensions));
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    add_steps(rank, ranks[rank].steps, merged);
    if (!merged.counts || !ranks[rank].counts) continue;
    // The ranks of a stage run the same ops.
    const std::size_t first_of_stage = rank / of_stage * of_stage;
    if (rank == first_of_stage) {
      add_counts(*ranks[rank].counts, *merged.counts);
      if (merged.ranks && ranks[rank].ranks) add_collectives(*ranks[rank].ranks, *merged.ranks);
      continue;
    }
    const OpCounts& of_stage_counts = ranks[first_of_stage].counts->by_op;
    const auto differs = first_difference(of_stage_counts, ranks[rank].counts->by_op);
    if (!differs) continue;
    merged.status = PointStatus::kInvalid;
    merged.reason = "rank " + std::to_string(rank) +
                    " executed different ops: " + std::to_string(differs->other) + " " +
                    differs->op + " in " + std::string(to_string(differs->phase)) + ", rank " +
                    std::to_string(first_of_stage) + " " + std::to_string(differs->one);
    break;
  }
  average_losses(ranks, merged);
  if (!merged.ranks) return merged;
  merged.ranks->ranks.clear();
  for (const PointRecord& record : ranks) {
    if (record.ranks) merged.ranks->ranks.push_back(record.ranks->ranks.at(0));
  }
  merged.ranks->worst_rank = worst_rank;
  return merged;
}

}  // namespace rematch
