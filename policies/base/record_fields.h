// A record's fields, listed once: visit_fields(record, visit) calls visit(Field, member) for each.
// Reader, writer, CSV columns, the fingerprint and the comparison of repeated measurements follow
// from these lists, and tests hold the JSON schemas to them. What follows from other members is a
// function in the place of a member: it is written, and not read.
#pragma once

#include <concepts>
#include <type_traits>

namespace rematch {

enum FieldTrait : unsigned {
  kLater = 1U << 0,             // files of this version may lack it; the member stays as it is
  kNullIfEmpty = 1U << 1,       // an empty text or map is null
  kOmitIfEmpty = 1U << 2,       // an empty text or list, an absent value, false or 0 is not written
  kWholeIfWhole = 1U << 3,      // a number without a fraction is an integer
  kNotRepeated = 1U << 4,       // differs between two measurements of one point on one machine
  kNotInFingerprint = 1U << 5,  // may differ between environments whose times can be compared
  kColumn = 1U << 6,            // a column of CSV, named as the key where no other name is given
  kNotNegative = 1U << 7,       // an id, or ids, of a table: none is below 0
};

struct Field {
  // NOLINTNEXTLINE(google-explicit-constructor): lists of fields are names, most without traits
  constexpr Field(const char* name, unsigned field_traits = 0, const char* csv_column = nullptr)
      : key(name), column(csv_column), traits(field_traits) {
    if (column == nullptr && has(kColumn)) column = name;
  }

  constexpr bool has(unsigned trait) const { return (traits & trait) != 0; }

  const char* key;               // in JSON
  const char* former = nullptr;  // its key in files of earlier minor versions
  const char* column;            // in CSV, "*" for low and high of an interval; null: it has none
  unsigned traits;
};

// `Record`, const or not: what its visit_fields() takes.
template <class T, class Record>
concept RecordOf = std::same_as<std::remove_const_t<T>, Record>;

template <class T>
concept DerivedValue = std::invocable<const T&>;

struct IgnoreField {
  void operator()(const Field&, const auto&) const {}
};

template <class T>
concept HasFields = requires(T& record) {
  visit_fields(record, IgnoreField());
};

}  // namespace rematch
