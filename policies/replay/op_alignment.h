// Matches the ops of a pass with the ops of its plan while the pass runs. An op is an integer.
//
// Note [Costs of an alignment] An alignment matches ops that ran with planned ops, in order. A
// group of consecutive extra or missing ops has a fixed cost, plus a small cost for each op. These
// are affine gap costs (O. Gotoh, "An improved algorithm for matching biological sequences", J.
// Mol. Biol. 162, 1982). Each new op is matched as in the cheapest alignment of all ops so far with
// any prefix of the plan. Later ops do not change this match, even if another alignment becomes
// cheaper.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policies/base/id.h"

namespace rematch {

class OpAlignment {
 public:
  // The number of planned ops with which an op is compared. Only skip_to() can skip more missing
  // ops.
  static constexpr std::size_t kWindow = 64;

  // Assumes that the first `num_ran` planned ops have already run. `planned` must outlive the
  // alignment.
  OpAlignment(const std::vector<std::int32_t>& planned, std::size_t num_ran);

  // Matches the op that runs next. Returns the index of its planned op. Absent: the op is extra.
  OptionalIndex next(std::int32_t op);

  // Makes planned op `index` the next expected one.
  void skip_to(std::size_t index);

  std::int64_t num_extra() const { return num_extra_; }
  // Returns how many planned ops are missing if the pass ends here.
  std::int64_t num_missing() const;

 private:
  struct Costs {
    std::int32_t matched;  // cost if the latest op is matched with the planned op before this entry
    std::int32_t extra;    // cost if the latest op is extra
    std::int32_t missing;  // cost if the planned ops before this entry are missing
    std::int32_t least() const;
  };

  OptionalIndex align_in_window(std::int32_t op);
  OptionalIndex decide(std::int32_t op);
  void open_window();
  void move_window(std::size_t num_places);
  void fill_missing();

  const std::vector<std::int32_t>& planned_;
  std::vector<bool> is_matched_;  // indexed by planned op
  std::int64_t num_extra_ = 0;
  std::size_t next_ = 0;    // the planned op that is expected
  std::size_t window_ = 0;  // the first planned op of the window
  // Entry i holds the costs of alignments that end before planned op window_ + i. Empty as long as
  // exactly the planned ops have run, in order.
  std::vector<Costs> costs_;
  std::vector<Costs> before_;     // the costs before the latest op was matched
  std::size_t num_in_a_row_ = 0;  // how many ops in a row were the expected ones
};

}  // namespace rematch
