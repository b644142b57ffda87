#include <fstream>

#include "policies/base/rejected.h"
#include "policies/catalogue/catalogue.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace rematch {
namespace {

std::string name_of(std::string_view text) {
  const auto parsed = parse_policy(text);
  if (const auto* rejected = std::get_if<Rejected>(&parsed))
    return "rejected: " + rejected->message;
  return std::get<Policy>(parsed).name;
}

std::string message_of(std::string_view text) {
  const auto parsed = parse_policy(text);
  REQUIRE(std::holds_alternative<Rejected>(parsed));
  return std::get<Rejected>(parsed).message;
}

Policy parsed(std::string_view text) { return std::get<Policy>(parse_policy(text)); }

TEST_CASE("a parsed policy has a canonical name") {
  CHECK(name_of("none") == "none");
  CHECK(name_of(" full ") == "full");
  CHECK(name_of("full()") == "full");
  CHECK(name_of("nth_last( 2 )") == "nth_last(2)");
  CHECK(name_of("nth_last (02)") == "nth_last(2)");
  CHECK(name_of("skip_list([3, 0])") == "skip_list([0,3])");
  CHECK(name_of("skip_list(0,3)") == "skip_list([0,3])");
  CHECK(name_of("skip_list(4)") == "skip_list([4])");
  CHECK(name_of("skip_list([])") == "skip_list([])");
}

TEST_CASE("every catalogue name parses; names with parameters parse with an argument") {
  for (const CatalogueEntry& entry : catalogue()) {
    CAPTURE(entry.name);
    std::string text(entry.name);
    if (entry.parameters == "(N)") text += "(2)";
    if (entry.parameters == "([I,...])") text += "([2])";
    if (entry.parameters == "(MODEL)") text += "(llama3)";
    if (entry.parameters == "(KEY,...)") text += "(aten.mm)";
    if (entry.parameters == "(attn: X, ffn: Y)") text += "(attn: full, ffn: sac_titan)";
    if (entry.parameters == "([MODULE,...])") text += "([core_attn])";
    if (entry.parameters == "([SCOPE,...])") text += "([attention.output])";
    if (entry.parameters == "(POLICY)") text += "(full)";
    if (entry.parameters == "(SELECTOR,...)") text += "(attention_forward)";
    if (entry.parameters == "(save=[REGION,...],recompute=[REGION,...])") {
      text += "(save=[attention,ffn::matmul#1],recompute=[ffn])";
    }
    if (entry.parameters == "(save=[PATTERN,...],recompute=[PATTERN,...])") {
      text += "(save=[attention.*],recompute=[attention.wo.*])";
    }
    if (entry.parameters == "(NAME=PLACE,...)") text += "(out_proj=device)";
    CHECK(name_of(text) == text);
    CHECK_FALSE(entry.description.empty());
  }
}

TEST_CASE("the catalogue lists the named policies") {
  std::vector<std::string> names;
  for (const CatalogueEntry& entry : catalogue()) {
    names.push_back(std::string(entry.name) + std::string(entry.parameters));
  }
  CHECK(names ==
        std::vector<std::string>{"none",
                                 "full",
                                 "full_reentrant",
                                 "full_nostop",
                                 "nth_last(N)",
                                 "nth_first(N)",
                                 "skip_nth(N)",
                                 "first_n(N)",
                                 "last_n(N)",
                                 "skip_list([I,...])",
                                 "only_list([I,...])",
                                 "attn_only",
                                 "attn_only_v1",
                                 "attn_only_self",
                                 "ops_block",
                                 "save_mm",
                                 "save_compute",
                                 "sac_titan",
                                 "sac_titan_all",
                                 "sac_titan_even",
                                 "sac_titan_excluding([SCOPE,...])",
                                 "sac_titan_2024",
                                 "sac_titan_2025(MODEL)",
                                 "sac_modalities(KEY,...)",
                                 "sac_grouped",
                                 "segments(N)",
                                 "root",
                                 "ops_root",
                                 "sac_split(attn: X, ffn: Y)",
                                 "sac_split_flex_compiled",
                                 "sac_split_flex_eager",
                                 "recompute_modules([MODULE,...])",
                                 "full_except(SELECTOR,...)",
                                 "remat_save_out_proj",
                                 "remat_save_qkv_proj",
                                 "remat_save_dot_except_mlp",
                                 "remat_save_dot_except_mlpwi",
                                 "remat_save_dot_with_context_except_mlp",
                                 "remat_minimal",
                                 "remat_minimal_offloaded",
                                 "remat_qkv_proj_offloaded",
                                 "remat_minimal_with_context",
                                 "remat_custom(NAME=PLACE,...)",
                                 "keep_collectives(POLICY)",
                                 "reissue_collectives(POLICY)",
                                 "no_reshard(POLICY)",
                                 "offload_inputs(POLICY)",
                                 "offload_saved(POLICY)",
                                 "sac_and_offload",
                                 "offload_modules([MODULE,...])",
                                 "remat(save=[REGION,...],recompute=[REGION,...])",
                                 "remat_titan(save=[PATTERN,...],recompute=[PATTERN,...])"});
}

TEST_CASE("a policy may equal full or none only if its arguments ask for that, as in nth_last(1)") {
  for (const char* text : {"none", "full", "nth_last(1)", "nth_first(1)", "skip_nth(1)",
                           "segments(1)", "skip_list([])", "only_list([])"}) {
    CAPTURE(text);
    CHECK(parsed(text).no_effect_is_intended);
  }
  for (const char* text :
       {"full_nostop", "nth_last(2)", "first_n(1)", "skip_list([0])", "attn_only", "root"}) {
    CAPTURE(text);
    CHECK_FALSE(parsed(text).no_effect_is_intended);
  }
}

TEST_CASE("the error for bad arguments says what to write") {
  CHECK(message_of("nth_last") == "'nth_last' needs N: write nth_last(N), for example nth_last(2)");
  CHECK(message_of("nth_last()") == message_of("nth_last"));
  CHECK(message_of("nth_last(2,3)") ==
        "'nth_last' takes one argument, but got 2: write nth_last(N), for example nth_last(2)");
  CHECK(message_of("full(2)") == "'full' takes no arguments, but got (2)");
  CHECK(message_of("skip_list") ==
        "'skip_list' needs a list: write skip_list([I,...]); [] is an empty list");
  CHECK(message_of("skip_list()") == message_of("skip_list"));
  CHECK(message_of("skip_list([1,1])") == "skip_list names layer 1 twice; name it once");
  for (const char* bad : {"0", "-1", "two", "2.0", "1e3", "2 3", "+2", "1000001",
                          "99999999999999999999", "-99999999999999999999"}) {
    CAPTURE(bad);
    CHECK(message_of("nth_last(" + std::string(bad) + ")") ==
          "N of nth_last(N) must be a whole number from 1 to 1000000, not '" + std::string(bad) +
              "'");
  }
  for (const char* bad : {"-1", "x", "1000001", "0.5", "(1)", "[1]"}) {
    CAPTURE(bad);
    CHECK(message_of("only_list([" + std::string(bad) + "])") ==
          "a layer index of only_list must be a whole number from 0 to 1000000, not '" +
              std::string(bad) + "'");
  }
  CHECK(message_of("only_list([1,,2])") ==
        "a layer index of only_list must be a whole number from 0 to 1000000, not ''");
}

TEST_CASE("the error for an unknown or malformed name suggests the nearest known name") {
  CHECK_THAT(message_of("nth_lst(2)"),
             Catch::Contains("unknown policy 'nth_lst'") && Catch::Contains("nth_last"));
  CHECK_THAT(message_of("ful"), Catch::Contains("full"));
  for (const char* bad : {"nth_last(2", "nth_last 2", "nth_last(2))", "nth_last[2]", "(2)x",
                          "nth_last(2)x", "skip_list([0)]"}) {
    CAPTURE(bad);
    CHECK_THAT(message_of(bad), Catch::Contains("is not of the form"));
  }
  CHECK(message_of("  ") == "a policy name is empty; `rematch list` shows all policies");
  CHECK_THAT(message_of("(2)"), Catch::Contains("unknown policy ''"));
  for (const char* text : {"nth_lst(2)", "x", "nth_last(\n)", "full(2)"}) {
    CAPTURE(text);
    CHECK(message_of(text).find('\n') == std::string::npos);
  }
}

TEST_CASE("the error for a missing policy file gives its path") {
  CHECK_THAT(message_of("no/such/policy.json"), Catch::Contains("no/such/policy.json"));
}

// A report stores only the names of policies, and the policy named `none` is its reference.
TEST_CASE("a policy file with the name of another policy is rejected") {
  const testing::ScratchFolder folder;
  const std::string path = folder.file("mine.json");
  const auto write = [&](const std::string& name, const std::string& rest) {
    std::ofstream(path) << R"({"schema": "rematch.policy/1.0", "name": ")" << name << '"' << rest
                        << "}";
  };
  for (const char* name : {"none", "save_mm", "nth_last(2)", "nth_last( 2 )", "maxtext:minimal"}) {
    CAPTURE(name);
    write(name, R"(, "save": ["embedding"])");
    CHECK(message_of(path) ==
          path + ": name: '" + name +
              "' already names a different policy in `rematch list`; choose another name");
  }
  // the file contains exactly the catalogue's policy
  write("full", R"(, "no_effect_is_intended": true)");
  CHECK(name_of(path) == "full");
  write("mine.json", R"(, "save": ["embedding"])");
  CHECK(name_of(path) == "mine.json");
}

TEST_CASE("commas inside brackets do not split a list of policies") {
  const auto list = parse_policies("none, skip_list([0,2]),skip_list(1,3) ,nth_last(2)");
  REQUIRE(std::holds_alternative<std::vector<Policy>>(list));
  std::vector<std::string> names;
  for (const Policy& policy : std::get<std::vector<Policy>>(list)) names.push_back(policy.name);
  CHECK(names ==
        std::vector<std::string>{"none", "skip_list([0,2])", "skip_list([1,3])", "nth_last(2)"});
}

TEST_CASE("lists of policies with empty entries, repeats or unclosed brackets are rejected") {
  const auto message = [](std::string_view text) {
    const auto list = parse_policies(text);
    return std::holds_alternative<Rejected>(list) ? std::get<Rejected>(list).message : "";
  };
  CHECK_THAT(message("none,,full"), Catch::Contains("empty entry"));
  CHECK_THAT(message(""), Catch::Contains("empty entry"));
  CHECK_THAT(message("none,"), Catch::Contains("empty entry"));
  CHECK(message("nth_last(2),nth_last( 2 )") == "policy nth_last(2) is listed twice; list it once");
  CHECK_THAT(message("skip_list([0,2),none"), Catch::Contains("are unbalanced"));
  CHECK_THAT(message("none,nth_lst(2)"), Catch::Contains("unknown policy"));
}

}  // namespace
}  // namespace rematch
