// Tests the command line of the binary in every build.
#include <fstream>
#include <regex>
#include <sstream>

#include "policies/base/json.h"
#include "tests/harness/cli/command_line.h"
#include "tests/support/catch.h"
#include "tests/support/in_tree.h"
#include "tests/support/scratch_folder.h"

namespace rematch::testing {
namespace {

// Requires that lines fit into the width. Only a line that is a single word may be longer.
void check_lines(const std::string& text, std::size_t width) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    const bool is_one_word = line.find(' ', line.find_first_not_of(' ')) == std::string::npos;
    CHECK((line.size() <= width || is_one_word));
  }
}

TEST_CASE("help goes to stdout with examples, for the tool and each subcommand") {
  const Outcome help = rematch("--help");
  CHECK(help.code == 0);
  CHECK(help.err.empty());
  CHECK_THAT(help.out, Catch::Contains("Examples:") && Catch::Contains("Exit codes"));
  for (const char* command :
       {"list",      "describe",     "trace",       "plan",       "predict",
        "profile",   "search",       "run",         "sweep",      "sweep plan",
        "sweep run", "sweep status", "sweep merge", "sweep emit", "compare",
        "gate",      "merge",        "render",      "validate",   "doctor"}) {
    const Outcome one = rematch(std::string(command) + " --help");
    CAPTURE(command);
    CHECK(one.code == 0);
    CHECK_THAT(one.out, Catch::Contains(std::string("rematch ") + command));
    CHECK_THAT(one.out, Catch::Contains("Example"));
    check_lines(one.out, 100);
  }
}

TEST_CASE("lists of policies, models and systems wrap between words") {
  for (const std::string arguments : {"list", "list --systems"}) {
    const Outcome list = rematch(arguments);
    CAPTURE(arguments);
    REQUIRE(list.code == 0);
    check_lines(list.out, 120);
  }
}

TEST_CASE("help gives the range and the default of a flag") {
  std::string help = rematch("search --help").out;
  CHECK(help.find("=[]") == std::string::npos);
  help = std::regex_replace(help, std::regex("\\s+"), " ");  // joins wrapped lines
  for (const char* words :
       {"on_demand or whole_region (default: on_demand)", "or none (default: adamw)",
        "points that match baselines, are printed in addition (2 to 10000; default: 16)",
        "(1 to 4096; default: LibTorch's choice, shared among ranks)", "--points N",
        "Dimensions (default: the preset's):"}) {
    CHECK_THAT(help, Catch::Contains(words));
  }
}

// If a flag has a range and a default, both must be in one pair of parentheses. Section
// "Dimensions" is skipped, because its heading states the defaults of its flags.
TEST_CASE("every flag with a value states its default once, or states that there is no default") {
  for (const char* command :
       {"describe", "trace", "plan", "predict", "profile", "search", "run", "sweep plan",
        "sweep run", "sweep merge", "sweep emit", "compare", "gate", "merge", "render"}) {
    std::string help = rematch(std::string(command) + " --help").out;
    help = help.substr(0, help.find("\nDimensions "));
    help = std::regex_replace(help, std::regex("\n {20,}"), " ");  // puts each flag on one line
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) {
      if (!std::regex_search(line, std::regex("^  (-o,)?--[a-z0-9-]+ (N|TEXT)"))) continue;
      CAPTURE(command, line);
      const std::regex says(R"(default: |no default\)|[( ]required\))");
      CHECK(std::distance(std::sregex_iterator(line.begin(), line.end(), says),
                          std::sregex_iterator()) == 1);
      CHECK_FALSE(std::regex_search(line, std::regex(R"(\) \([0-9])")));
    }
  }
}

TEST_CASE("a command without a subcommand is a usage error that shows the help") {
  const Outcome outcome = rematch("");
  CHECK(outcome.code == 2);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, Catch::Contains("describe"));
}

TEST_CASE("the error for an unknown subcommand or flag suggests the nearest known name") {
  check_usage_error("descrbe wan_small full", "did you mean 'describe'");
  check_usage_error("plan --polcy full", "did you mean '--policy'");
  check_usage_error("list extra", "'extra' is one argument too many");
}

// The value is a list of thirty names without spaces. The message quotes at most 120 characters of
// the list, cuts no name in two, and then gives its advice.
TEST_CASE(
    "an error shortens a long value but still shows the names around the value and the advice") {
  std::string names = "layers.0.wq";
  for (int layer = 1; layer < 30; ++layer) names += ",layers." + std::to_string(layer) + ".wq";
  for (const auto& [arguments, advice] : std::vector<std::pair<std::string, std::string>>{
           {"search --model wan_small --device h100 --budget " + names, "give a number above 0"},
           {"search --model wan_small --device h100 --max-slowdown " + names,
            "is not a percentage"},
           {"plan --model wan_small --policy " + names, "is not of the form name"},
           {names, "known: list, describe"},
           {"list --" + names, "known: --help, --json"}}) {
    const Outcome outcome = rematch(arguments);
    CAPTURE(arguments, outcome.err);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, Catch::Contains(".wq,...'") && Catch::Contains(advice));
    CHECK(is_one_clear_line(outcome));
  }
}

TEST_CASE("the token grid that --tokens chooses is printed once, on stderr") {
  const auto notes_of = [](const std::string& command) {
    const std::string err = rematch(command).err;
    std::size_t count = 0;
    for (std::size_t at = 0; (at = err.find("token grid of", at)) != std::string::npos; ++at)
      ++count;
    CAPTURE(err);
    CHECK((count == 0 ||
           err.find("token grid of 2 x 4 x 4 (frames x height x width)") != std::string::npos));
    return count;
  };
  const auto notes = [&](const std::string& flags) {
    return notes_of("profile --device h100 --model wan_small " + flags);
  };
  CHECK(notes("--tokens 32") == 1);
  CHECK(notes("--tokens 32 --frames 2 --height 4 --width 4") == 0);
  CHECK(notes("--layers 2") == 0);
  CHECK(notes_of("describe wan_small full --tokens 32") == 1);
  CHECK(notes_of("trace --model wan_small --tokens 32") == 1);
  CHECK(notes_of("plan --model wan_small --policy full --tokens 32") == 1);
  const std::string search = "search --model wan_small --device h100 --layers 1 ";
  CHECK(notes_of(search + "--points 2 --tokens 32") == 1);
  CHECK(notes_of(search + "--maximize tokens_per_second --batch 1:2 --tokens 32") == 1);
}

TEST_CASE("list prints policies and models, as text and as JSON") {
  const Outcome text = rematch("list");
  CHECK(text.code == 0);
  CHECK_THAT(text.out, Catch::Contains("nth_last(N)") && Catch::Contains("wan_small"));
  const Json json = Json::parse(rematch("list --json").out);
  CHECK(json["policies"].size() > 10);
  CHECK(json["models"].size() >= 5);
  CHECK(json["policies"][0]["name"] == "none");
}

TEST_CASE("missing files and files of a wrong kind are refused") {
  const ScratchFolder scratch;
  std::ofstream(scratch.file("broken.json")) << "{\"schema\": ";
  std::ofstream(scratch.file("other.json")) << "{\"schema\": \"rematch.plan/9.0\"}";
  check_usage_error("plan --policy full --trace " + scratch.file("missing.json"), "missing.json");
  check_usage_error("plan --policy full --trace " + scratch.file("broken.json"), "broken.json");
  check_usage_error("plan --policy full --trace " + scratch.file("other.json"), "rematch.plan/9.0");
  check_usage_error("validate " + scratch.file("broken.json"), "broken.json");
  check_usage_error("validate " + scratch.file("missing.json"), "missing.json");
}

TEST_CASE("merge refuses inputs that do not belong together") {
  const ScratchFolder scratch;
  Json point = Json::parse(text_of(in_tree("tests/reports/fixtures/point.json")));
  std::ofstream(scratch.file("here.json")) << point;
  point["environment"]["cpu_model"] = "Another CPU";
  std::ofstream(scratch.file("there.json")) << point;
  const std::string both = scratch.file("here.json") + " " + scratch.file("there.json");

  check_usage_error("merge", "no report given");
  check_usage_error("merge " + scratch.file("missing.json"), "missing.json");
  check_usage_error("merge " + both + " -o /no/such/folder/out.json", "/no/such/folder");
  const Outcome mixed = rematch("merge " + both);
  CHECK(mixed.code == 6);
  CHECK(is_one_clear_line(mixed));
  CHECK_THAT(mixed.err, Catch::Contains("differ in cpu_model") && Catch::Contains("--allow-mixed"));
  const Outcome apart = rematch("merge --allow-mixed " + both);
  CHECK(apart.code == 0);
  CHECK(Json::parse(apart.out)["sources"].size() == 2);

  point["point"]["memory"]["peak_allocated_bytes"] = 1;
  std::ofstream(scratch.file("other.json")) << point;
  check_usage_error("merge " + scratch.file("there.json") + " " + scratch.file("other.json"),
                    "differs in \"memory\"");
}

TEST_CASE("an output that cannot be written is refused before anything runs") {
  check_usage_error("plan --policy full --model wan_small -o /no/such/folder/plan.json",
                    "/no/such/folder");
  check_usage_error("plan --policy full --model wan_small -o /tmp", "it is a folder");
}

TEST_CASE("an error about a flag names the flag and its allowed values") {
  check_usage_error("run --model", "--model needs a value; see --help");
  check_usage_error("run --model llama_small --policy full --steps 0",
                    "--steps must be 1 to 1000000, not 0; see --help");
  check_usage_error("compare a.json", "compare takes two reports");
  check_usage_error("sweep", "needs a subcommand");
}

TEST_CASE("a failed write to stdout is an error") {
  for (const char* arguments : {"list", "list --json", "--help", "--version"}) {
    CAPTURE(arguments);
    const Outcome outcome =
        run_program("sh", "-c '" + std::string(binary()) + " " + arguments + " >/dev/full'");
    CHECK(outcome.code == 1);
    CHECK(outcome.err == "rematch: cannot write to stdout: No space left on device\n");
  }
}

TEST_CASE("unknown and misspelled policies are refused") {
  check_usage_error("plan --model wan_small --policy fulll", "did you mean 'full'");
  check_usage_error("plan --model wan_small --policy 'nth_last(0)'", "0");
}

TEST_CASE("search and profile reject unusable inputs with a one-line error") {
  const std::string model = " --model llama_small ";
  check_usage_error("search" + model, "a search needs times");
  check_usage_error("search" + model + "--device cpu --profile p.json",
                    "give only one of the two flags");
  check_usage_error("search" + model + "--device h100 --attention math", "--device cpu or cuda");
  check_usage_error("profile" + model + "--device h100 --attention math", "is a data sheet");
  check_usage_error("profile --links --parallel tp=2 --deterministic-times", "leave out");
  check_usage_error("search" + model + "--device cpu --ceilings c.json",
                    "replaces the rates of a data sheet");
  check_usage_error("profile" + model + "--ceilings c.json", "replaces the rates of a data sheet");
  check_usage_error("predict" + model + "--policy none --ceilings c.json",
                    "replaces the rates of a data sheet");
  check_usage_error("predict" + model + "--policy none --device h200 --ceilings none.json",
                    "none.json");
  check_usage_error("search" + model + "--device h100 --budget 24G", "'24G' is not a size");
  check_usage_error("search" + model + "--device h100 --max-slowdown -5%", "is not a percentage");
  check_usage_error("search" + model + "--device h100 --budget 1GiB --max-slowdown 5%",
                    "give only one of the two flags");
  check_usage_error("search" + model + "--device h100 --schedule both", "takes one schedule");
  check_usage_error("search" + model + "--device h100 --optimizer adamax", "did you mean 'adamw'?");
  check_usage_error("search --trace /nonexistent.json --device h100", "/nonexistent.json");
  check_usage_error("search" + model + "--device h1000", "did you mean");
  check_usage_error("search" + model + "--device h100 --budget 24", "'24' has no unit");
  check_usage_error("search" + model + "--device h100 --points 1", "--points");
  check_usage_error("search" + model + "--device h100 --world 0", "--world");
  check_usage_error("search" + model + "--device h100 --measure 2", "--measure");
  check_usage_error("search" + model + "--device h100 --batch 4:1", "is not a range");
  check_usage_error("search" + model + "--device h100 --batch 1:8",
                    "only rematch search --maximize");
  check_usage_error("search" + model + "--device h100 --batch x", "--batch");
  const std::string most = "search" + model + "--maximize tokens_per_second ";
  check_usage_error("search" + model + "--device h100 --batch 1:8 --maximize loss",
                    "allowed is tokens_per_second");
  check_usage_error(most + "--device h100", "needs a range");
  check_usage_error(most + "--device h100 --batch 1:8 --tokens 8:16", "only one dimension");
  check_usage_error(most + "--profile p.json --batch 1:8", "contains the times of one size");
  check_usage_error(most + "--device h100 --batch 1:8 --budget 24", "'24' has no unit");
  check_usage_error(most + "--device h100 --batch 1:8 --max-slowdown 5%",
                    "cannot be combined with");
  check_usage_error("profile" + model + "--device h1000", "did you mean");
  check_usage_error("profile --trace t.json --device cpu", "--trace cannot be measured");
  check_usage_error("profile" + model + "--against p.json", "give --device h100");
}

// This test case must pass in every build: without LibTorch, with LibTorch but without CUDA, and
// with both but without a visible device.
TEST_CASE("a missing GPU is reported before anything is measured") {
  const Outcome outcome =
      rematch("profile --model llama_small --device cuda", "CUDA_VISIBLE_DEVICES= ");
  CHECK(outcome.code == 2);
  CHECK(is_one_clear_line(outcome));
  CHECK_THAT(outcome.err, (Catch::Contains("cuda") && Catch::Contains("build")) ||
                              Catch::Contains("device 'cuda' cannot be used: "));
  check_usage_error("profile --trace t.json --device cuda", "--trace cannot be measured");
}

}  // namespace
}  // namespace rematch::testing
