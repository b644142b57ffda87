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

  // The region to open when a scope opens. `distance` is set if the scope is an inner layer of a
  // region whose first layer did not run. `distance` is then the layer's distance from the first
  // layer.
  struct Opening {
    std::size_t region;
    std::optional<int> distance;
  };
  // Returns nothing if no region begins at the scope. Inner layers begin a region only with kOpen.
  enum class InnerLayers : std::uint8_t { kIgnore, kOpen };
  std::optional<Opening> find_opening(const std::string& scope, InnerLayers inner_layers);

  // Returns whether several shapes have had the same ops so far.
  bool is_undecided() const { return !rivals_.empty(); }
  // Call this before op `index` of an undecided region. Drops the shapes that do not run this op at
  // this index. If no shape runs the op, the frame's shape remains.
  void narrow(Frame& frame, Recorder& recorder, std::size_t index, std::int32_t op_id);
  // The treatment of op `index` that serves all remaining shapes.
  Keep keep_for_all(const Frame& frame, std::size_t index) const;
  // Drops the values that the plan of the frame's shape does not keep.
  void settle(Frame& frame, Recorder& recorder);
  // Like settle(), and drops all other shapes, so that the region is decided.
  void decide(Frame& frame, Recorder& recorder);

  // Each of the next three functions switches to another shape that has had all ops of the region
  // so far. Each returns whether there is such a shape. This function switches to a shape that runs
  // this op next.
  bool switch_to_op(Frame& frame, Recorder& recorder, std::int32_t op_id);
  // Switches to a shape that runs the layer of this scope next.
  bool switch_to_layer(Frame& frame, Recorder& recorder, const std::string& scope);
  // Switches to a shape whose region ends here.
  bool switch_to_ended(Frame& frame, Recorder& recorder);

  // Call this when a layer of the region ends. If the frame's shape has more ops in this layer,
  // switches to a shape that has no more ops in it.
  void end_layer(Frame& frame, Recorder& recorder, const std::string& scope);

  // Returns whether no op has run in the open region. Another shape may have a region at this scope
  // even if the shape that runs has no region there.
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
  // A region for each other shape that has had the same ops since the forward pass began. Each is
  // the open region of its shape or, if no region is open, the next region of its shape.
  std::vector<std::size_t> rivals_;
  // The values of next_ and rivals_ before the region opened. An empty pass restores them.
  std::size_t next_before_ = 0;
  std::vector<std::size_t> rivals_before_;
};

}  // namespace rematch
