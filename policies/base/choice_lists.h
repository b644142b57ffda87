// Stores lists of choices for a dynamic program. Lists that start with the same choices share
// storage.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "policies/base/id.h"

namespace rematch {

template <class Choice>
class ChoiceLists {
 public:
  // Creates a list: a copy of the list with index `last`, followed by `choice`. If `last` is
  // absent, the new list contains only `choice`. Returns the index of the new list.
  OptionalIndex add(OptionalIndex last, Choice choice) {
    entries_.emplace_back(last, std::move(choice));
    return static_cast<int>(entries_.size()) - 1;
  }

  // Returns the choices in the order in which they were added.
  std::vector<Choice> list(OptionalIndex last) const {
    std::vector<Choice> choices;
    for (; last.has_value(); last = entries_[*last].first)
      choices.push_back(entries_[*last].second);
    std::reverse(choices.begin(), choices.end());
    return choices;
  }

 private:
  // Each entry holds one choice and the index of the entry before it in the list.
  std::vector<std::pair<OptionalIndex, Choice>> entries_;
};

}  // namespace rematch
