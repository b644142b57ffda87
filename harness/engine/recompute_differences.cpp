#include "harness/engine/recompute_differences.h"

#include <algorithm>
#include <utility>

#include "harness/engine/record/op_facts.h"
#include "harness/engine/record/outside.h"

namespace rematch {
namespace {

std::vector<at::Tensor> results_of(const OpFacts& facts, const torch::jit::Stack& stack) {
  std::vector<at::Tensor> results;
  for (std::size_t i = stack.size() - facts.num_returns; i < stack.size(); ++i) {
    for (at::Tensor& each : tensors_in(stack[i])) results.push_back(std::move(each));
  }
  std::erase_if(results, [](const at::Tensor& each) { return !each.defined(); });
  return results;
}

bool is_inexact(const at::Tensor& tensor) {
  return at::isFloatingType(tensor.scalar_type()) || at::isComplexType(tensor.scalar_type());
}

}  // namespace

void RecomputeDifferences::add(const std::string& region, std::size_t index,
                               const std::string& op) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = first_.try_emplace(region, RecomputeDifference{region, op, index});
  if (!is_new && index < found->second.index) found->second = {region, op, index};
}

std::vector<RecomputeDifference> RecomputeDifferences::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<RecomputeDifference> list;
  for (const auto& [region, difference] : first_) list.push_back(difference);
  return list;
}

std::uint64_t hash_of_results(const OpFacts& facts, const torch::jit::Stack& stack) {
  const bool is_undefined = facts.is_empty_factory || facts.name == "aten::resize_";
  if (facts.returns_alias || is_undefined || facts.collective != CollectivePart::kNothing) return 0;
  const std::vector<at::Tensor> results = results_of(facts, stack);
  const bool has_inexact = std::any_of(results.begin(), results.end(), is_inexact);
  std::uint64_t combined = 0;
  for (const at::Tensor& each : results) {
    if (!has_inexact || is_inexact(each)) combined = combined * 31 + hash_of(each);
  }
  return combined;
}

}  // namespace rematch
