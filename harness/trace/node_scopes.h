// In which scope of forward the autograd node that is at work was made: nodes are numbered in the
// order forward makes them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policies/trace/trace.h"

namespace rematch {

class NodeScopes {
 public:
  // Nodes made from now on belong to this scope. Those made outside all scopes stay with the last.
  void enter(ScopeId scope);

  // In backward, on the thread that runs the node. Accumulators of gradients have no number of
  // their own: they belong to the node that fed them.
  std::optional<ScopeId> scope_at_work();

 private:
  struct Interval {
    std::uint64_t first_sequence = 0;
    ScopeId scope;
  };

  std::vector<Interval> intervals_;
  std::optional<ScopeId> last_;
};

}  // namespace rematch
