// The records of one point's ranks as the point's record.
#pragma once

#include <vector>

#include "policies/trace/phase.h"
#include "reports/record/point.h"

namespace rematch {

// Counts the collectives among the executed ops, by kind.
RanksRecord::Counts collectives_in(const OpCounts& ops);

// A rank's own part: its counts and peak in `record.ranks`. After the exact passes.
void note_rank(int rank, const RanksRecord::Counts& collective_bytes, PointRecord& record);

// One record from those of all ranks, by rank; each has ended somehow. Counts and times are
// rank 0's, losses the mean over the ranks that have batches of their own, memory is the worst
// rank's, hashes are those of all ranks together. Where one failed it is that rank's record; of
// several the one that did not merely lose the others. Ranks that executed different ops make an
// invalid point.
PointRecord merge_ranks(std::vector<PointRecord> ranks);

}  // namespace rematch
