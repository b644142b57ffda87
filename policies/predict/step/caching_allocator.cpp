#include "policies/predict/step/caching_allocator.h"

#include <algorithm>
#include <iterator>

namespace rematch {
namespace {

constexpr std::int64_t kMib = std::int64_t{1} << 20;
constexpr std::int64_t kLeastBlock = 512;  // all sizes are multiples of it
constexpr std::int64_t kSmallRequest = kMib;
constexpr std::int64_t kSmallSegment = 2 * kMib;
constexpr std::int64_t kLargeSegment = 20 * kMib;
constexpr std::int64_t kOwnSegment = 10 * kMib;  // a request from here on has a segment of its own,
constexpr std::int64_t kOwnRounding = 2 * kMib;  // of this multiple

std::int64_t round_up(std::int64_t size, std::int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

std::int64_t segment_size(std::int64_t size) {
  if (size <= kSmallRequest) return kSmallSegment;
  return size < kOwnSegment ? kLargeSegment : round_up(size, kOwnRounding);
}

}  // namespace

CachingAllocator::Handle CachingAllocator::allocate(Bytes requested) {
  if (requested.count == 0) {
    taken_[next_handle_] = {std::nullopt, requested};
    return next_handle_++;
  }
  const std::int64_t size = round_up(requested.count, kLeastBlock);
  const Pool pool = size <= kSmallRequest ? Pool::kSmall : Pool::kLarge;
  const Place place = find_or_reserve(pool, size);
  split(place, size);
  place.second->is_free = false;
  requested_ += requested;
  allocated_ += Bytes{place.second->size};
  note_peaks();
  taken_[next_handle_] = {place, requested};
  return next_handle_++;
}

void CachingAllocator::release(Handle handle) {
  const Taken taken = taken_.at(handle);
  taken_.erase(handle);
  if (!taken.place) return;
  requested_ -= taken.requested;
  allocated_ -= Bytes{taken.place->second->size};
  const Place place = merge_with_free_neighbours(*taken.place);
  const Block& block = *place.second;
  free_blocks(block.pool)[{block.size, block.address}] = place;
}

void CachingAllocator::empty_cache() {
  for (auto segment = segments_.begin(); segment != segments_.end();) {
    const Block& first = segment->front();
    if (segment->size() > 1 || !first.is_free) {
      ++segment;
      continue;
    }
    free_blocks(first.pool).erase({first.size, first.address});
    reserved_ -= Bytes{first.size};
    segment = segments_.erase(segment);
  }
}

void CachingAllocator::reset_peaks() {
  peak_allocated_ = allocated_;
  peak_reserved_ = reserved_;
}

CachingAllocator::Place CachingAllocator::find_or_reserve(Pool pool, std::int64_t size) {
  FreeBlocks& free = free_blocks(pool);
  const auto found = free.lower_bound({size, 0});
  if (found == free.end()) return reserve(pool, size);
  const Place place = found->second;
  free.erase(found);
  return place;
}

CachingAllocator::Place CachingAllocator::reserve(Pool pool, std::int64_t size) {
  const std::int64_t whole = segment_size(size);
  segments_.push_back({{next_address_, whole, pool, true}});
  next_address_ += whole;
  reserved_ += Bytes{whole};
  const auto segment = std::prev(segments_.end());
  return {segment, segment->begin()};
}

// The rest becomes a free block, unless it is too small for its pool.
void CachingAllocator::split(const Place& place, std::int64_t size) {
  Block& block = *place.second;
  const std::int64_t left = block.size - size;
  const bool is_split = block.pool == Pool::kSmall ? left >= kLeastBlock : left > kSmallRequest;
  if (!is_split) return;
  const auto rest =
      place.first->insert(std::next(place.second), {block.address + size, left, block.pool, true});
  block.size = size;
  free_blocks(block.pool)[{left, rest->address}] = {place.first, rest};
}

CachingAllocator::Place CachingAllocator::merge_with_free_neighbours(Place place) {
  Segment& segment = *place.first;
  Segment::iterator block = place.second;
  block->is_free = true;
  FreeBlocks& free = free_blocks(block->pool);
  if (const auto next = std::next(block); next != segment.end() && next->is_free) {
    free.erase({next->size, next->address});
    block->size += next->size;
    segment.erase(next);
  }
  if (block != segment.begin() && std::prev(block)->is_free) {
    const auto previous = std::prev(block);
    free.erase({previous->size, previous->address});
    previous->size += block->size;
    segment.erase(block);
    block = previous;
  }
  return {place.first, block};
}

void CachingAllocator::note_peaks() {
  peak_allocated_ = std::max(peak_allocated_, allocated_);
  peak_reserved_ = std::max(peak_reserved_, reserved_);
}

}  // namespace rematch
