#include "harness/engine/shape_follower.h"

#include <algorithm>
#include <utility>

namespace rematch {
namespace {

Keep keep_for_both(Keep a, Keep b) { return a == b ? a : Keep::kOutputs; }

bool runs(const PreparedRegionType& type, std::size_t index, std::int32_t op_id) {
  return index < type.ids.size() && type.ids[index] == op_id;
}

std::vector<std::int32_t> ids_of_ops(const Record& record) {
  std::vector<std::int32_t> ids;
  for (std::size_t index = 0; index < record.num_program_ops(); ++index) {
    ids.push_back(record.ops[record.program_op(index)].facts->id);
  }
  return ids;
}

bool begins_with(const PreparedRegionType& type, const std::vector<std::int32_t>& ids) {
  return ids.size() <= type.ids.size() && std::equal(ids.begin(), ids.end(), type.ids.begin());
}

// Returns whether a layer may end after the first `num_ops` ops. Also returns true if the next op
// belongs to no layer.
bool is_layer_complete(const PreparedRegionType& type, std::size_t num_ops) {
  if (num_ops == 0 || num_ops >= type.ids.size()) return num_ops == type.ids.size();
  const int next = type.layer_of_op[num_ops];
  return next < 0 || next != type.layer_of_op[num_ops - 1];
}

}  // namespace

bool ShapeFollower::begins_at(std::size_t region, const std::string& scope) const {
  return prepared_.regions[region].planned->first_scope == scope;
}

std::optional<ShapeFollower::Opening> ShapeFollower::find_opening(const std::string& scope,
                                                                  InnerLayers inner_layers) {
  if (prepared_.regions.empty()) return std::nullopt;
  next_before_ = next_;
  if (prepared_.has_several_shapes()) rivals_before_ = rivals_;
  if (!begins_at(next_, scope)) follow_rival_at(scope);
  if (!begins_at(next_, scope)) {
    const std::optional<Opening> found = find_elsewhere(scope, inner_layers);
    if (!found.has_value() || found->distance.has_value()) return found;
    next_ = found->region;
    rivals_.clear();
  }
  find_rivals(next_, scope);
  return Opening{next_, std::nullopt};
}

// Switches to another shape that fits all ops so far, and whose next region begins at this scope.
void ShapeFollower::follow_rival_at(const std::string& scope) {
  for (const std::size_t rival : rivals_) {
    if (!begins_at(rival, scope)) continue;
    next_ = rival;
    return;
  }
}

// Finds the region for a scope that the plan does not expect next: layers were skipped, repeated or
// reordered, or a pass of another shape begins.
std::optional<ShapeFollower::Opening> ShapeFollower::find_elsewhere(
    const std::string& scope, InnerLayers inner_layers) const {
  const auto place = prepared_.regions_at.find(scope);
  const int shape = prepared_.regions[next_].type->shape;
  if (place != prepared_.regions_at.end()) {
    if (const auto first = find_first_of_pass(scope)) return Opening{*first, std::nullopt};
    const std::vector<std::size_t>& regions = place->second;
    const auto own = std::find_if(regions.rbegin(), regions.rend(), [&](std::size_t region) {
      return prepared_.regions[region].type->shape == shape;
    });
    return Opening{own == regions.rend() ? regions.front() : *own, std::nullopt};
  }
  const auto layers = prepared_.inner_layers.find(scope);
  if (layers == prepared_.inner_layers.end() || inner_layers == InnerLayers::kIgnore) {
    return std::nullopt;
  }
  const auto own =
      std::find_if(layers->second.rbegin(), layers->second.rend(), [&](const InnerLayer& layer) {
        return prepared_.regions[layer.region].type->shape == shape;
      });
  if (own == layers->second.rend()) return std::nullopt;
  return Opening{own->region, own->distance};
}

// If the previous forward pass has ended, returns the first region of a shape that begins at this
// scope.
std::optional<std::size_t> ShapeFollower::find_first_of_pass(const std::string& scope) const {
  if (!prepared_.regions[next_].is_first) return std::nullopt;
  for (const std::size_t first : prepared_.first_regions) {
    if (begins_at(first, scope)) return first;
  }
  return std::nullopt;
}

void ShapeFollower::find_rivals(std::size_t region, const std::string& scope) {
  if (!prepared_.has_several_shapes()) return;
  if (prepared_.regions[region].is_first) rivals_ = prepared_.first_regions;
  std::erase_if(rivals_,
                [&](std::size_t rival) { return rival == region || !begins_at(rival, scope); });
}

void ShapeFollower::narrow(Frame& frame, Recorder& recorder, std::size_t index,
                           std::int32_t op_id) {
  const auto is_out = [&](std::size_t rival) {
    return !runs(*prepared_.regions[rival].type, index, op_id);
  };
  const bool is_own = runs(frame.type(), index, op_id);
  if (is_own && std::none_of(rivals_.begin(), rivals_.end(), is_out)) return;
  std::vector<std::size_t> left = rivals_;
  std::erase_if(left, is_out);
  if (!is_own && !left.empty()) {
    frame.follow_region(left.front());
    left.erase(left.begin());
  }
  rivals_ = std::move(left);
  apply_keep(frame, recorder);
}

Keep ShapeFollower::keep_for_all(const Frame& frame, std::size_t index) const {
  Keep keep = frame.type().keep[index];
  for (const std::size_t rival : rivals_) {
    keep = keep_for_both(keep, prepared_.regions[rival].type->keep[index]);
  }
  return keep;
}

void ShapeFollower::apply_keep(const Frame& frame, Recorder& recorder) const {
  std::vector<Keep> keep;
  const std::size_t num_ops = frame.record().num_program_ops();
  for (std::size_t index = 0; index < num_ops; ++index) keep.push_back(keep_for_all(frame, index));
  recorder.change_keep(keep);
}

void ShapeFollower::settle(Frame& frame, Recorder& recorder) {
  std::vector<std::size_t> rivals = std::exchange(rivals_, {});
  apply_keep(frame, recorder);
  rivals_ = std::move(rivals);
}

void ShapeFollower::decide(Frame& frame, Recorder& recorder) {
  if (rivals_.empty()) return;
  settle(frame, recorder);
  rivals_.clear();
}

bool ShapeFollower::switch_if(Frame& frame, Recorder& recorder, const Condition& condition) {
  if (!prepared_.has_several_shapes() || frame.has_left_plan()) return false;
  const std::vector<std::int32_t> ids = ids_of_ops(frame.record());
  for (const std::size_t region : prepared_.regions_at.at(frame.region().first_scope)) {
    const PreparedRegionType& type = *prepared_.regions[region].type;
    if (type.shape == frame.type().shape || !begins_with(type, ids) || !condition(region)) continue;
    frame.follow_region(region);
    rivals_.clear();
    apply_keep(frame, recorder);
    return true;
  }
  return false;
}

bool ShapeFollower::switch_to_op(Frame& frame, Recorder& recorder, std::int32_t op_id) {
  const std::size_t num_ops = frame.record().num_program_ops();
  return switch_if(frame, recorder, [&](std::size_t region) {
    return runs(*prepared_.regions[region].type, num_ops, op_id);
  });
}

bool ShapeFollower::switch_to_layer(Frame& frame, Recorder& recorder, const std::string& scope) {
  const std::size_t num_ops = frame.record().num_program_ops();
  return switch_if(frame, recorder, [&](std::size_t region) {
    const PreparedRegionType& type = *prepared_.regions[region].type;
    const std::optional<int> distance = prepared_.inner_layer(scope, region);
    return distance.has_value() && num_ops < type.ids.size() &&
           type.layer_of_op[num_ops] == *distance;
  });
}

bool ShapeFollower::switch_to_ended(Frame& frame, Recorder& recorder) {
  const std::size_t num_ops = frame.record().num_program_ops();
  return switch_if(frame, recorder, [&](std::size_t region) {
    return prepared_.regions[region].type->ids.size() == num_ops;
  });
}

void ShapeFollower::end_layer(Frame& frame, Recorder& recorder, const std::string& scope) {
  if (!prepared_.has_several_shapes() || frame.has_left_plan()) return;
  const std::size_t num_ops = frame.record().num_program_ops();
  const bool ends = frame.region().last_scope == scope;
  if (ends ? num_ops == frame.type().ids.size() : is_layer_complete(frame.type(), num_ops)) return;
  const bool has_ended = switch_if(frame, recorder, [&](std::size_t region) {
    const PreparedRegion& other = prepared_.regions[region];
    return other.planned->last_scope == scope && other.type->ids.size() == num_ops;
  });
  if (has_ended) return;
  switch_if(frame, recorder, [&](std::size_t region) {
    const PreparedRegion& other = prepared_.regions[region];
    return other.planned->last_scope != scope && num_ops < other.type->ids.size() &&
           is_layer_complete(*other.type, num_ops);
  });
}

bool ShapeFollower::is_empty_pass(const Frame& frame) const {
  return prepared_.has_several_shapes() && frame.record().ops.empty();
}

void ShapeFollower::close(Frame& frame) {
  if (is_empty_pass(frame)) {
    next_ = next_before_;
    rivals_ = rivals_before_;
    return;
  }
  const std::size_t num_ops = frame.record().num_program_ops();
  if (frame.has_left_plan()) rivals_.clear();
  std::erase_if(rivals_, [&](std::size_t rival) {
    const PreparedRegion& region = prepared_.regions[rival];
    return region.type->ids.size() != num_ops ||
           region.planned->last_scope != frame.region().last_scope;
  });
  for (std::size_t& rival : rivals_) rival = prepared_.regions[rival].next;
  next_ = prepared_.regions[frame.region_index()].next;
}

}  // namespace rematch
