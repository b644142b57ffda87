// LibTorch's caching allocator for CUDA, as a model: which block a request gets, and what the
// allocator holds of the device. Rounding and blocks that are not split make `allocated` more than
// what was asked for; both depend on what came before, so it is fed with every request and release
// of a step. One stream, no memory limit, the allocator's default settings.
//
// Sizes and rules are those of c10/cuda/CUDACachingAllocator.cpp of LibTorch 2.11.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <utility>

#include "policies/base/bytes.h"

namespace rematch {

class CachingAllocator {
 public:
  // Stands for the memory that a request got.
  using Handle = std::int64_t;

  Handle allocate(Bytes requested);
  // Frees an allocation; throws std::out_of_range if it was freed before.
  void release(Handle handle);
  // Gives back to the device what is free in whole segments.
  void empty_cache();

  Bytes requested() const { return requested_; }  // of what is not released
  Bytes allocated() const { return allocated_; }  // the blocks of it, whole
  Bytes reserved() const { return reserved_; }    // all segments
  Bytes peak_allocated() const { return peak_allocated_; }
  Bytes peak_reserved() const { return peak_reserved_; }
  void reset_peaks();

 private:
  enum class Pool : std::uint8_t { kSmall, kLarge };
  // A stretch of a segment; neighbours in the list are neighbours in memory.
  struct Block {
    std::int64_t address = 0;  // segments follow each other, so that a block's place decides ties
    std::int64_t size = 0;
    Pool pool = Pool::kSmall;
    bool is_free = true;
  };
  using Segment = std::list<Block>;
  using Place = std::pair<std::list<Segment>::iterator, Segment::iterator>;
  struct Taken {
    std::optional<Place> place;  // none for no bytes
    Bytes requested;
  };
  // By size, then by address: the first that fits is the best.
  using FreeBlocks = std::map<std::pair<std::int64_t, std::int64_t>, Place>;

  FreeBlocks& free_blocks(Pool pool) { return pool == Pool::kSmall ? small_ : large_; }
  Place find_or_reserve(Pool pool, std::int64_t size);
  Place reserve(Pool pool, std::int64_t size);
  void split(const Place& place, std::int64_t size);
  Place merge_with_free_neighbours(Place place);
  void note_peaks();

  std::list<Segment> segments_;
  FreeBlocks small_, large_;
  std::map<Handle, Taken> taken_;
  Handle next_handle_ = 0;
  std::int64_t next_address_ = 0;
  Bytes requested_, allocated_, reserved_, peak_allocated_, peak_reserved_;
};

}  // namespace rematch
