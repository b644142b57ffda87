#include "reports/gate/loss_rows.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/base/text.h"

namespace rematch {
namespace {

constexpr std::size_t kLongestReason = 300;

struct Line {
  std::string_view text;
  int number = 0;  // line in the file, counted from 1
};

// Skips blank lines.
std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++number;
    if (!trimmed(line).empty()) lines.push_back({line, number});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool is_same_name(std::string_view left, std::string_view right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), [](char one, char other) {
    return std::tolower(static_cast<unsigned char>(one)) ==
           std::tolower(static_cast<unsigned char>(other));
  });
}

// Returns the index of `name` in `names`. Ignores letter case if there is no exact match.
std::optional<std::size_t> find_name(const std::vector<std::string>& names,
                                     const std::string& name) {
  const auto exact = std::find(names.begin(), names.end(), name);
  if (exact != names.end()) return static_cast<std::size_t>(exact - names.begin());
  const auto near = std::find_if(names.begin(), names.end(), [&](const std::string& other) {
    return is_same_name(other, name);
  });
  if (near != names.end()) return static_cast<std::size_t>(near - names.begin());
  return std::nullopt;
}

std::string unknown_name(const std::string& name, const std::vector<std::string>& names,
                         const char* flag) {
  std::vector<std::string> shown;
  for (const std::string& known : names) shown.push_back(on_one_line(known, kLongestReason));
  return in_quotes(name) + did_you_mean(name, shown) + "; name it with " + flag;
}

char delimiter_of(std::string_view header) {
  for (const char delimiter : {',', '\t', ';'}) {
    if (header.find(delimiter) != std::string_view::npos) return delimiter;
  }
  return ',';
}

// Splits one line into cells. A cell in double quotes may contain the delimiter, and a doubled
// quote.
class CsvLine {
 public:
  CsvLine(const Line& line, char delimiter, const std::string& file)
      : line_(line), delimiter_(delimiter), file_(file) {}

  std::vector<LossCell> cells() {
    std::vector<LossCell> cells;
    do {
      const int column = static_cast<int>(position_) + 1;
      const bool is_quoted = position_ < line_.text.size() && line_.text[position_] == '"';
      cells.push_back({is_quoted ? quoted() : plain(), column});
    } while (position_++ < line_.text.size());
    return cells;
  }

 private:
  std::string plain() {
    const std::size_t end = std::min(line_.text.find(delimiter_, position_), line_.text.size());
    const std::string_view cell = line_.text.substr(position_, end - position_);
    position_ = end;
    return std::string(trimmed(cell));
  }

  std::string quoted() {
    const std::size_t start = position_++;
    std::string cell;
    for (; position_ < line_.text.size(); ++position_) {
      if (line_.text[position_] == '"') {
        if (!line_.text.substr(position_ + 1).starts_with('"')) break;
        ++position_;
      }
      cell += line_.text[position_];
    }
    const bool is_closed = position_ < line_.text.size();
    if (is_closed) ++position_;
    if (!is_closed || (position_ < line_.text.size() && line_.text[position_] != delimiter_)) {
      throw FormatError(at_place(file_, line_.number, static_cast<int>(start) + 1) +
                        "a quoted cell must end at its closing quote");
    }
    return cell;
  }

  const Line& line_;
  char delimiter_;
  const std::string& file_;
  std::size_t position_ = 0;
};

struct Header {
  std::size_t num_columns = 0;
  std::size_t step = 0;
  std::size_t loss = 0;
};

Header header_of(const std::vector<LossCell>& cells, const Line& line, const std::string& file,
                 const LossColumns& columns) {
  std::vector<std::string> names;
  for (const LossCell& cell : cells) names.push_back(cell.text);
  const auto index_of = [&](const std::string& name, const char* flag) {
    const auto index = find_name(names, name);
    if (!index) {
      throw FormatError(at_place(file, line.number, 1) + "the header has no column " +
                        unknown_name(name, names, flag));
    }
    if (std::count(names.begin(), names.end(), names[*index]) > 1) {
      throw FormatError(at_place(file, line.number, cells[*index].column) +
                        "the header has column " + in_quotes(names[*index]) + " twice");
    }
    return *index;
  };
  return {names.size(), index_of(columns.step, "--step-column"),
          index_of(columns.loss, "--loss-column")};
}

// Python writes NaN and Infinity, which are not valid JSON. Puts them into quotes, except inside
// strings.
std::string with_quoted_numbers(std::string_view line) {
  std::string result;
  bool in_string = false;
  for (std::size_t position = 0; position < line.size(); ++position) {
    const std::string_view rest = line.substr(position);
    for (const std::string_view word : {"NaN", "-Infinity", "Infinity"}) {
      if (in_string || !rest.starts_with(word)) continue;
      result.append("\"").append(word).append("\"");
      position += word.size();
      break;
    }
    if (position >= line.size()) break;
    const char letter = line[position];
    if (letter == '"') in_string = !in_string;
    result += letter;
    if (letter == '\\' && in_string && position + 1 < line.size()) result += line[++position];
  }
  return result;
}

Json object_of(const Line& line, const std::string& file) {
  try {
    Json json =
        parse_json(with_quoted_numbers(line.text), file + ":" + std::to_string(line.number));
    if (json.is_object()) return json;
  } catch (const FormatError& error) {
    if (line.text.starts_with('{') && trimmed(line.text) != "{") {
      constexpr std::string_view kOnlyLine = " at line 1, column ";
      std::string message = error.what();
      const std::size_t place = message.find(kOnlyLine);
      if (place != std::string::npos) message.replace(place, kOnlyLine.size(), " at column ");
      throw FormatError(message);
    }
  }
  throw FormatError(at_place(file, line.number, 1) +
                    "is not a JSON object; JSON lines have one object in each line: "
                    "{\"step\": 0, \"loss\": 2.5}");
}

LossCell cell_of(const Json& value, const Line& line, const std::string& key) {
  const std::size_t place = line.text.find("\"" + key + "\"");
  const int column = place == std::string_view::npos ? 1 : static_cast<int>(place) + 1;
  if (value.is_null()) return {"", column};
  return {value.is_string() ? value.get<std::string>() : value.dump(), column};
}

}  // namespace

std::string at_place(const std::string& file, int line, int column) {
  return file + ":" + std::to_string(line) + ":" + std::to_string(column) + ": ";
}

std::vector<LossRow> csv_loss_rows(std::string_view text, const std::string& file,
                                   const LossColumns& columns) {
  const std::vector<Line> lines = lines_of(text);
  if (lines.empty()) throw FormatError(file + ": is empty");
  const char delimiter = delimiter_of(lines.front().text);
  const Header header =
      header_of(CsvLine(lines.front(), delimiter, file).cells(), lines.front(), file, columns);
  std::vector<LossRow> rows;
  for (std::size_t index = 1; index < lines.size(); ++index) {
    std::vector<LossCell> cells = CsvLine(lines[index], delimiter, file).cells();
    if (cells.size() != header.num_columns) {
      throw FormatError(at_place(file, lines[index].number, 1) + "this row has " +
                        std::to_string(cells.size()) + (cells.size() == 1 ? " cell" : " cells") +
                        ", but the header has " + std::to_string(header.num_columns));
    }
    rows.push_back(
        {lines[index].number, std::move(cells[header.step]), std::move(cells[header.loss])});
  }
  return rows;
}

std::vector<LossRow> json_loss_rows(std::string_view text, const std::string& file,
                                    const LossColumns& columns) {
  std::vector<LossRow> rows;
  std::vector<std::string> first_keys;
  bool has_loss = false;
  for (const Line& line : lines_of(text)) {
    const Json object = object_of(line, file);
    std::vector<std::string> keys;
    for (const auto& member : object.items()) keys.push_back(member.key());
    const auto value_of = [&](const std::string& name) {
      const auto index = find_name(keys, name);
      return index ? cell_of(object.at(keys[*index]), line, keys[*index]) : LossCell{};
    };
    rows.push_back({line.number, value_of(columns.step), value_of(columns.loss)});
    has_loss = has_loss || find_name(keys, columns.loss).has_value();
    if (first_keys.empty()) first_keys = keys;
  }
  if (!has_loss) {
    throw FormatError(file + ": no line has the key " +
                      unknown_name(columns.loss, first_keys, "--loss-column"));
  }
  return rows;
}

}  // namespace rematch
