// Which parameters a packed parameter replaces, for tests that compare models with and without
// packed weights.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>

#include <map>
#include <string>
#include <vector>

namespace rematch {

// Returns the names of the parameters that `name` packs; `name` itself if it packs none.
inline std::vector<std::string> packed_parts(const std::string& name) {
  static const std::map<std::string, std::vector<std::string>> parts = {
      {"wqkv", {"wq", "wk", "wv"}},
      {"w13", {"w1", "w3"}},
      {"qkv", {"query", "key", "value"}},
      {"kv", {"key", "value"}}};
  for (const auto& [packed, separate] : parts) {
    for (const std::string& suffix :
         {std::string(".weight"), std::string(".bias"), std::string()}) {
      const std::string ending = "." + packed + suffix;
      if (!name.ends_with(ending)) continue;
      std::vector<std::string> names;
      for (const std::string& part : separate) {
        names.push_back(name.substr(0, name.size() - ending.size()) + "." + part + suffix);
      }
      return names;
    }
  }
  return {name};
}

// Concatenates the parts of a packed parameter. Experts [E, F, D] are packed along F, all others
// along their first dimension.
inline at::Tensor pack(const std::vector<at::Tensor>& parts) {
  return at::cat(parts, parts.front().dim() == 3 ? 1 : 0);
}

}  // namespace rematch
