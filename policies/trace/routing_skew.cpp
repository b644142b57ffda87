#include "policies/trace/routing_skew.h"

namespace rematch {

std::int64_t skewed_rows(std::int64_t balanced_rows, std::int64_t skew_percent) {
  return (balanced_rows * skew_percent + kBalancedPercent - 1) / kBalancedPercent;
}

std::string routing_skew_text(std::int64_t skew_percent) {
  std::string text = std::to_string(skew_percent / 100) + "." +
                     std::to_string(skew_percent / 10 % 10) + std::to_string(skew_percent % 10);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string routing_skew_words(const std::map<std::string, std::int64_t>& dimensions) {
  const auto found = dimensions.find(std::string(kRoutingSkew));
  return found == dimensions.end() ? "" : ", routing skew " + routing_skew_text(found->second);
}

}  // namespace rematch
