// Copies that a region makes after it has ended, because the step overwrites what the region read.
#pragma once

#include <vector>

#include "policies/base/bytes.h"
#include "policies/predict/region/region.h"
#include "policies/trace/trace.h"

namespace rematch {

// Note [Late copies]
// A region reads a tensor from outside, and later in forward another part of the step overwrites
// the tensor. Recompute needs the old content, so the engine copies it before the write: see
// harness/engine/write_watch.h. The region holds the copy until its last slot is released.
struct LateCopy {
  OpId op;  // the op that overwrites the content
  Bytes bytes;
  bool operator==(const LateCopy&) const = default;
};

// Finds late copies. Keeps a reference to the trace.
class LateCopies {
 public:
  explicit LateCopies(const Trace& trace);

  // Returns the late copies of the region with these ops, in the order of the ops that overwrite
  // the content.
  std::vector<LateCopy> of(OpRange region) const;

 private:
  bool is_outside(StorageId storage, OpRange region) const;
  void add_copies_of(OpId reader, OpRange region, std::vector<LateCopy>& copies) const;

  const Trace* trace_;
  // for each storage, the ops that write it, in order
  IdTable<StorageId, std::vector<OpId>> writers_;
  // The op that made the first tensor with this storage. Absent if no op made that tensor.
  IdTable<StorageId, std::optional<OpId>> maker_;
};

// Returns whether a region with one of these op ranges has late copies.
bool has_late_copies(const Trace& trace, const std::vector<OpRange>& regions);

}  // namespace rematch
