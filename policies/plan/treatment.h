// The treatment of a value between forward and backward: it is recomputed, or it is kept in a
// store. The table of stores is the only list of stores. Policies, plans, the predictor, the engine
// and reports read this table. A new store needs a row here and an engine class
// (harness/engine/stores).
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "policies/base/bytes.h"

namespace rematch {

// Note [Lifetime of stored values] The engine copies an op's result to the store after the op has
// run. It copies an input of a region when the region ends. The device memory of both is freed when
// the next region ends, even if the copy completes earlier. Memory use therefore depends only on
// the plan. The last region moves no values, because backward needs them first. When backward first
// demands a value of a region, the engine brings back the values of this region and of the region
// before it.
enum class Store : std::uint8_t {
  kDevice,  // device memory: the value stays where its op has made it
  kHost,    // host memory
};

struct StoreTraits {
  Store store;
  // The verb for keeping a value in this store: "save", "offload". In a policy file, this word is
  // the key of the list of ops to keep in this store.
  const char* word;
  // Keys in policy files for the members of StoreRule. Null for the device, which needs no
  // StoreRule.
  const char* saved_key;
  const char* inputs_key;
  const char* at_least_key;
  const char* demanded_key;
  const char* verb;   // for messages: "the plan offloads aten::mm"
  const char* place;  // for messages: "kept on the host"
  char letter;        // letter for tables of ops
  bool is_exact;      // whether values return from the store with the same bits
  // Whether the store can hold the results of an op. The op's name has the form of TracedOp::name.
  bool (*can_hold)(std::string_view op_name);
  // Memory that a value of this size takes while it is in the store.
  Bytes (*device_bytes)(Bytes value);
  Bytes (*host_bytes)(Bytes value);
};

// Returns whether an op's result is complete when the op returns. Returns false for a collective,
// whose result is filled while later ops run, and for an `empty`, whose result other ops fill.
bool has_final_result(std::string_view op_name);

inline constexpr std::array<StoreTraits, 2> kStores = {{
    {Store::kDevice, "save", nullptr, nullptr, nullptr, nullptr, "keeps", "on the device", 'S',
     /*is_exact=*/true, [](std::string_view) { return true; }, [](Bytes value) { return value; },
     [](Bytes) { return Bytes{}; }},
    {Store::kHost, "offload", "offload_saved", "offload_inputs", "offload_at_least_bytes",
     "offload_demanded_only", "offloads", "on the host", 'o', /*is_exact=*/true, has_final_result,
     [](Bytes) { return Bytes{}; }, [](Bytes value) { return value; }},
}};

constexpr const StoreTraits& traits_of(Store store) {
  return kStores.at(static_cast<std::size_t>(store));
}

// A value for each store.
template <class T>
struct ByStore {
  std::array<T, kStores.size()> values{};
  T& operator[](Store store) { return values.at(static_cast<std::size_t>(store)); }
  const T& operator[](Store store) const { return values.at(static_cast<std::size_t>(store)); }
  bool operator==(const ByStore&) const = default;
};

template <class T>
bool is_empty(const ByStore<T>& lists) {
  return std::all_of(lists.values.begin(), lists.values.end(),
                     [](const T& list) { return list.empty(); });
}

// Whether an op's outputs are kept for backward, and in which store.
struct Treatment {
  std::optional<Store> kept_in;  // absent: the op's outputs are recomputed

  static const Treatment kRecompute;
  static const Treatment kSave;     // kept on the device
  static const Treatment kOffload;  // kept on the host

  constexpr bool is_kept() const { return kept_in.has_value(); }
  // Whether the value is kept outside device memory.
  constexpr bool is_moved() const { return kept_in.has_value() && *kept_in != Store::kDevice; }
  auto operator<=>(const Treatment&) const = default;
};

inline constexpr Treatment Treatment::kRecompute = {};
inline constexpr Treatment Treatment::kSave = {Store::kDevice};
inline constexpr Treatment Treatment::kOffload = {Store::kHost};

// Where a kept value is, for messages: "on the host".
constexpr std::string_view place_of(Treatment treatment) {
  return traits_of(*treatment.kept_in).place;
}

constexpr std::string_view to_string(Treatment treatment) {
  return treatment.kept_in ? traits_of(*treatment.kept_in).word : "recompute";
}

std::vector<std::string_view> treatment_words();
// Returns nullopt if no treatment has this word.
std::optional<Treatment> treatment_from_string(std::string_view word);

}  // namespace rematch
