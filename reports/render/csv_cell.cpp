#include "reports/render/csv_cell.h"

#include "policies/trace/json.h"

namespace rematch {

std::string csv_text(const std::string& text) {
  std::string safe = text;
  if (!safe.empty() && std::string("=+-@\t\r").find(safe.front()) != std::string::npos) {
    safe.insert(safe.begin(), '\'');
  }
  if (safe.find_first_of(",\"\r\n") == std::string::npos) return safe;
  std::string cell = "\"";
  for (const char letter : safe) {
    if (letter == '"') cell += '"';
    cell += letter;
  }
  return cell + "\"";
}

std::string csv_number(double value) { return Json(value).dump(); }

}  // namespace rematch
