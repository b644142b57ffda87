#include "harness/cli/files/links_file.h"

#include "harness/cli/files/output.h"
#include "harness/cli/flags/require.h"
#include "policies/base/json.h"
#include "policies/predict/device/links_json.h"

namespace rematch {

void require_links(const std::string& path, const std::string& device) {
  const LinkProfile links = read_links(path).links;
  const DeviceSheet* sheet = sheet_of_card(links.device);
  if (device.empty() || links.device == device || (sheet != nullptr && sheet->name == device)) {
    return;
  }
  print_warnings({"the links of '" + path + "' were measured on " + links.device +
                  ", and op times are those of " + device + ": step times mix both"});
}

NamedLinks read_links(const std::string& path) {
  const Json json = require_json_file(path);
  LinkProfile links = require_readable(path, [&] { return links_from_json(json); });
  std::string name = path + ": " + links_in_words(links);
  return {std::move(links), std::move(name)};
}

Profile sheet_profile(const Trace& trace, const std::string& device, const std::string& path) {
  const DeviceSheet& sheet = *find_device_sheet(device);
  if (path.empty()) return roofline_profile(trace, sheet);
  const NamedLinks links = read_links(path);
  if (const auto problem = links_problem(links.links, trace)) {
    throw UsageError("'" + path + "' cannot be used: " + *problem);
  }
  return roofline_profile(trace, sheet, links);
}

}  // namespace rematch
