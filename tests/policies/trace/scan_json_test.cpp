// The scanner accepts nothing but what the library's parser reads, and reads it the same way.
#include "policies/trace/scan_json.h"

#include <random>
#include <vector>

#include "policies/trace/file.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

// The library's own builder behind its SAX calls.
using DomBuilder = nlohmann::detail::json_sax_dom_parser<Json>;

// What the scanner makes of a text; nothing if it gives up.
std::optional<Json> scanned(const std::string& text) {
  Json json;
  DomBuilder builder(json, /*allow_exceptions=*/false);
  if (!JsonScanner(text, builder).run()) return std::nullopt;
  return json;
}

// Dumps tell -0.0 from 0 and whole numbers from others.
void check_as_the_library(const std::string& text) {
  CAPTURE(text);
  const std::optional<Json> own = scanned(text);
  if (!own) return;
  REQUIRE(Json::accept(text));
  const Json json = Json::parse(text);
  CHECK(own->type() == json.type());
  CHECK(own->dump() == json.dump());
}

TEST_CASE("plain JSON is scanned, and as the library reads it") {
  for (const char* text : {"{}",
                           "[]",
                           " [ ] ",
                           "\t{\r\n}",
                           "null",
                           "true",
                           "false",
                           "0",
                           "-0",
                           "-0.0",
                           "1",
                           "-1",
                           "1.5e3",
                           "1E+2",
                           "2e-7",
                           "0.1",
                           "5e-324",
                           "1.7976931348623157e308",
                           "9007199254740993",
                           "9223372036854775808",
                           "18446744073709551615",
                           "18446744073709551616",
                           "-9223372036854775808",
                           "-9223372036854775809",
                           "\"\"",
                           "\"a b\"",
                           R"("\u00e9\n\"\\")",
                           R"("\ud83d\ude00")",
                           "\"\xc3\xa9\x7f\"",
                           R"({"a": [1, {"b": null}], "": "c\\"})"}) {
    CAPTURE(text);
    CHECK(scanned(text));
    check_as_the_library(text);
  }
}

TEST_CASE("what is not JSON is not scanned") {
  for (const char* text : {"",
                           " ",
                           "{",
                           "[",
                           "\"",
                           "[1",
                           "[1,",
                           "[1,]",
                           "[,1]",
                           "{\"a\"",
                           "{\"a\":",
                           "{\"a\" 1}",
                           "{\"a\":1,}",
                           "{a:1}",
                           "{1:1}",
                           "[1 2]",
                           "01",
                           "-",
                           "+1",
                           ".5",
                           "1.",
                           "1.e1",
                           "1e",
                           "1e+",
                           "1e999",
                           "-1e999",
                           "NaN",
                           "Infinity",
                           "nul",
                           "nulls",
                           "True",
                           "'a'",
                           "\"\x01\"",
                           "\"\n\"",
                           R"("\x")",
                           R"("\u12")",
                           R"("\ud800")",
                           "\"\xff\"",
                           "\"\xed\xa0\x80\"",
                           R"("\")",
                           "{}{}",
                           "1 1",
                           "[1]]",
                           "{\"a\":1}}",
                           "// a\n1",
                           "[\"a\", \"\\]"}) {
    CAPTURE(text);
    CHECK_FALSE(scanned(text));
    CHECK_FALSE(Json::accept(text));
  }
}

// One to three bytes changed, dropped or put in: near what is JSON, on both sides of it.
TEST_CASE("what the scanner accepts of changed texts is what the library reads", "[property]") {
  const std::string sample =
      R"({"a": [1, -2.5e-3, 18446744073709551616, "x\u00e9\\", null, true], "b": {"c": "", "d": [{}, []]}})";
  const std::string letters = "{}[]\",:\\ \n0123456789+-.eEutrfn\x01\x7f\xc3\xa9";
  std::mt19937 bits(1);
  const auto below = [&bits](std::size_t count) { return bits() % count; };
  int num_accepted = 0;
  for (int trial = 0; trial < 20'000; ++trial) {
    std::string text = sample;
    for (std::size_t change = below(3) + 1; change > 0; --change) {
      const std::size_t at = below(text.size());
      const char letter = letters[below(letters.size())];
      switch (below(3)) {
        case 0:
          text[at] = letter;
          break;
        case 1:
          text.erase(at, 1);
          break;
        default:
          text.insert(at, 1, letter);
      }
    }
    check_as_the_library(text);
    num_accepted += scanned(text) ? 1 : 0;
  }
  CHECK(num_accepted > 1000);
}

// A byte-order mark, and a NUL behind the document: the library reads both, the scanner gives up,
// at the start and at the end.
TEST_CASE("where the scanner gives up the library reads, and no element is taken twice") {
  for (const std::string& text : {std::string("\xef\xbb\xbf{\"list\": [1, 2, 3]}"),
                                  std::string("{\"list\": [1, 2, 3]}\0", 20)}) {
    CAPTURE(text);
    CHECK_FALSE(scanned(text));
    std::vector<Json> taken;
    const Json rest = parse_json_taking(text, "test", "list",
                                        [&](const Json&, const Json& element, std::size_t index) {
                                          CHECK(index == taken.size());
                                          taken.push_back(element);
                                          return index != 1;
                                        });
    CHECK(taken == std::vector<Json>{1, 2, 3});
    CHECK(rest == Json{{"list", {2}}});
  }
}

}  // namespace
}  // namespace rematch
