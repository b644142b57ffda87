#include "policies/plan/selector.h"
#include "policies/base/rejected.h"

#include <catch2/catch.hpp>

#include "tests/support/ids.h"
#include "tests/support/random_trace.h"
#include "tests/support/seeds.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

using Catch::Contains;
using testing::toy_llama;

Selector parsed(std::string_view text) { return std::get<Selector>(parse_selector(text)); }

std::string rejection(std::string_view text) {
  const auto result = parse_selector(text);
  REQUIRE(std::holds_alternative<Rejected>(result));
  return std::get<Rejected>(result).message;
}

// Returns the ops that a selector picks, as "scope name".
std::vector<std::string> picked(std::string_view text, const Trace& trace) {
  const IdTable<OpId, bool> flags = matches(parsed(text), trace);
  REQUIRE(flags.size() == trace.ops.size());
  std::vector<std::string> ops;
  for (const OpId index : flags.ids()) {
    if (!flags[index]) continue;
    const TracedOp& op = trace.ops[index];
    const std::string scope = op.scope ? trace.scopes.at(*op.scope).path : "-";
    ops.push_back(scope + " " + op.name);
  }
  return ops;
}

std::size_t num_picked(std::string_view text, const Trace& trace) {
  return picked(text, trace).size();
}

using Names = std::vector<std::string>;

TEST_CASE("an op in PyTorch's spelling is parsed, and .default means only the default overload") {
  struct Row {
    const char* text;
    Selector selector;
  };
  const Row rows[] = {
      {"aten.mm.default", {"", "aten::mm.default", {}}},
      {"ops.aten.mm.default", {"", "aten::mm.default", {}}},
      {"torch.ops.aten.mm.default#2", {"", "aten::mm.default", 2}},
      {"*.attention::aten.mm.out", {"*.attention", "aten::mm.out", {}}},
      {"*.attention::torch.ops.aten.add.Tensor", {"*.attention", "aten::add.Tensor", {}}},
      {"_c10d_functional.all_to_all_single.default",
       {"", "_c10d_functional::all_to_all_single.default", {}}},
      {"higher_order.flex_attention", {"", "higher_order::flex_attention", {}}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(parsed(row.text) == row.selector);
    CHECK(parsed(to_string(row.selector)) == row.selector);
  }
  for (const char* text : {"aten.mm", "ops.aten.mm", "*.attention::torch.ops.aten.mm#2"}) {
    CAPTURE(text);
    CHECK_THAT(rejection(text),
               Contains("names no overload; write '") && Contains("aten.mm.default'"));
  }
  for (const char* text : {"aten.", "aten.mm.", "higher_order."}) {
    CAPTURE(text);
    CHECK_THAT(rejection(text), Contains("is not an op class"));
  }
  CHECK_THAT(rejection("attn.mm.default"), Contains("is not an op class"));
  const Trace toy = toy_llama();
  CHECK(picked("aten.mm.default", toy) == picked("aten::mm", toy));
  CHECK(num_picked("aten::mm.default", toy) > 0);
  CHECK(num_picked("aten::mul.Tensor", toy) > 0);
  CHECK(num_picked("aten::mul.default", toy) == 0);
}

TEST_CASE("an ATen op is parsed without its namespace") {
  struct Row {
    const char* text;
    Selector selector;
  };
  const Row rows[] = {
      {"mm", {"", "aten::mm", {}}},
      {"addmm#2", {"", "aten::addmm", 2}},
      {"_to_copy", {"", "aten::_to_copy", {}}},
      {"add.Tensor", {"", "aten::add.Tensor", {}}},
      {"*.attention::mm#2", {"*.attention", "aten::mm", 2}},
      {"blocks.3::mm", {"blocks.3", "aten::mm", {}}},
      {"embed::mm", {"embed", "aten::mm", {}}},
      {"embedding", {"", "embedding", {}}},        // selects the class, not the op aten::embedding
      {"xformers::mm", {"", "xformers::mm", {}}},  // selects an op of another library
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(parsed(row.text) == row.selector);
    CHECK(parsed(to_string(row.selector)) == row.selector);
  }
  const Trace trace = toy_llama();
  CHECK(num_picked("*.attention::mm#2", trace) == 4);
  CHECK(picked("*.attention::mm#2", trace) == picked("*.attention::aten::mm#2", trace));
}

TEST_CASE("a selector of any form is parsed and printed unchanged") {
  struct Row {
    std::string text;
    Selector selector;
  };
  const Row rows[] = {
      {"attention_forward", {"", "attention_forward", {}}},
      {"aten::mm", {"", "aten::mm", {}}},
      {"aten::add.Tensor", {"", "aten::add.Tensor", {}}},
      {"matmul#3", {"", "matmul", 3}},
      {"*.attention::matmul#2", {"*.attention", "matmul", 2}},
      {"blocks.3.ffn::aten::addmm", {"blocks.3.ffn", "aten::addmm", {}}},
      {"blocks.*::_c10d_functional::wait_tensor#1",
       {"blocks.*", "_c10d_functional::wait_tensor", 1}},
      {"embed::embedding", {"embed", "embedding", {}}},
      // "aten::" makes this select the op, although a class has the same name
      {"aten::embedding", {"", "aten::embedding", {}}},
      {"embed::aten::embedding", {"embed", "aten::embedding", {}}},
      {"mylib::fast_op", {"", "mylib::fast_op", {}}},
      {"*::matmul", {"*", "matmul", {}}},
      {"*.moe.router::matmul", {"*.moe.router", "matmul", {}}},
      {"*.ffn::result", {"*.ffn", "result", {}}},
      {"*.attention.qkv::result#3", {"*.attention.qkv", "result", 3}},
      {"result", {"", "result", {}}},
      {"ffn::result", {"ffn", "result", {}}},
      // "aten::" makes this select an op named result, not the result of a scope
      {"aten::result", {"", "aten::result", {}}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(parsed(row.text) == row.selector);
    CHECK(to_string(row.selector) == row.text);
  }
}

TEST_CASE("the error for a malformed selector says what to write") {
  struct Row {
    std::string text;
    std::string message;
  };
  const Row rows[] = {
      {"mn", "'mn' is not an op class"},
      {"mm.", "'mm.' is not an op class"},
      {"atention_forward", "did you mean 'attention_forward'?"},
      {"*.ffn::reslt", "did you mean 'result'?"},
      {"qwertyuiop",
       "'qwertyuiop' is not an op class; write an op class (attention_forward), an op (aten::mm)"},
      {"blocks.3::mn", "'mn' is not an op class"},
      {"", "no op and no op class"},
      {"blocks.3::", "no op and no op class"},
      {"::matmul", "empty scope pattern"},
      {"matmul#0", "'0' after # is out of range"},
      {"matmul#-1", "'-1' after # is out of range"},
      {"matmul#two", "'two' after # is out of range"},
      {"matmul#", "after # is out of range"},
      {"matmul#99999999999", "after # is out of range"},
      {"a b::matmul", "cannot contain spaces"},
      {"a+b::matmul", "scope pattern 'a+b' may hold"},
      {"a:b::matmul", "scope pattern 'a:b' may hold"},
      {"aten::mm, aten::addmm", "cannot contain spaces"},
      {"#1", "no op and no op class"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const std::string message = rejection(row.text);
    CHECK_THAT(message, Contains(row.message));
    CHECK_THAT(message, Contains("selector '" + row.text + "'"));
    CHECK(message.find('\n') == std::string::npos);
  }
}

TEST_CASE("a star in a pattern matches any sequence of characters") {
  CHECK(matches_pattern("*", ""));
  CHECK(matches_pattern("*", "a.b"));
  CHECK(matches_pattern("*.attention", "blocks.3.attention"));
  CHECK_FALSE(matches_pattern("*.attention", "attention"));
  CHECK_FALSE(matches_pattern("*.attention", "blocks.3.attention.core"));
  CHECK(matches_pattern("blocks.*.ffn", "blocks.12.moe.ffn"));
  CHECK(matches_pattern("a*b*c", "axxbyybzc"));
  CHECK_FALSE(matches_pattern("a*b*c", "axxcyyb"));
  CHECK_FALSE(matches_pattern("", "a"));
  CHECK(matches_pattern("", ""));
  CHECK_FALSE(matches_pattern("blocks.1", "blocks.12"));
}

TEST_CASE("classes, names and scopes select the ops of a Llama") {
  const Trace trace = toy_llama({.layers = 2});
  CHECK(num_picked("aten::mm", trace) == 15);
  CHECK(num_picked("matmul", trace) == 15);
  CHECK(num_picked("aten::addmm", trace) == 0);
  CHECK(num_picked("blocks.*::matmul", trace) == 14);
  CHECK(num_picked("blocks.1::matmul", trace) == 7);
  CHECK(num_picked("*.attention::matmul", trace) == 8);
  CHECK(picked("attention_forward", trace) ==
        Names{"blocks.0.attention rematch::attention", "blocks.1.attention rematch::attention"});
  CHECK(picked("head::aten::mm", trace) == Names{"head aten::mm"});
}

TEST_CASE(
    "a name without an overload means every overload, and a name with an overload means only that "
    "overload") {
  const Trace trace = toy_llama({.layers = 1});
  // matches the residual adds, but not add_.Scalar
  CHECK(num_picked("aten::add", trace) == 2);
  CHECK(num_picked("aten::add.Tensor", trace) == 2);
  CHECK(num_picked("aten::add.Scalar", trace) == 0);
  CHECK(num_picked("aten::add_", trace) == 3);
}

// The third matmul is w2 in each ffn, and wv in each attention.
TEST_CASE("the number after # counts ops separately in each matching scope") {
  const Trace trace = toy_llama({.layers = 2});
  CHECK(picked("*.ffn::matmul#3", trace) ==
        Names{"blocks.0.ffn aten::mm", "blocks.1.ffn aten::mm"});
  CHECK(num_picked("*.ffn::matmul#4", trace) == 0);
  CHECK(num_picked("blocks.*::matmul#5", trace) == 2);
  CHECK(picked("blocks.*::matmul#5", trace) ==
        Names{"blocks.0.ffn aten::mm", "blocks.1.ffn aten::mm"});
}

TEST_CASE("if nested scopes match, ops are counted in the outermost matching scope") {
  const Trace trace = toy_llama({.layers = 2});
  // The pattern `*` matches both blocks.0 and blocks.0.ffn. Matmuls are counted in blocks.0, where
  // w1 is the fifth.
  CHECK(picked("*::matmul#5", trace) == picked("blocks.*::matmul#5", trace));
}

TEST_CASE("without a pattern, the number after # counts ops separately in each top-level scope") {
  const Trace trace = toy_llama({.layers = 2});
  CHECK(picked("matmul#1", trace) ==
        Names{"blocks.0.attention aten::mm", "blocks.1.attention aten::mm", "head aten::mm"});
}

TEST_CASE("only a selector without a pattern matches ops outside every scope") {
  Trace trace = toy_llama({.layers = 1});
  for (TracedOp& op : trace.ops) op.scope.reset();
  CHECK(num_picked("matmul", trace) == 8);
  CHECK(num_picked("*::matmul", trace) == 0);
  CHECK(num_picked("matmul#8", trace) == 1);
}

// The reference implementation is simpler and slower. For each op it finds the outermost matching
// scope, and counts the earlier matching ops of this scope.
TEST_CASE("a selector matches the same ops as the reference implementation", "[property]") {
  const std::vector<std::string> texts = {
      "matmul",           "matmul#2",          "*.attention::matmul", "*.ffn::matmul#1",
      "blocks.*::copy#1", "*core::aten::mm#2", "aten::add#3",         "blocks.1*::elementwise#2"};
  for (std::uint32_t seed = 0; seed < testing::num_seeds(40); ++seed) {
    const Trace trace = testing::random_trace(seed);
    for (const std::string& text : texts) {
      CAPTURE(seed, text);
      const Selector selector = parsed(text);
      const auto instance = [&](const TracedOp& op) {
        std::optional<ScopeId> found;
        for (auto id = op.scope; id;) {
          const TracedScope& scope = trace.scopes.at(*id);
          if (selector.scope_pattern.empty() ||
              matches_pattern(selector.scope_pattern, scope.path)) {
            found = id;
          }
          id = scope.parent;
        }
        return found;
      };
      const auto is_kind = [&](const TracedOp& op) {
        return to_string(op.op_class) == selector.op || op.name == selector.op ||
               op.name.substr(0, op.name.find('.')) == selector.op;
      };
      IdTable<OpId, bool> expected;
      for (const OpId index : trace.ops.ids()) {
        const TracedOp& op = trace.ops[index];
        const std::optional<ScopeId> own = instance(op);
        bool picks = is_kind(op) && (own || selector.scope_pattern.empty());
        if (picks && selector.nth) {
          int nth = 1;
          for (const OpId before : IdRange(0_op, index)) {
            nth += is_kind(trace.ops[before]) && instance(trace.ops[before]) == own ? 1 : 0;
          }
          picks = nth == *selector.nth;
        }
        expected.push_back(picks);
      }
      REQUIRE(matches(selector, trace) == expected);
    }
  }
}

}  // namespace
}  // namespace rematch
