#include "harness/run/parity.h"

#include <algorithm>

namespace rematch {
namespace {

constexpr std::size_t kNamedSteps = 2;  // enough steps to show a wrong gradient

void note_difference(ParityRecord& parity, int step, const std::string& tensor) {
  if (parity.first_different_step) return;
  parity.first_different_step = step;
  parity.first_different_tensor = tensor;
}

void compare(ParityRecord& parity, std::optional<bool>& equal, bool same, int step,
             const std::string& tensor) {
  if (same) return;
  equal = false;
  note_difference(parity, step, tensor);
}

void compare_gradients(ParityRecord& parity, const StepRecord& point, const StepRecord& reference,
                       int step) {
  for (const auto& [name, hash] : reference.gradient_hashes) {
    const auto found = point.gradient_hashes.find(name);
    const bool same = found != point.gradient_hashes.end() && found->second == hash;
    compare(parity, parity.gradient_bits_equal, same, step, name);
  }
  const bool as_many = point.gradient_hashes.size() == reference.gradient_hashes.size();
  compare(parity, parity.gradient_bits_equal, as_many, step, "the number of gradients");
  compare(parity, parity.gradient_bits_equal,
          point.gradient_norm_bits == reference.gradient_norm_bits, step, "gradient norm");
}

}  // namespace

ParityRecord compare_steps(const PointRecord& point, const PointRecord& reference) {
  ParityRecord parity = point.parity.value_or(ParityRecord{});
  parity.reference = reference.policy;
  parity.compared_steps = static_cast<int>(std::min(point.steps.size(), reference.steps.size()));
  if (parity.compared_steps == 0) return parity;
  parity.loss_bits_equal = parity.gradient_bits_equal = true;
  parity.parameter_hash_equal = parity.generator_hash_equal = true;
  for (int step = 0; step < parity.compared_steps; ++step) {
    const StepRecord& own = point.steps[static_cast<std::size_t>(step)];
    const StepRecord& other = reference.steps[static_cast<std::size_t>(step)];
    compare(parity, parity.loss_bits_equal, own.loss_bits == other.loss_bits, step, "loss");
    compare_gradients(parity, own, other, step);
    compare(parity, parity.parameter_hash_equal, own.parameter_hash == other.parameter_hash, step,
            "parameters");
    compare(parity, parity.generator_hash_equal, own.generator_hash == other.generator_hash, step,
            "generator state");
  }
  return parity;
}

void thin_gradient_hashes(PointRecord& point) {
  const bool has_the_references = point.parity && point.parity->gradient_bits_equal == true &&
                                  point.parity->reference != point.policy;
  const std::size_t kept = has_the_references ? 0 : kNamedSteps;
  for (std::size_t step = kept; step < point.steps.size(); ++step) {
    point.steps[step].gradient_hashes.clear();
  }
}

}  // namespace rematch
