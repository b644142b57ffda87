#include "reports/gate/check_record.h"

#include <utility>

#include "reports/gate/loss_arms.h"

namespace rematch {

CheckRecord decided(std::string check, GateVerdict verdict, std::string reason) {
  CheckRecord record;
  record.check = std::move(check);
  record.verdict = verdict;
  record.reason = std::move(reason);
  return record;
}

CheckRecord loss_check(std::string check, std::string tier, const LossArm& reference) {
  CheckRecord record;
  record.check = std::move(check);
  record.tier = std::move(tier);
  NoiseRecord noise;
  noise.reference_runs = static_cast<int>(reference.runs.size());
  noise.largest_difference = largest_difference(reference.runs);
  record.noise = noise;
  return record;
}

CheckRecord& decide(CheckRecord& check, GateVerdict verdict, std::string reason) {
  check.verdict = verdict;
  check.reason = std::move(reason);
  return check;
}

}  // namespace rematch
