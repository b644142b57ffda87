#include "policies/plan/treatment.h"

#include "policies/trace/collective.h"
#include "policies/trace/op_class.h"

namespace rematch {

bool has_final_result(std::string_view op_name) {
  return collective_part(op_name) == CollectivePart::kNothing && !is_empty_factory(op_name);
}

std::vector<std::string_view> treatment_words() {
  std::vector<std::string_view> words;
  for (const StoreTraits& store : kStores) words.emplace_back(store.word);
  words.insert(words.begin() + 1, to_string(Treatment::kRecompute));
  return words;
}

std::optional<Treatment> treatment_from_string(std::string_view word) {
  if (word == to_string(Treatment::kRecompute)) return Treatment::kRecompute;
  for (const StoreTraits& store : kStores) {
    if (word == store.word) return Treatment{store.store};
  }
  return std::nullopt;
}

}  // namespace rematch
