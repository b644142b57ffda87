#include "harness/trace/node_scopes.h"

#include <ATen/SequenceNumber.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <iterator>
#include <memory>

namespace rematch {

void NodeScopes::enter(ScopeId scope) {
  intervals_.push_back({at::sequence_number::peek(), scope});
}

std::optional<ScopeId> NodeScopes::scope_at_work() {
  const std::shared_ptr<torch::autograd::Node> node = torch::autograd::get_current_node();
  if (node == nullptr || node->sequence_nr() == UINT64_MAX) return last_;
  const auto after = std::upper_bound(intervals_.begin(), intervals_.end(), node->sequence_nr(),
                                      [](std::uint64_t sequence, const Interval& interval) {
                                        return sequence < interval.first_sequence;
                                      });
  last_.reset();
  if (after != intervals_.begin()) last_ = std::prev(after)->scope;
  return last_;
}

}  // namespace rematch
