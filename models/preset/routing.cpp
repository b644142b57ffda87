#include "models/preset/routing.h"

#include <string>

#include "policies/trace/routing_skew.h"

namespace rematch {

std::int64_t routing_skew_percent(const ModelSpec& spec) {
  const std::int64_t percent = spec.option(std::string(kRoutingSkew));
  return percent == 0 ? kBalancedPercent : percent;
}

std::int64_t assumed_rows(std::int64_t balanced_rows, std::int64_t skew_percent) {
  return skewed_rows(balanced_rows, skew_percent);
}

}  // namespace rematch
