#include "policies/base/hashing.h"

#include <bit>
#include <catch2/catch.hpp>
#include <limits>
#include <stdexcept>

#include "policies/base/file.h"
#include "policies/base/json.h"

namespace rematch {
namespace {

std::string canonical_text(const std::string& text) {
  return canonical_json(parse_json(text, "test"));
}

TEST_CASE("the example of RFC 8785 gets the canonical form of RFC 8785") {
  CHECK(canonical_text(R"({
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
    "literals": [null, true, false]})") ==
        "{\"literals\":[null,true,false],"
        "\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],"
        "\"string\":\"\u20ac$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}");
}

// U+FB33 sorts before U+1F600 if code points are compared, and after it if UTF-16 code units are
// compared.
TEST_CASE("keys are sorted by UTF-16 code units") {
  CHECK(canonical_text(R"({"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\ud83d\ude00": 5,
                           "\u0080": 6, "\u00f6": 7})") ==
        "{\"\\r\":2,\"1\":4,\"\u0080\":6,\"\u00f6\":7,\"\u20ac\":1,\"\U0001F600\":5,"
        "\"\ufb33\":3}");
}

// The bit patterns and their texts are from the table in RFC 8785, appendix B.
TEST_CASE("doubles are spelled as in ECMAScript") {
  struct Row {
    std::uint64_t bits;
    std::string_view text;
  };
  const Row rows[] = {
      {0x0000000000000000, "0"},
      {0x8000000000000000, "0"},
      {0x0000000000000001, "5e-324"},
      {0x8000000000000001, "-5e-324"},
      {0x7fefffffffffffff, "1.7976931348623157e+308"},
      {0x4340000000000000, "9007199254740992"},
      {0xc340000000000000, "-9007199254740992"},
      {0x4430000000000000, "295147905179352830000"},
      {0x44b52d02c7e14af5, "9.999999999999997e+22"},
      {0x44b52d02c7e14af6, "1e+23"},
      {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
      {0x444b1ae4d6e2ef4e, "999999999999999700000"},
      {0x444b1ae4d6e2ef4f, "999999999999999900000"},
      {0x444b1ae4d6e2ef50, "1e+21"},
      {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
      {0x3eb0c6f7a0b5ed8d, "0.000001"},
      {0x41b3de4355555553, "333333333.3333332"},
      {0x41b3de4355555557, "333333333.33333343"},
      {0xbecbf647612f3696, "-0.0000033333333333333333"},
      {0x43143ff3c1cb0959, "1424953923781206.2"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(canonical_json(Json(std::bit_cast<double>(row.bits))) == row.text);
  }
}

TEST_CASE("equal numbers of different types have the same text") {
  CHECK(canonical_json(Json(3)) == "3");
  CHECK(canonical_json(Json(3.0)) == "3");
  CHECK(canonical_json(Json(-7)) == "-7");
  CHECK(canonical_json(Json(std::uint64_t{1} << 53)) == "9007199254740992");
}

TEST_CASE("a value without an exact JSON form is rejected") {
  CHECK_THROWS_AS(canonical_json(Json(std::numeric_limits<double>::infinity())),
                  std::invalid_argument);
  CHECK_THROWS_AS(canonical_json(Json(std::numeric_limits<double>::quiet_NaN())),
                  std::invalid_argument);
  CHECK_THROWS_WITH(canonical_json(Json((std::int64_t{1} << 53) + 1)),
                    Catch::Contains("9007199254740993") && Catch::Contains("write it as a string"));
  CHECK_THROWS_AS(canonical_json(Json(std::numeric_limits<std::int64_t>::min())),
                  std::invalid_argument);
  CHECK_THROWS_AS(canonical_json(Json("\xC0\x80")), std::invalid_argument);      // overlong
  CHECK_THROWS_AS(canonical_json(Json("\xED\xA0\x80")), std::invalid_argument);  // surrogate
  CHECK_THROWS_AS(canonical_json(Json("\xE2\x82")), std::invalid_argument);      // incomplete UTF-8
  CHECK_THROWS_AS(canonical_json(Json("\xF4\x90\x80\x80")), std::invalid_argument);
}

TEST_CASE("key order and white space do not change the hash of a JSON document") {
  CHECK(canonical_sha256(parse_json(R"({"b": [1, 2], "a": {}})", "test")) ==
        canonical_sha256(parse_json(R"({"a":{},"b":[1,2.0]})", "test")));
}

// The examples are from FIPS 180-2, appendix B.1, and the well-known hash of the empty string.
TEST_CASE("SHA-256 gives the digests of the standard's examples") {
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace rematch
