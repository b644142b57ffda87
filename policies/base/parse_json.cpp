#include <algorithm>
#include <vector>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/base/text.h"

namespace rematch {
namespace {

// Text from the file may have any length. These limits keep an error readable.
constexpr std::size_t kLongestReason = 200;
constexpr std::size_t kLongestKey = 60;

// The maximum number of values held at once. Elements that a reader consumes one by one do not
// count. Each value takes up to a hundred bytes.
constexpr std::size_t kMaxValues = 20'000'000;

// Formats a byte position as a line and a column, both counted from 1: "line 3, column 14".
std::string place(std::string_view text, std::size_t position) {
  const std::string_view before = text.substr(0, std::min(position, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  // without a line end, rfind returns npos, and npos + 1 is 0
  const std::size_t line_start = before.rfind('\n') + 1;
  const std::size_t column = std::max<std::size_t>(before.size() - line_start, 1);
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

// Returns the JSON library's error message on one line, without the error number and the position.
std::string reason(const std::exception& error) {
  std::string text = error.what();
  if (const std::size_t id_end = text.find("] "); id_end != std::string::npos) {
    text = text.substr(id_end + 2);
  }
  if (text.starts_with("parse error")) {
    if (const std::size_t colon = text.find(": "); colon != std::string::npos) {
      text = text.substr(colon + 2);
    }
  }
  constexpr std::string_view kOverflow = "number overflow parsing ";
  if (text.starts_with(kOverflow)) {
    return "number " + on_one_line(std::string_view(text).substr(kOverflow.size()), kLongestKey) +
           " is out of range; allowed: numbers that a double can hold, up to 1.79e308";
  }
  std::replace(text.begin(), text.end(), '\n', ' ');
  return on_one_line(text, kLongestReason);
}

// Builds the document from the parser's events. The library's own builder accepts repeated keys and
// any depth.
class Builder {
 public:
  Builder(std::string_view text, const std::string& name, std::string_view list,
          const TakeElement& take)
      : text_(text), name_(name), list_(list), take_(take) {}

  Json take() { return std::move(root_); }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(Json::number_integer_t value) { return add(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return add(value); }
  bool number_float(Json::number_float_t value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_array() { return close(); }
  bool end_object() {
    refuse_repeated_key();
    return close();
  }
  bool key(std::string& key) {
    key_ = std::move(key);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const std::exception& error) {
    throw FormatError(name_ + ": malformed JSON at " + place(text_, position) + ": " +
                      reason(error));
  }

 private:
  bool add(Json value) {
    insert(std::move(value));
    offer_element();
    return true;
  }

  bool open(Json container) {
    if (open_.size() >= kDeepestJson) {
      throw FormatError(name_ + ": nested deeper than " + std::to_string(kDeepestJson) +
                        " levels; no format of this project nests that deep");
    }
    if (open_.size() == 1) {
      in_list_ = take_ && root_.is_object() && container.is_array() && key_ == list_;
      num_elements_ = 0;
    }
    open_.push_back(insert(std::move(container)));
    if (open_.size() == 2) num_values_before_element_ = num_values_;
    return true;
  }

  bool close() {
    open_.pop_back();
    offer_element();
    return true;
  }

  // Called after a value is complete. If the value is an element of the list, offers it to `take_`.
  void offer_element() {
    if (open_.size() != 2 || !in_list_) return;
    auto& elements = open_.back()->get_ref<Json::array_t&>();
    if (take_(root_, elements.back(), num_elements_++)) {
      elements.pop_back();
      num_values_ = num_values_before_element_;
    }
    num_values_before_element_ = num_values_;
  }

  // Returns the address of the inserted value. The address stays valid while the value is open,
  // because only the innermost container grows.
  Json* insert(Json value) {
    if (++num_values_ > kMaxValues) {
      throw FormatError(name_ + ": has more than " + std::to_string(kMaxValues) +
                        " values, which is the limit; split the file, or measure fewer steps");
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &add_member(parent.get_ref<Json::object_t&>(), std::move(key_), std::move(value));
  }

  void refuse_repeated_key() {
    std::vector<std::string_view>& keys = keys_;
    keys.clear();
    for (const auto& member : open_.back()->get_ref<const Json::object_t&>()) {
      keys.push_back(member.first);
    }
    std::sort(keys.begin(), keys.end());
    const auto repeated = std::adjacent_find(keys.begin(), keys.end());
    if (repeated == keys.end()) return;
    throw FormatError(name_ + ": key \"" + on_one_line(*repeated, kLongestKey) +
                      "\" appears twice in one object; keep one of them");
  }

  std::string_view text_;
  const std::string& name_;
  Json root_;
  std::vector<Json*> open_;
  std::string key_;
  // The keys of the object that is being checked. This is a member only so that its memory is
  // reused.
  std::vector<std::string_view> keys_;
  std::string_view list_;
  const TakeElement& take_;  // if the function is empty, no element is consumed
  bool in_list_ = false;     // whether the parser is inside the list whose elements are consumed
  std::size_t num_elements_ = 0;
  std::size_t num_values_ = 0;  // number of values in the document now
  std::size_t num_values_before_element_ = 0;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& name) {
  return parse_json_taking(text, name, /*list=*/{}, /*take=*/{});
}

Json parse_json_taking(std::string_view text, const std::string& name, std::string_view list,
                       const TakeElement& take) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    throw FormatError(name + ": is empty; JSON is expected");
  }
  Builder builder(text, name, list, take);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

}  // namespace rematch
