#include "harness/trace/observed_collectives.h"

#include <algorithm>

#include "harness/engine/interception.h"
#include "harness/engine/record/op_facts.h"
#include "policies/trace/collective.h"

namespace rematch {
namespace {

class CollectiveObserver final : public OpObserver {
 public:
  void about_to_run(const c10::OperatorHandle& op, Phase /*phase*/,
                    const torch::jit::Stack& stack) override {
    const OpFacts& facts = facts_of(op);
    if (facts.collective != CollectivePart::kStart) return;
    const c10::IValue& input = stack[stack.size() - facts.arguments.size()];
    issued.push_back({facts.name, group_of_collective(stack), bytes_of_tensors(input)});
  }
  void executed(const c10::OperatorHandle& op, Phase /*phase*/,
                const torch::jit::Stack& stack) override {
    if (facts_of(op).collective != CollectivePart::kStart) return;
    issued.back().bytes = std::max(issued.back().bytes, bytes_of_tensors(stack.back()));
  }
  std::vector<TracedCollective> issued;
};

}  // namespace

std::vector<TracedCollective> collectives_of(const std::function<void()>& call) {
  CollectiveObserver observer;
  const OpObserverGuard observe(&observer);
  call();
  return std::move(observer.issued);
}

}  // namespace rematch
