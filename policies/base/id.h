// Ids are indices into a table. Each table has its own id type, so an op's id cannot index the
// table of values. An id that may be absent is a std::optional<OpId> or, to save memory, an
// OptionalIndex.
#pragma once

#include <algorithm>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rematch {

// Ids compare by index, and the difference of two ids is a count. `Tag` names the table.
template <class Tag>
struct Id {
  std::int32_t index = 0;

  constexpr Id() = default;
  template <std::integral Integer>
  constexpr explicit Id(Integer place) : index(static_cast<std::int32_t>(place)) {}

  constexpr auto operator<=>(const Id&) const = default;
  constexpr Id& operator++() {
    ++index;
    return *this;
  }
  constexpr Id operator++(int) { return Id(index++); }
  constexpr Id& operator--() {
    --index;
    return *this;
  }
  constexpr Id operator--(int) { return Id(index--); }

  friend constexpr Id operator+(Id id, std::int32_t count) { return Id(id.index + count); }
  friend constexpr Id operator-(Id id, std::int32_t count) { return Id(id.index - count); }
  friend constexpr std::int32_t operator-(Id end, Id first) { return end.index - first.index; }

  friend std::string to_string(Id id) { return std::to_string(id.index); }
  template <class Char, class Traits>
  friend auto& operator<<(std::basic_ostream<Char, Traits>& out, Id id) {
    return out << id.index;
  }
};

// The ids [first, end), for range-based for loops.
template <class IdType>
class IdRange {
 public:
  class Iterator {
   public:
    constexpr explicit Iterator(IdType id) : id_(id) {}
    constexpr IdType operator*() const { return id_; }
    constexpr Iterator& operator++() {
      ++id_;
      return *this;
    }
    constexpr bool operator==(const Iterator&) const = default;

   private:
    IdType id_;
  };

  constexpr IdRange(IdType first, IdType end) : first_(first), end_(end) {}
  constexpr Iterator begin() const { return Iterator(first_); }
  constexpr Iterator end() const { return Iterator(end_); }

 private:
  IdType first_;
  IdType end_;
};

// A vector that is indexed by ids of one type only.
template <class IdType, class T>
class IdTable : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  IdTable(std::vector<T> entries) : std::vector<T>(std::move(entries)) {}

  decltype(auto) operator[](IdType id) {
    return std::vector<T>::operator[](static_cast<std::size_t>(id.index));
  }
  decltype(auto) operator[](IdType id) const {
    return std::vector<T>::operator[](static_cast<std::size_t>(id.index));
  }
  using std::vector<T>::at;
  decltype(auto) at(IdType id) { return at(static_cast<std::size_t>(id.index)); }
  decltype(auto) at(IdType id) const { return at(static_cast<std::size_t>(id.index)); }
  bool contains(IdType id) const {
    return id.index >= 0 && static_cast<std::size_t>(id.index) < this->size();
  }
  // Returns the id that the next entry will get, which is one past the last id.
  IdType end_id() const { return IdType(this->size()); }
  IdRange<IdType> ids() const { return {IdType(), end_id()}; }
};

// Returns the index of `entry` in `list`, which has no duplicates. Appends the entry if it is
// missing.
template <class T>
int add_once(std::vector<T>& list, T entry) {
  const auto known = std::find(list.begin(), list.end(), entry);
  const auto index = static_cast<int>(known - list.begin());
  if (known == list.end()) list.push_back(std::move(entry));
  return index;
}

// An optional index that is as small as a plain index.
template <std::signed_integral Integer>
class BasicOptionalIndex {
 public:
  constexpr BasicOptionalIndex() = default;
  constexpr BasicOptionalIndex(std::nullopt_t) {}
  constexpr BasicOptionalIndex(Integer index) : index_(index) {}  // `index` must be at least 0

  constexpr bool has_value() const { return index_ != kAbsent; }
  constexpr Integer operator*() const { return index_; }  // requires has_value()
  // an absent index sorts before all others
  constexpr auto operator<=>(const BasicOptionalIndex&) const = default;

 private:
  static constexpr Integer kAbsent = -1;
  Integer index_ = kAbsent;
};
using OptionalIndex = BasicOptionalIndex<std::int32_t>;

template <class IdType>
constexpr std::optional<IdType> optional_id(OptionalIndex index) {
  return index.has_value() ? std::optional(IdType(*index)) : std::nullopt;
}

}  // namespace rematch

template <class Tag>
struct std::hash<rematch::Id<Tag>> {
  std::size_t operator()(rematch::Id<Tag> id) const noexcept {
    return std::hash<std::int32_t>()(id.index);
  }
};
