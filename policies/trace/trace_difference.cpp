#include "policies/trace/trace_difference.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "policies/trace/trace_op.h"

namespace rematch {
namespace {

// A part of a trace as rows of text. The rows of two traces are equal if this part of the traces is
// equal.
using Rows = std::vector<std::string>;

std::string scope_words(const Trace& trace, std::optional<ScopeId> scope) {
  return scope ? trace.scopes[*scope].path : "no scope";
}

Rows sizes(const Trace& trace) {
  Rows rows = {"dtype " + trace.dtype,
               "parameter bytes " + std::to_string(trace.parameter_bytes.count),
               "constant bytes " + std::to_string(trace.constant_bytes.count),
               "gradient bytes " + std::to_string(trace.gradient_bytes.count)};
  for (const TracedBlock& block : trace.blocks) {
    rows.push_back("block " + scope_words(trace, block.scope));
  }
  return rows;
}

Rows hidden_effects(const Trace& trace) { return lines_of(trace.hidden); }

Rows ops(const Trace& trace) {
  Rows rows;
  for (const TracedOp& op : trace.ops) {
    rows.push_back(std::string(one_name(op.name)) + " in " + scope_words(trace, op.scope) +
                   (op.is_view ? ", a view" : "") + (op.draws_random ? ", draws" : "") +
                   (op.group.empty() ? "" : ", group " + op.group) + ", writes " +
                   std::to_string(op.writes.size()));
  }
  return rows;
}

Rows saved_tensors(const Trace& trace) {
  Rows rows;
  for (const TracedPack& pack : trace.packs) {
    const std::optional<OpId> producer = trace.values[pack.value].producer;
    rows.push_back((producer ? "the result of op " + to_string(*producer)
                             : std::string("a tensor from outside")) +
                   ", version " + std::to_string(pack.version) + ", after " +
                   to_string(pack.at_op) + " ops" +
                   (pack.dropped_at ? ", dropped after " + to_string(*pack.dropped_at) : ""));
  }
  return rows;
}

// Makes a row for each storage that an op allocates. The row states when the storage is allocated
// and when it is freed.
Rows lifetimes(const Trace& trace) {
  Rows rows;
  IdTable<StorageId, bool> is_seen(trace.storages.size());
  for (const OpId id : trace.ops.ids()) {
    for (const ValueId output : trace.ops[id].outputs) {
      const StorageId storage = trace.values[output].storage;
      if (is_seen[storage]) continue;
      is_seen[storage] = true;
      if (trace.ops[id].is_view) continue;
      const TracedStorage& held = trace.storages[storage];
      rows.push_back(std::to_string(held.bytes.count) + " bytes of op " + to_string(id) + " (" +
                     std::string(one_name(trace.ops[id].name)) + "), held until " +
                     (held.freed_at ? "op " + to_string(*held.freed_at) : "the end"));
    }
  }
  return rows;
}

std::string collective_words(const std::string& group, Bytes bytes) {
  if (group.empty() && bytes.count == 0) return "";
  return ", group " + group + ", " + std::to_string(bytes.count) + " bytes exchanged";
}

Rows backward_ops(const Trace& trace) {
  Rows rows;
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind != BackwardEvent::Kind::kOp) continue;
    rows.push_back(std::string(one_name(event.op)) + " of " + scope_words(trace, event.scope) +
                   ", " + std::to_string(event.other_bytes.count) + " bytes made, " +
                   std::to_string(event.gradient_bytes.count) + " of them gradients" +
                   collective_words(event.group, event.collective_bytes));
  }
  return rows;
}

// Makes rows for the saved tensors that backward demands and releases. Each row states how many ops
// of backward run before the demand or release.
Rows demands(const Trace& trace) {
  Rows rows;
  std::int64_t num_ops = 0;
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind == BackwardEvent::Kind::kOp) {
      ++num_ops;
      continue;
    }
    const std::string_view does = event.kind == BackwardEvent::Kind::kDemand    ? "demands"
                                  : event.kind == BackwardEvent::Kind::kRelease ? "releases"
                                                                                : "stops using";
    rows.push_back(std::string(does) + " saved tensor " + to_string(*event.pack) + " after " +
                   std::to_string(num_ops) + " ops of backward");
  }
  return rows;
}

std::optional<std::string> difference(std::string_view part, const Rows& a, const Rows& b) {
  const auto [in_a, in_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (in_a == a.end() && in_b == b.end()) return std::nullopt;
  std::string line(part);
  if (a.size() != b.size()) {
    line += ": " + std::to_string(a.size()) + " and " + std::to_string(b.size());
  }
  const auto words = [](const Rows& rows, Rows::const_iterator row) {
    return row == rows.end() ? std::string("nothing") : *row;
  };
  return line + ": the first difference is at number " + std::to_string(in_a - a.begin()) + ": " +
         words(a, in_a) + " | " + words(b, in_b);
}

}  // namespace

std::vector<std::string> trace_differences(const Trace& a, const Trace& b) {
  std::vector<std::string> lines;
  const auto compare = [&](std::string_view part, Rows (*rows)(const Trace&)) {
    if (auto line = difference(part, rows(a), rows(b))) lines.push_back(*std::move(line));
  };
  compare("sizes", sizes);
  compare("hidden effects", hidden_effects);
  compare("ops", ops);
  compare("saved tensors", saved_tensors);
  compare("lifetimes", lifetimes);
  compare("ops of backward", backward_ops);
  compare("demands of backward", demands);
  return lines;
}

}  // namespace rematch
