#include "tests/support/mutate_text.h"
#include "policies/base/json.h"

#include <limits>
#include <random>
#include <vector>

namespace rematch::testing {
namespace {

class Random {
 public:
  explicit Random(std::uint32_t seed) : bits_(seed * 2654435761U + 1) {}
  std::size_t below(std::size_t end) { return end == 0 ? 0 : bits_() % end; }

 private:
  std::mt19937 bits_;
};

const std::vector<std::string>& awkward_tokens() {
  static const std::vector<std::string> tokens = {"NaN",
                                                  "Infinity",
                                                  "-1",
                                                  "1e999",
                                                  "-1e999",
                                                  "99999999999999999999",
                                                  "9223372036854775807",
                                                  "-9223372036854775808",
                                                  "null",
                                                  "true",
                                                  "\"\"",
                                                  "{}",
                                                  "[]",
                                                  "[[[[[[[[",
                                                  "{\"a\":",
                                                  "\\u0000",
                                                  "\\ud800",
                                                  "<script>",
                                                  "\"",
                                                  "\\",
                                                  ",",
                                                  ":",
                                                  std::string(200, '['),
                                                  std::string("\0", 1),
                                                  "\xff\xfe",
                                                  "\n",
                                                  "#2",
                                                  "::",
                                                  "*",
                                                  "(",
                                                  ")",
                                                  "(((",
                                                  "0x10",
                                                  "1.5",
                                                  "-0"};
  return tokens;
}

void strike(std::string& text, Random& random) {
  const std::size_t at = random.below(text.size() + 1);
  const std::size_t length = 1 + random.below(random.below(4) == 0 ? 200 : 8);
  switch (random.below(6)) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << random.below(8)));
      break;
    case 1:
      text.erase(at, length);
      break;
    case 2:
      text.insert(at, text.substr(random.below(text.size() + 1), length));
      break;
    case 3:
      text.resize(at);
      break;
    case 4: {
      const std::string piece = text.substr(at, length);
      text.erase(at, piece.size());
      text.insert(random.below(text.size() + 1), piece);
      break;
    }
    default:
      text.insert(at, awkward_tokens()[random.below(awkward_tokens().size())]);
  }
}

void collect(Json& json, std::vector<Json*>& nodes) {
  nodes.push_back(&json);
  if (!json.is_structured()) return;
  for (auto& inner : json) collect(inner, nodes);
}

Json awkward_value(Random& random) {
  const std::vector<Json> values = {nullptr,
                                    true,
                                    -1,
                                    0,
                                    1,
                                    2,
                                    std::numeric_limits<std::int64_t>::max(),
                                    std::numeric_limits<std::int64_t>::min(),
                                    std::numeric_limits<std::uint64_t>::max(),
                                    std::int64_t{1} << 31,
                                    1e300,
                                    -0.5,
                                    "",
                                    "aten::mm",
                                    std::string(3000, 'x'),
                                    Json::array(),
                                    Json::object(),
                                    Json::array({-1, "a", nullptr})};
  return values[random.below(values.size())];
}

void alter(Json& json, Random& random) {
  std::vector<Json*> nodes;
  collect(json, nodes);
  Json& node = *nodes[random.below(nodes.size())];
  const std::size_t kind = random.below(5);
  if (node.is_object() && !node.empty() && kind > 0) {
    const auto member =
        std::next(node.begin(), static_cast<std::ptrdiff_t>(random.below(node.size())));
    if (kind == 1) {
      node.erase(member);
    } else if (kind == 2) {
      node[member.key() + "_"] = member.value();
    } else {
      member.value() = awkward_value(random);
    }
  } else if (node.is_array() && !node.empty() && kind > 0) {
    const std::size_t index = random.below(node.size());
    if (kind == 1) {
      node.erase(index);
    } else if (kind == 2) {
      node.push_back(Json(node[index]));
    } else {
      std::swap(node[index], node[random.below(node.size())]);
    }
  } else if (node.is_number_integer() && kind > 1) {
    // Unsigned arithmetic wraps around at the ends of the range.
    const auto moved = node.get<std::uint64_t>() + random.below(5) - 2;
    node = static_cast<std::int64_t>(moved);
  } else {
    node = awkward_value(random);
  }
}

}  // namespace

std::string mutate_text(const std::string& text, std::uint32_t seed) {
  Random random(seed);
  std::string mutated = text;
  const std::size_t blows = 1 + random.below(4);
  for (std::size_t blow = 0; blow < blows; ++blow) strike(mutated, random);
  return mutated;
}

Json mutate_json(const Json& json, std::uint32_t seed) {
  Random random(seed);
  Json mutated = json;
  const std::size_t changes = 1 + random.below(3);
  for (std::size_t change = 0; change < changes; ++change) alter(mutated, random);
  return mutated;
}

}  // namespace rematch::testing
