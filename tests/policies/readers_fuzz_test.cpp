// Gives damaged input to every reader in policies. A reader must return a value that can be written
// again, or throw its own error with a one-line message.
#include <functional>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/base/rejected.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/plan/plan_json.h"
#include "policies/plan/policy_json.h"
#include "policies/plan/selector.h"
#include "policies/predict/device/ceilings.h"
#include "policies/predict/device/links.h"
#include "policies/search/front/front_json.h"
#include "policies/search/front/front_search.h"
#include "policies/trace/profile_json.h"
#include "policies/trace/trace_json.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_ceilings.h"
#include "tests/support/made_up_links.h"
#include "tests/support/made_up_profile.h"
#include "tests/support/mutate_text.h"
#include "tests/support/random_trace.h"
#include "tests/support/seeds.h"
#include "tests/support/toy_trace.h"

namespace rematch::testing {
namespace {

bool is_one_line(const std::string& message) {
  return !message.empty() && message.find('\n') == std::string::npos;
}

struct Format {
  std::string name;
  Json sample;
  std::function<void(const Json&)> read;  // reads the input, and writes the value again
};

Trace small_trace(std::uint32_t seed) {
  return random_trace(seed,
                      {.layers = 2, .block_types = 2, .ops_per_block = 5, .ops_outside_blocks = 2});
}

FrontRecord small_front() {
  const Trace trace = small_trace(3);
  const Profile profile = made_up_profile(trace, 3);
  FrontSearch search(trace, profile, {});
  FrontRecord record = make_front_record(trace, profile, OptimizerKind::kAdamW);
  record.front = search.front(3, {});
  record.budget = search.lowest().figures.peak;
  record.answer = search.fastest_within(*record.budget);
  return record;
}

std::vector<Format> formats() {
  Trace toy = toy_llama({.layers = 2});
  toy.hidden = {{{"lib.ops:Rotary", std::vector<int>{0, 1}}, {"lib.ops:Scale", {}}},
                {{"lib::scale", {2}}},
                {"lib::noisy"}};
  const Policy save_mm = std::get<Policy>(parse_policy("save_mm"));
  Plan plan = std::get<Plan>(resolve(save_mm, toy));
  plan.other_shapes = {plan};
  const auto read_trace = [](const Json& json) { trace_to_json(trace_from_json(json)); };
  return {{"trace", trace_to_json(small_trace(3)), read_trace},
          {"links", links_to_json(made_up_links()),
           [](const Json& json) { links_to_json(links_from_json(json)); }},
          {"ceilings", ceilings_to_json(made_up_ceilings()),
           [](const Json& json) { ceilings_to_json(ceilings_from_json(json)); }},
          {"trace of the toy", trace_to_json(toy), read_trace},
          {"profile", profile_to_json(made_up_profile(small_trace(3), 3), small_trace(3)),
           [](const Json& json) {
             const Profile read = profile_from_json(json);
             profile_problem(read, small_trace(3));
           }},
          {"plan", plan_to_json(plan),
           [](const Json& json) {
             const Plan read = plan_from_json(json);
             plan_to_json(read);
             plan_effect_json(read);
           }},
          {"front", front_to_json(small_front()),
           [](const Json& json) { front_to_json(front_from_json(json)); }},
          {"policy", policy_to_json(save_mm), [toy](const Json& json) {
             const Policy read = policy_from_json(json);
             policy_to_json(read);
             resolve(read, toy);
           }}};
}

// Returns "" if the reader behaved as allowed, else a description of its behaviour.
std::string misbehaviour(const std::function<void()>& read) {
  try {
    read();
  } catch (const FormatError& error) {
    if (!is_one_line(error.what()))
      return "an error of more than one line: " + std::string(error.what());
  } catch (const std::exception& error) {
    return "a foreign exception: " + std::string(error.what());
  }
  return "";
}

TEST_CASE("files with damaged bytes are read, or rejected with a one-line error", "[property]") {
  for (const Format& format : formats()) {
    const std::string text = format.sample.dump(1);
    for (std::uint32_t seed = 0; seed < num_seeds(600); ++seed) {
      CAPTURE(format.name, seed);
      const std::string mutated = mutate_text(text, seed);
      CHECK(misbehaviour([&] { format.read(parse_json(mutated, "file.json")); }) == "");
    }
  }
}

TEST_CASE("files with wrong values are read, or rejected with a one-line error", "[property]") {
  for (const Format& format : formats()) {
    int read = 0;
    int refused = 0;
    for (std::uint32_t seed = 0; seed < num_seeds(900); ++seed) {
      CAPTURE(format.name, seed);
      const Json mutated = mutate_json(format.sample, seed);
      CAPTURE(mutated.dump());
      bool threw = true;
      CHECK(misbehaviour([&] {
              format.read(mutated);
              threw = false;
            }) == "");
      ++(threw ? refused : read);
    }
    // Some mutated files must be readable, and others must be rejected. Otherwise the mutations are
    // too strong or too weak.
    CHECK(read > 0);
    CHECK(refused > 0);
  }
}

TEST_CASE("damaged selectors and policy calls are parsed, or rejected with a one-line error",
          "[property]") {
  const std::vector<std::string> texts = {"*.attention::matmul#2",
                                          "attention_forward",
                                          "blocks.3.ffn::aten::addmm",
                                          "nth_first(2)",
                                          "skip_list([0,2,5])",
                                          "none,full,nth_last(3),save_mm",
                                          "segments(4)"};
  for (const std::string& text : texts) {
    for (std::uint32_t seed = 0; seed < num_seeds(600); ++seed) {
      const std::string mutated = mutate_text(text, seed);
      CAPTURE(text, seed, mutated);
      const auto selector = parse_selector(mutated);
      if (const auto* rejected = std::get_if<Rejected>(&selector)) {
        CHECK(is_one_line(rejected->message));
      } else {
        const Selector& parsed = std::get<Selector>(selector);
        CHECK((std::get<Selector>(parse_selector(to_string(parsed))) == parsed));
      }
      const auto policies = parse_policies(mutated);
      if (const auto* rejected = std::get_if<Rejected>(&policies)) {
        CHECK(is_one_line(rejected->message));
      }
    }
  }
}

}  // namespace
}  // namespace rematch::testing
