// Finds the planned op that a running op is, where a pass runs other ops than its plan has.
// LibTorch has no part in it: ops are integers, and equal integers are the same op.
//
// Note [Costs of an alignment]
// An alignment matches ops that ran with planned ones, in order. What it leaves over are runs of
// extra ops and runs of missing ones. Each run costs something for being there, and a little for
// each op in it (affine gap costs: O. Gotoh, "An improved algorithm for matching biological
// sequences", J. Mol. Biol. 162, 1982). The ops that ran so far are aligned with any beginning of
// the plan, at the least cost. The op that ran last is decided by the best such alignment; it can
// be another one after the next op, but then that op has run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policies/base/id.h"

namespace rematch {

class OpAlignment {
 public:
  // How many planned ops are looked at from the one that would be next. A longer run of missing
  // ops is found by skip_to() alone.
  static constexpr std::size_t kWindow = 64;

  // The first `num_ran` planned ops ran. `planned` must outlive the alignment.
  OpAlignment(const std::vector<std::int32_t>& planned, std::size_t num_ran);

  // Goes on with the next op. Returns the index of the planned op that it is; absent: extra.
  OptionalIndex next(std::int32_t op);

  // The next op is expected to be planned op `index`: what lies before it is decided.
  void skip_to(std::size_t index);

  std::int64_t num_extra() const { return num_extra_; }
  // Of all planned ops, should the pass end here.
  std::int64_t num_missing() const;

 private:
  struct Costs {
    std::int32_t matched;  // the last op is the planned one before this place
    std::int32_t extra;    // the last op is extra
    std::int32_t missing;  // planned ops up to this place are missing
    std::int32_t least() const;
  };

  OptionalIndex align_in_window(std::int32_t op);
  OptionalIndex decide(std::int32_t op);
  void open_window();
  void move_window(std::size_t num_places);
  void fill_missing();

  const std::vector<std::int32_t>& planned_;
  std::vector<bool> is_matched_;  // by planned op
  std::int64_t num_extra_ = 0;
  std::size_t next_ = 0;  // the planned op that is expected
  // Absent content: the last ops all were the expected ones.
  std::size_t window_ = 0;    // its first planned op
  std::vector<Costs> costs_;  // place i: i planned ops of the window are behind
  std::vector<Costs> before_;
  std::size_t num_in_a_row_ = 0;  // expected ops that ran one after the other
};

}  // namespace rematch
