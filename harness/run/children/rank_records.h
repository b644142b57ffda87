// Merges the records of a point's ranks into one record of the point.
#pragma once

#include <vector>

#include "policies/trace/phase.h"
#include "reports/record/point.h"

namespace rematch {

// Counts the collectives among the executed ops, by kind.
RanksRecord::Counts collectives_in(const OpCounts& ops);

// Writes a rank's own counts and peak to `record.ranks`. Call this after the exact passes.
void note_rank(int rank, const RanksRecord::Counts& collective_bytes, PointRecord& record);

// Merges the records of all ranks, given in rank order. Every rank must have ended. Counts and
// times come from rank 0. The memory figures come from the rank with the highest peak. Losses are
// averaged over the ranks that have different batches. Hashes cover all ranks. If a rank failed,
// returns the failed rank's record. If several ranks failed, prefers a rank with a failure of its
// own over ranks that failed because another rank was gone. Ranks that executed different ops make
// the point invalid.
PointRecord merge_ranks(std::vector<PointRecord> ranks);

}  // namespace rematch
