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
  // `prepared` must outlive it.
  explicit ShapeFollower(const Checkpoint::Prepared& prepared) : prepared_(prepared) {}

  // The region to open where a scope opens. `distance` is that of a layer inside the region whose
  // first layer did not run.
  struct Opening {
    std::size_t region;
    std::optional<int> distance;
  };
  // Absent: no region begins there. Inner layers begin one only if asked for.
  enum class InnerLayers : std::uint8_t { kIgnore, kOpen };
  std::optional<Opening> find_opening(const std::string& scope, InnerLayers inner_layers);

  // Several shapes have had the same ops so far.
  bool is_undecided() const { return !rivals_.empty(); }
  // Call before op `index` of an undecided region. Drops the shapes that do not run this op there,
  // unless none does.
  void narrow(Frame& frame, Recorder& recorder, std::size_t index, std::int32_t op_id);
  // The treatment of op `index` that serves all shapes that are left.
  Keep keep_for_all(const Frame& frame, std::size_t index) const;
  // Keeps what the frame's shape keeps, and nothing else.
  void settle(Frame& frame, Recorder& recorder);
  // The same, and goes on with that shape alone.
  void decide(Frame& frame, Recorder& recorder);

  // These go on with another shape, which has had all ops of the region so far. Each returns
  // whether there is one.
  // The shape runs this op next.
  bool switch_to_op(Frame& frame, Recorder& recorder, std::int32_t op_id);
  // The shape runs the layer of this scope next.
  bool switch_to_layer(Frame& frame, Recorder& recorder, const std::string& scope);
  // The region of the shape ends here.
  bool switch_to_ended(Frame& frame, Recorder& recorder);

  // A layer of the region ends. Where the frame's shape has other ops to run in it, goes on with a
  // shape that has none.
  void end_layer(Frame& frame, Recorder& recorder, const std::string& scope);

  // Whether a scope opened and closed without an op where some shape has a region. The shape that
  // runs need not have one there.
  bool is_empty_pass(const Frame& frame) const;

  // The region has closed.
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
  std::size_t next_ = 0;  // region
  // A region for each other shape that has had the same ops since the pass of forward began: the
  // one that the shape runs now or, while no region is open, next.
  std::vector<std::size_t> rivals_;
  // The values of both before the region opened. An empty pass restores them.
  std::size_t next_before_ = 0;
  std::vector<std::size_t> rivals_before_;
};

}  // namespace rematch
