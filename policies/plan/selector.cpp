#include "policies/plan/selector.h"

#include <algorithm>
#include <array>
#include <map>

#include "policies/base/text.h"

namespace rematch {
namespace {

constexpr std::string_view kForms =
    "write an op class (attention_forward), an op (aten::mm), result or any, alone or after a "
    "scope pattern (*.attention::matmul#2)";

// The word that selects the results of a scope.
constexpr std::string_view kResult = "result";
// The word that selects every op.
constexpr std::string_view kAny = "any";

// The words that mark the next word as an op. `aten::embedding` is an op, although `embedding` is
// also a class. Any other first word is a scope, as in `embed::mm`.
constexpr std::array<std::string_view, 20> kNamespaces = {"aten",
                                                          "rematch",
                                                          "prim",
                                                          "prims",
                                                          "_c10d_functional",
                                                          "_c10d_functional_autograd",
                                                          "c10d",
                                                          "fsdp",
                                                          "flash_attn",
                                                          "flash_attn_3",
                                                          "fastvideo",
                                                          "fastvideo_kernel",
                                                          "torch_attn",
                                                          "higher_order",
                                                          "deepep",
                                                          "hybridep",
                                                          "xformers",
                                                          "xformers_flash",
                                                          "xformers_flash3",
                                                          "quantized"};

constexpr std::string_view kDefaultOverload = ".default";

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool consists_of(std::string_view text, std::string_view also_allowed) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return is_name_char(c) || also_allowed.find(c) != std::string_view::npos;
  });
}

Rejected reject(std::string_view text, const std::string& problem) {
  return Rejected{"selector " + in_quotes(text) + ": " + problem};
}

std::vector<std::string_view> known_words() {
  std::vector<std::string_view> names = all_words<OpClass>();
  names.insert(names.begin(), {kResult, kAny});
  return names;
}

bool is_known_namespace(std::string_view word) {
  return std::find(kNamespaces.begin(), kNamespaces.end(), word) != kNamespaces.end();
}

std::string_view without_prefix(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

// Returns whether the word names all overloads of an op at once, such as `torch.ops.aten.mm`.
// PyTorch calls this a packet.
bool is_packet(std::string_view word) {
  word = without_prefix(without_prefix(word, "torch."), "ops.");
  const std::size_t dot = word.find('.');
  return dot != std::string_view::npos && dot + 1 < word.size() &&
         is_known_namespace(word.substr(0, dot)) &&
         word.find('.', dot + 1) == std::string_view::npos;
}

// Returns the error message for a selector whose last word is unknown and has no namespace before
// it.
std::string not_a_class(std::string_view word) {
  if (is_packet(word)) {
    return in_quotes(word) + " names no overload; write " +
           in_quotes(std::string(word) + ".default");
  }
  const auto nearest = nearest_name(word, known_words());
  return in_quotes(word) + " is not an op class; " +
         (nearest ? "did you mean '" + *nearest + "'? " : std::string()) + std::string(kForms);
}

// A text split at its last "::". If there is none, `found` is false and `before` is empty.
struct Split {
  bool found = false;
  std::string_view before;
  std::string_view last;
};

Split split_last(std::string_view text) {
  const std::size_t colons = text.rfind("::");
  if (colons == std::string_view::npos) return {false, {}, text};
  return {true, text.substr(0, colons), text.substr(colons + 2)};
}

// Removes `#n` from the end of `text`. Returns Rejected if `#` is not followed by a number from 1.
std::variant<std::optional<int>, Rejected> take_nth(std::string_view whole,
                                                    std::string_view& text) {
  const std::size_t hash = text.rfind('#');
  if (hash == std::string_view::npos) return std::optional<int>();
  const std::string_view digits = text.substr(hash + 1);
  const auto nth = parse_number<int>(digits);
  if (!nth || *nth < 1) {
    return reject(whole,
                  in_quotes(digits) + " after # is out of range; allowed: whole numbers from 1");
  }
  text = text.substr(0, hash);
  return nth;
}

// Converts PyTorch's name of an op, such as `torch.ops.aten.mm.default`, to `aten::mm.default`. The
// prefixes `torch.` and `ops.` are optional. Returns "" for other text, including a name without an
// overload, unless the op is a higher-order op.
std::string from_torch_spelling(std::string_view word) {
  word = without_prefix(without_prefix(word, "torch."), "ops.");
  const std::size_t dot = word.find('.');
  if (dot == std::string_view::npos || !is_known_namespace(word.substr(0, dot))) return "";
  const bool is_higher_order = word.starts_with("higher_order.");
  const std::size_t overload = is_higher_order ? dot : word.find('.', dot + 1);
  if (overload == std::string_view::npos || overload + 1 == word.size()) return "";
  return std::string(word.substr(0, dot)) + "::" + std::string(word.substr(dot + 1));
}

// Returns the meaning of a selector's last word if no namespace precedes it, or "" if it has no
// meaning. A word that names both a class and an op means the class.
std::string op_of_word(std::string_view word) {
  if (word == kResult || word == kAny || from_string<OpClass>(word)) return std::string(word);
  std::string op = from_torch_spelling(word);
  if (!op.empty()) return op;
  op = "aten::" + std::string(word);
  const bool is_known = op_class_of(op) != OpClass::kOther;
  return is_known && !word.ends_with('.') ? op : "";
}

bool is_kind(const Selector& selector, std::optional<OpClass> op_class, const TracedOp& op) {
  if (op_class) return op.op_class == *op_class;
  if (selector.op == kAny || op.name == selector.op) return true;
  // A trace omits PyTorch's overload name `default`.
  if (selector.op.ends_with(kDefaultOverload)) {
    return op.name + std::string(kDefaultOverload) == selector.op;
  }
  return op.name.size() > selector.op.size() && op.name[selector.op.size()] == '.' &&
         op.name.starts_with(selector.op);
}

using Instances = IdTable<ScopeId, std::optional<ScopeId>>;

// Returns for each scope the outermost scope that matches: the scope itself or a scope around it.
// Returns nullopt for a scope without a match. Parents precede their children.
Instances matching_instances(const std::string& pattern, const Trace& trace) {
  Instances instances(trace.scopes.size());
  for (const ScopeId self : trace.scopes.ids()) {
    const TracedScope& scope = trace.scopes[self];
    if (scope.parent) instances[self] = instances[*scope.parent];
    const bool matches = pattern.empty() || matches_pattern(pattern, scope.path);
    if (!instances[self] && matches) instances[self] = self;
  }
  return instances;
}

}  // namespace

std::variant<Selector, Rejected> parse_selector(std::string_view text) {
  Selector selector;
  std::string_view rest = text;
  if (text.find_first_of(" \t\n,;") != std::string_view::npos) {
    return reject(
        text, "a selector cannot contain spaces, commas or semicolons; write several selectors");
  }
  auto nth = take_nth(text, rest);
  if (auto* rejected = std::get_if<Rejected>(&nth)) return *rejected;
  selector.nth = std::get<std::optional<int>>(nth);

  const Split op = split_last(rest);
  const Split space = split_last(op.before);
  if (!consists_of(op.last, "."))
    return reject(text, "contains no op and no op class; " + std::string(kForms));
  const std::string meant = op_of_word(op.last);
  if (!op.found && meant.empty()) return reject(text, not_a_class(op.last));
  if (!meant.empty() && !is_known_namespace(space.last)) {
    if (op.found && op.before.empty())
      return reject(text, "an empty scope pattern; leave out the leading '::'");
    selector.op = meant;
    selector.scope_pattern = op.before;
  } else {
    if (!consists_of(space.last, "")) return reject(text, not_a_class(op.last));
    selector.op = std::string(space.last) + "::" + std::string(op.last);
    selector.scope_pattern = space.before;
  }
  if (!selector.scope_pattern.empty() && !consists_of(selector.scope_pattern, ".*-")) {
    return reject(text, "scope pattern " + in_quotes(selector.scope_pattern) +
                            " may hold letters, digits, '_', '-', '.' and '*'");
  }
  return selector;
}

std::string to_string(const Selector& selector) {
  std::string text = selector.scope_pattern;
  if (!text.empty()) text += "::";
  text += selector.op;
  if (selector.nth) text.append("#").append(std::to_string(*selector.nth));
  return text;
}

std::vector<std::string> names_of(const std::vector<Selector>& selectors) {
  std::vector<std::string> names;
  for (const Selector& selector : selectors) names.push_back(to_string(selector));
  return names;
}

bool matches_pattern(std::string_view pattern, std::string_view text) {
  std::size_t at = 0, in_text = 0;
  std::size_t last_star = std::string_view::npos, star_text = 0;
  while (in_text < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      last_star = at++;
      star_text = in_text;
    } else if (at < pattern.size() && pattern[at] == text[in_text]) {
      ++at;
      ++in_text;
    } else if (last_star != std::string_view::npos) {
      at = last_star + 1;  // lets the last star match one more character and tries again
      in_text = ++star_text;
    } else {
      return false;
    }
  }
  while (at < pattern.size() && pattern[at] == '*') ++at;
  return at == pattern.size();
}

IdTable<OpId, bool> matches(const Selector& selector, const Trace& trace) {
  const Instances instances = matching_instances(selector.scope_pattern, trace);
  const std::optional<OpClass> op_class = from_string<OpClass>(selector.op);
  IdTable<OpId, bool> picked(trace.ops.size(), false);
  if (selector.op == kResult) picked = scope_results(trace, instances);
  // indexed by scope instance: number of ops so far that match the selector's name or class
  std::map<std::optional<ScopeId>, int> seen;
  for (const OpId id : trace.ops.ids()) {
    const TracedOp& op = trace.ops[id];
    const std::optional<ScopeId> instance = op.scope ? instances[*op.scope] : std::nullopt;
    const bool in_scope = selector.scope_pattern.empty() || instance;
    if (selector.op != kResult) picked[id] = in_scope && is_kind(selector, op_class, op);
    if (picked[id] && selector.nth) picked[id] = ++seen[instance] == *selector.nth;
  }
  return picked;
}

namespace {

bool reads_storage(const Trace& trace, const TracedOp& op, StorageId storage) {
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](const TracedUse& input) {
    return trace.values[input.value].storage == storage;
  });
}

// Returns for each storage the op that made the storage, or nullopt if the storage comes from
// outside.
IdTable<StorageId, std::optional<OpId>> makers(const Trace& trace) {
  IdTable<StorageId, std::optional<OpId>> maker(trace.storages.size());
  for (const OpId id : trace.ops.ids()) {
    const TracedOp& op = trace.ops[id];
    if (op.is_view) continue;
    for (const ValueId output : op.outputs) {
      const StorageId storage = trace.values[output].storage;
      if (!maker[storage] && !reads_storage(trace, op, storage)) maker[storage] = id;
    }
  }
  return maker;
}

}  // namespace

IdTable<OpId, bool> scope_results(
    const Trace& trace, const IdTable<ScopeId, std::optional<ScopeId>>& instance_of_scope) {
  const auto instance_of = [&](const TracedOp& op) {
    return op.scope ? instance_of_scope[*op.scope] : std::nullopt;
  };
  const IdTable<StorageId, std::optional<OpId>> maker = makers(trace);
  IdTable<OpId, bool> results(trace.ops.size(), false);
  for (const TracedOp& reader : trace.ops) {
    if (reader.is_view) continue;  // a view's input counts as read when an op reads the view
    for (const TracedUse& input : reader.inputs) {
      const std::optional<OpId> made_by = maker[trace.values[input.value].storage];
      if (!made_by) continue;
      const std::optional<ScopeId> part = instance_of(trace.ops[*made_by]);
      if (part && part != instance_of(reader)) results[*made_by] = true;
    }
  }
  return results;
}

}  // namespace rematch
