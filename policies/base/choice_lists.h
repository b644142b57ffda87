// The choices of many labels of a dynamic program, as lists that share their beginnings.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "policies/base/id.h"

namespace rematch {

template <class Choice>
class ChoiceLists {
 public:
  // The list that ends with `last`, one choice longer. Absent: the empty list.
  OptionalIndex add(OptionalIndex last, Choice choice) {
    entries_.emplace_back(last, std::move(choice));
    return static_cast<int>(entries_.size()) - 1;
  }

  // In the order in which they were added.
  std::vector<Choice> list(OptionalIndex last) const {
    std::vector<Choice> choices;
    for (; last.has_value(); last = entries_[*last].first)
      choices.push_back(entries_[*last].second);
    std::reverse(choices.begin(), choices.end());
    return choices;
  }

 private:
  std::vector<std::pair<OptionalIndex, Choice>> entries_;  // the one before, and what it adds
};

}  // namespace rematch
