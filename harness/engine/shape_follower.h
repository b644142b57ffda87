// Chooses the shape of the plan that forward follows. See Note [Following a shape] (recording.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/engine/frame.h"
#include "harness/engine/prepared_plan.h"
#include "harness/engine/record/record.h"

namespace rematch {

class ShapeFollower {
 public:
  // `prepared` must outlive this object.
  explicit ShapeFollower(const Checkpoint::Prepared& prepared) : prepared_(prepared) {}

  // The region to open when a scope opens. If the scope is an inner layer of a region whose first
  // layer did not run, `distance` is the layer's distance from the first layer.
  struct Opening {
    std::size_t region;
    std::optional<int> distance;
  };
  // Returns nothing if no region begins at the scope. With kOpen, a region may also begin at one of
  // its inner layers.
  enum class InnerLayers : std::uint8_t { kIgnore, kOpen };
  std::optional<Opening> find_opening(const std::string& scope, InnerLayers inner_layers);

  // Returns whether the ops so far fit several shapes of the plan.
  bool is_undecided() const { return !rivals_.empty(); }
  // Call this before op `index` of a region for which several shapes of the plan are possible.
  // Drops the shapes that do not run this op at this index. If no shape runs the op, the current
  // shape remains.
  void narrow(Frame& frame, Recorder& recorder, std::size_t index, std::int32_t op_id);
  // Returns whether to keep the outputs of op `index`. They are kept if any of the remaining shapes
  // keeps them.
  Keep keep_for_all(const Frame& frame, std::size_t index) const;
  // Drops the values that the current shape does not keep.
  void settle(Frame& frame, Recorder& recorder);
  // Like settle(), but also drops all shapes except the current one.
  void decide(Frame& frame, Recorder& recorder);

  // The next three functions switch to another shape that fits all ops of the region so far. They
  // return whether such a shape exists. switch_to_op() requires a shape that runs this op next.
  bool switch_to_op(Frame& frame, Recorder& recorder, std::int32_t op_id);
  // Requires a shape that runs the layer of this scope next.
  bool switch_to_layer(Frame& frame, Recorder& recorder, const std::string& scope);
  // Requires a shape whose region ends here.
  bool switch_to_ended(Frame& frame, Recorder& recorder);

  // Call this when a layer of the region ends. If the current shape expects more ops in this layer,
  // switches to a shape whose layer ends here.
  void end_layer(Frame& frame, Recorder& recorder, const std::string& scope);

  // Returns whether no op has run in the open region. This happens if only another shape has a
  // region at this scope.
  bool is_empty_pass(const Frame& frame) const;

  // Call this after the region has closed.
  void close(Frame& frame);

 private:
  using Condition = std::function<bool(std::size_t region)>;
  bool switch_if(Frame& frame, Recorder& recorder, const Condition& condition);
  void follow_rival_at(const std::string& scope);
  std::optional<std::size_t> find_first_of_pass(const std::string& scope) const;
  std::optional<Opening> find_elsewhere(const std::string& scope, InnerLayers inner_layers) const;
  bool begins_at(std::size_t region, const std::string& scope) const;
  void find_rivals(std::size_t region, const std::string& scope);
  void apply_keep(const Frame& frame, Recorder& recorder) const;

  const Checkpoint::Prepared& prepared_;
  std::size_t next_ = 0;  // the open region or, if no region is open, the next region
  // For each other shape that fits all ops of the forward pass so far: the region that is open, or
  // that comes next if none is open.
  std::vector<std::size_t> rivals_;
  // The values of next_ and rivals_ before the region opened. Restored if no op runs in the region.
  std::size_t next_before_ = 0;
  std::vector<std::size_t> rivals_before_;
};

}  // namespace rematch
