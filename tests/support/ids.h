// Literals for ids: `trace.ops[3_op]`, `OpRange{1_op, 5_op}`.
#pragma once

#include "policies/trace/trace.h"

namespace rematch {

constexpr OpId operator""_op(unsigned long long place) { return OpId(place); }
constexpr ValueId operator""_value(unsigned long long place) { return ValueId(place); }
constexpr StorageId operator""_storage(unsigned long long place) { return StorageId(place); }
constexpr ScopeId operator""_scope(unsigned long long place) { return ScopeId(place); }
constexpr PackId operator""_pack(unsigned long long place) { return PackId(place); }

}  // namespace rematch
