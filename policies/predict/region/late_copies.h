// Finds the copies that a region makes after it has ended, because a later op overwrites a tensor
// that the region read.
#pragma once

#include <vector>

#include "policies/base/bytes.h"
#include "policies/predict/region/region.h"
#include "policies/trace/trace.h"

namespace rematch {

// Note [Late copies] A region may read a tensor from outside, and a later op of forward may
// overwrite this tensor. Recompute needs the old content, so the engine copies the tensor before
// the write: see harness/engine/write_watch.h. The region holds the copy until its last slot is
// released.
struct LateCopy {
  OpId op;  // the op that overwrites the tensor
  Bytes bytes;
  bool operator==(const LateCopy&) const = default;
};

// Finds late copies. Keeps a reference to the trace.
class LateCopies {
 public:
  explicit LateCopies(const Trace& trace);

  // Returns the late copies of the region, in the order of the ops that overwrite the tensors.
  std::vector<LateCopy> of(OpRange region) const;

 private:
  bool is_outside(StorageId storage, OpRange region) const;
  void add_copies_of(OpId reader, OpRange region, std::vector<LateCopy>& copies) const;

  const Trace* trace_;
  // for each storage, the ops that write it, in order
  IdTable<StorageId, std::vector<OpId>> writers_;
  // the op that made the first tensor with this storage; absent if no op did
  IdTable<StorageId, std::optional<OpId>> maker_;
};

// Returns whether any of the regions has late copies.
bool has_late_copies(const Trace& trace, const std::vector<OpRange>& regions);

}  // namespace rematch
