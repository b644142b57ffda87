// Checks models with dimensions of size 1. Such dimensions have arbitrary strides, which may change
// the ops. Even so, a model must run the same ops on meta as on the CPU.
#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "models/preset/preset.h"
#include "tests/models/model_checks.h"
#include "tests/support/catch.h"
#include "tests/support/seeds.h"
#include "tests/support/small_presets.h"

namespace rematch {
namespace {

using Dimensions = std::map<std::string, std::int64_t>;

struct Start {
  std::string preset;
  Dimensions dimensions;  // small dimensions, so that a step is fast
};

const std::vector<DimensionEntry>& dimensions_of(const std::string& preset) {
  return dimension_entries(std::get<ModelSpec>(make_spec(preset, {})).family);
}

std::vector<Start> starts() {
  const Dimensions text = {{"layers", 2}, {"tokens", 16}};
  const Dimensions video = {{"layers", 2}, {"frames", 2}, {"height", 2}, {"width", 4}};
  std::vector<Start> all;
  for (const std::string& preset : testing::small_presets()) {
    const auto& entries = dimensions_of(preset);
    const bool is_video = std::any_of(entries.begin(), entries.end(),
                                      [](const auto& entry) { return entry.name == "frames"; });
    all.push_back({preset, is_video ? video : text});
  }
  return all;
}

std::string in_words(const Dimensions& dimensions) {
  std::string text;
  for (const auto& [name, extent] : dimensions) text += name + " " + std::to_string(extent) + " ";
  return text;
}

// Skips sizes that the family rejects.
void check_if_allowed(const Start& start, const Dimensions& changes, const char* dtype) {
  Dimensions dimensions = start.dimensions;
  for (const auto& [name, extent] : changes) dimensions[name] = extent;
  const auto spec = make_spec(start.preset, dimensions, dtype);
  if (!std::holds_alternative<ModelSpec>(spec)) return;
  CAPTURE(start.preset, dtype, in_words(changes));
  check_meta_runs_the_same_ops(std::get<ModelSpec>(spec));
}

TEST_CASE("meta and CPU run the same ops if any one extent is at its minimum") {
  for (const Start& start : starts()) {
    for (const DimensionEntry& entry : dimensions_of(start.preset)) {
      if (entry.is_option) continue;
      check_if_allowed(start, {{std::string(entry.name), std::max<std::int64_t>(entry.minimum, 1)}},
                       "float32");
    }
  }
}

TEST_CASE("meta and CPU run the same ops if several extents are at their minimum", "[property]") {
  for (const Start& start : starts()) {
    for (std::uint32_t seed = 0; seed < testing::num_seeds(12); ++seed) {
      std::mt19937 dice(seed);
      Dimensions changes;
      for (const DimensionEntry& entry : dimensions_of(start.preset)) {
        if (entry.is_option) {
          if (dice() % 4 == 0) changes[std::string(entry.name)] = entry.minimum + 1;
        } else if (dice() % 3 == 0) {
          changes[std::string(entry.name)] = std::max<std::int64_t>(entry.minimum, 1);
        }
      }
      check_if_allowed(start, changes, dice() % 3 == 0 ? "bfloat16" : "float32");
    }
  }
}

}  // namespace
}  // namespace rematch
