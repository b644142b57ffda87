// Merges the records of a point's ranks into one record of the point.
#pragma once

#include <vector>

#include "policies/trace/phase.h"
#include "reports/record/point.h"

namespace rematch {

// Counts the collectives among the executed ops, by kind.
RanksRecord::Counts collectives_in(const OpCounts& ops);

// Writes a rank's own counts and peak to `record.ranks`. Must be called after the exact passes.
void note_rank(int rank, const RanksRecord::Counts& collective_bytes, PointRecord& record);

// Merges the records of all ranks, given in rank order. Every rank must have ended. Counts and
// times come from rank 0, and memory figures from the rank with the highest peak. The loss is the
// mean over different batches. Hashes cover all ranks. If ranks failed, returns the record of the
// rank that best explains the failure. If ranks executed different ops, the point is invalid.
PointRecord merge_ranks(std::vector<PointRecord> ranks);

}  // namespace rematch
