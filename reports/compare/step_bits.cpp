#include "reports/compare/step_bits.h"

#include <cmath>
#include <map>

namespace rematch {

namespace {

// A report stores gradient hashes of a step only if the gradients differ from the reference.
std::string first_different_gradient(const std::map<std::string, std::string>& left,
                                     const std::map<std::string, std::string>& right) {
  if (left.empty() || right.empty()) return "";
  for (const auto& [name, hash] : left) {
    const auto found = right.find(name);
    if (found == right.end() || found->second != hash) return name;
  }
  for (const auto& [name, hash] : right) {
    if (!left.contains(name)) return name;
  }
  return "";
}

}  // namespace

std::string first_different_tensor(const StepRecord& left, const StepRecord& right) {
  if (left.loss_bits != right.loss_bits) return "loss";
  std::string name = first_different_gradient(left.gradient_hashes, right.gradient_hashes);
  if (!name.empty()) return name;
  for (const RecordedBits& recorded : kRecordedBits) {
    const std::string& own = left.*recorded.bits;
    const std::string& other = right.*recorded.bits;
    if (!own.empty() && !other.empty() && own != other) return recorded.name;
  }
  return "";
}

bool claims_wrong_bits(const PointRecord& point) {
  return point.parity && has_other_bits(*point.parity) && is_exact(point);
}

std::string gradient_fault(const StepRecord& step) {
  const std::optional<double> norm = number_of_bits(step.gradient_norm_bits);
  if (!norm) return "";
  if (*norm == 0) return "are all zero";
  return std::isfinite(*norm) ? "" : "are not finite";
}

}  // namespace rematch
