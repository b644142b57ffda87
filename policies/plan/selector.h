// Selectors pick ops of a trace. A selector has an optional scope pattern, then an op name, a class
// or the word `result`. An optional number picks the n-th such op in the scope.
//
//   attention_forward            every op of the class, anywhere
//   aten::mm                     every op of that exact name (overload omitted: any overload)
//   aten::max.default            that overload alone; `default` is the one that has no name
//   torch.ops.aten.max.default   the same as PyTorch writes it; `torch.` and `ops.` may be left out
//   mm, *.attention::mm#2        an ATen op without `aten::`, where no class has that name
//   *.attention::matmul#2        the second matmul of each scope matching `*.attention`
//   blocks.3.ffn::aten::addmm    in one scope only
//   *.ffn::result                the results of each matching scope, whatever op makes them
//   *.attention.qkv::result#3    the third such op of each, in op order
//
// A result is an op that makes a new storage which some forward op outside that scope instance
// reads, directly or through views. Views and in-place writes are not results.
//
// The character `*` in a pattern matches any run of characters. A scope matches with everything
// below it, so a scope inside a matching one is part of that instance. Without a pattern, every
// top-level scope is an instance: `matmul#2` is the second matmul of each block.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch {

struct Selector {
  std::string scope_pattern;  // empty: any scope
  std::string op;          // op name ("aten::mm", "aten::add.Tensor"), class ("matmul"), "result"
  std::optional<int> nth;  // from 1, per matching scope instance

  bool operator==(const Selector&) const = default;
};

// Parses any spelling above. Returns Rejected for other text, with the nearest known word.
std::variant<Selector, Rejected> parse_selector(std::string_view text);
std::string to_string(const Selector& selector);
std::vector<std::string> names_of(const std::vector<Selector>& selectors);

// Returns whether `text` matches a pattern in which `*` stands for any run of characters, including
// the empty one.
bool matches_pattern(std::string_view pattern, std::string_view text);

// Returns for each op of the trace, in order, whether the selector picks it.
IdTable<OpId, bool> matches(const Selector& selector, const Trace& trace);

// Returns for each op of the trace whether it is a result. A result makes a storage that a forward
// op outside its instance reads, directly or through views. `instance_of_scope` gives for each
// scope its instance, if any; the caller matches the patterns. Views and in-place writes make no
// storage: if a storage is written later, the op that made it is still the result.
IdTable<OpId, bool> scope_results(
    const Trace& trace, const IdTable<ScopeId, std::optional<ScopeId>>& instance_of_scope);

}  // namespace rematch
