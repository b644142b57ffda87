// Counts the memory that moving values to stores adds to a simulated step: the copies, and new
// device memory for values that are brought back. See Note [Lifetime of stored values].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/predict/region/region.h"
#include "policies/predict/step/stored.h"
#include "policies/trace/host_memory.h"

namespace rematch {

class StoreLedger {
 public:
  // The values of one region that move to stores. Both arguments must outlive this object.
  class Stash {
   public:
    Stash() = default;  // a region that moves nothing
    Stash(const std::vector<StoredStorage>& values, const RegionGraph& graph)
        : values_(&values), graph_(&graph) {}

    Bytes host_copies() const { return host_copies_; }  // bytes that are on the host now
    bool is_away() const { return place_ == Place::kAway; }
    // Whether the device memory of the values has been freed.
    bool has_left() const { return place_ != Place::kStill; }
    bool contains(int storage) const;
    // Results in the order of their ops, then inputs.
    const std::vector<StoredStorage>& values() const { return *values_; }

   private:
    friend class StoreLedger;
    // kStill: the original values are still on the device. kAway: the values are only in the
    // stores. kBroughtBack: the values are on the device again, in new memory.
    enum class Place : std::uint8_t { kStill, kAway, kBroughtBack };
    const std::vector<StoredStorage>* values_ = nullptr;
    const RegionGraph* graph_ = nullptr;
    Place place_ = Place::kStill;
    std::size_t num_put_ = 0;
    Bytes device_copies_;
    Bytes host_copies_;
  };

  // Copies the results of the ops up to `op` to the stores. `op` counts from the region's first op.
  void put_results(Stash& stash, std::int32_t op);
  void put_inputs(Stash& stash);
  // Marks the values as away. Returns whether the caller must now free their original device
  // memory.
  bool leave(Stash& stash);
  void bring_back(Stash& stash);
  // Frees the copies in the stores.
  void drop_copies(Stash& stash);
  // Frees the device memory of a value that was brought back.
  void release(const Stash& stash, int storage);
  void release_inputs(const Stash& stash);

  // device memory of copies, and of values that were brought back
  Bytes device_bytes() const { return device_copies_ + brought_back_; }
  const HostMemory& host() const { return host_; }

 private:
  void put_next(Stash& stash);

  Bytes device_copies_;
  Bytes brought_back_;
  Bytes host_copies_;
  HostMemory host_;
};

}  // namespace rematch
