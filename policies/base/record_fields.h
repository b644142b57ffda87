// Lists a record's fields once: visit_fields(record, visit) calls visit(Field, member) for each
// field. Readers, writers, CSV columns, fingerprints and comparisons use this list. Tests check
// that the JSON schemas agree with it. For a derived value, the list has a function instead of a
// member. Derived values are written but never read.
#pragma once

#include <concepts>
#include <type_traits>

namespace rematch {

enum FieldTrait : unsigned {
  // the key may be missing in a file of this version; the member then keeps its value
  kLater = 1U << 0,
  kNullIfEmpty = 1U << 1,  // an empty text or map is written as null
  // the key is omitted if its value is absent, false, 0, an empty text or an empty list
  kOmitIfEmpty = 1U << 2,
  kWholeIfWhole = 1U << 3,  // a number without a fraction is written as an integer
  kNotRepeated = 1U << 4,   // two measurements of one point on one machine may differ in this field
  // environments with comparable times may differ in this field
  kNotInFingerprint = 1U << 5,
  kColumn = 1U << 6,       // a CSV column, named like the key unless another name is given
  kNotNegative = 1U << 7,  // the field is an id or a list of ids, so negative values are rejected
};

struct Field {
  // NOLINTNEXTLINE(google-explicit-constructor): most fields are written as a mere name
  constexpr Field(const char* name, unsigned field_traits = 0, const char* csv_column = nullptr)
      : key(name), column(csv_column), traits(field_traits) {
    if (column == nullptr && has(kColumn)) column = name;
  }

  constexpr bool has(unsigned trait) const { return (traits & trait) != 0; }

  const char* key;               // JSON key
  const char* former = nullptr;  // the key in files of earlier minor versions
  // name of the CSV column; an interval has two columns, and "*" in the name stands for "low" or
  // "high"; null: not a CSV column
  const char* column;
  unsigned traits;
};

// True if `T` is `Record` or const `Record`. Constrains the first parameter of a record's
// visit_fields().
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
