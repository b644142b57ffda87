// Selectors pick ops of a trace. A selector consists of an optional scope pattern and one of four
// things: an op name, a class, or the word `result` or `any`. An optional number picks the n-th
// such op in the scope.
//
// Examples, with what each picks:
// - `attention_forward`: every op of this class in the trace
// - `aten::mm`: every op of exactly this name, with any overload
// - `aten::max.default`: every op of this name and overload; traces omit `.default`
// - `torch.ops.aten.max.default`: the same, as PyTorch writes it; `torch.` and `ops.` are optional
// - `mm`, `*.attention::mm#2`: ATen ops without `aten::`; allowed if no class has that name
// - `*.attention::matmul#2`: the second matmul of each scope that matches `*.attention`
// - `blocks.3.ffn::aten::addmm`: every addmm in a single scope
// - `*.ffn::result`: the results of each matching scope, made by any op
// - `*.ffn::any`: every op of each matching scope
// - `*.attention.qkv::result#3`: the third result of each matching scope, in op order
//
// An op is a result of a scope if it makes a new storage and a forward op outside the scope
// instance reads that storage, directly or through a view. Views and in-place writes are not
// results.
//
// The character `*` in a pattern matches any run of characters. A scope that matches includes
// everything below it, so a matching scope inside another matching scope is not a separate
// instance. Without a pattern, every top-level scope is an instance: `matmul#2` is the second
// matmul of each block.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policies/base/rejected.h"
#include "policies/trace/trace.h"

namespace rematch {

struct Selector {
  std::string scope_pattern;  // scope pattern; empty: any scope
  // op name ("aten::mm", "aten::add.Tensor"), class ("matmul"), "result" or "any"
  std::string op;
  std::optional<int> nth;  // number n of `#n`, from 1, counted in each matching scope instance

  bool operator==(const Selector&) const = default;
};

// Parses a selector that is spelled as in the examples above. Returns Rejected for other text, with
// the nearest known word.
std::variant<Selector, Rejected> parse_selector(std::string_view text);
std::string to_string(const Selector& selector);
std::vector<std::string> names_of(const std::vector<Selector>& selectors);

// Returns whether `text` matches a pattern in which `*` matches any characters, or none.
bool matches_pattern(std::string_view pattern, std::string_view text);

// Returns for each op of the trace, in order, whether the selector picks it.
IdTable<OpId, bool> matches(const Selector& selector, const Trace& trace);

// Returns for each op of the trace whether it is a result of a scope, as defined at the top of this
// file. `instance_of_scope` maps each scope to the matching scope that contains it, if any.
IdTable<OpId, bool> scope_results(
    const Trace& trace, const IdTable<ScopeId, std::optional<ScopeId>>& instance_of_scope);

}  // namespace rematch
