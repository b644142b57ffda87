// Routing skew: how many rows the experts of a rank get, compared with balanced routing. Under
// expert parallelism the data decides, so a prediction assumes a skew. A prediction with a skew is
// for the rank with the most rows, in every layer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace rematch {

// The dimension that holds the skew in percent. Absent: 100, balanced routing.
inline constexpr std::string_view kRoutingSkew = "routing_skew_percent";
inline constexpr std::int64_t kBalancedPercent = 100;

// Returns the rows that the rank's experts get, rounded up. `balanced_rows` is the number of rows
// that they get with balanced routing.
std::int64_t skewed_rows(std::int64_t balanced_rows, std::int64_t skew_percent);

// Returns "1.3" for 130.
std::string routing_skew_text(std::int64_t skew_percent);

// Returns text such as ", routing skew 1.3" for a model's dimensions. Empty for balanced routing.
std::string routing_skew_words(const std::map<std::string, std::int64_t>& dimensions);

}  // namespace rematch
