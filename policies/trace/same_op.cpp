#include "policies/trace/same_op.h"

#include <algorithm>
#include <iterator>

namespace rematch {
namespace {

struct OtherName {
  std::string_view other;
  std::string_view name;
};
constexpr OtherName kOtherNames[] = {{"aten::_reshape_alias", "aten::view"}};

std::string_view one_name(std::string_view op) {
  const auto* const found =
      std::find_if(std::begin(kOtherNames), std::end(kOtherNames),
                   [op](const OtherName& entry) { return entry.other == op; });
  return found == std::end(kOtherNames) ? op : found->name;
}

}  // namespace

bool is_same_op(std::string_view a, std::string_view b) {
  return a == b || one_name(a) == one_name(b);
}

std::map<std::string, std::int64_t> with_one_name(
    const std::map<std::string, std::int64_t>& counts) {
  std::map<std::string, std::int64_t> merged;
  for (const auto& [op, count] : counts) merged[std::string(one_name(op))] += count;
  return merged;
}

}  // namespace rematch
