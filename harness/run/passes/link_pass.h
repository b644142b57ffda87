// Measures on one rank how long collectives over each of its groups and copies to the host take, by
// bytes. All ranks call it with the same request. See harness/cli/libtorch/parts.h for the code
// that starts the ranks and keeps the slowest figures.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "policies/base/json_fwd.h"
#include "policies/predict/device/links.h"

namespace rematch {

// The hidden subcommand `point` reads this request too. The JSON has no version because it never
// leaves one build of the tool.
struct LinksRequest {
  std::map<std::string, std::int64_t> layout;  // format of parse_layout()
  std::string device = "cpu";
  int num_steps = 1;  // samples per median
};

Json links_request_to_json(const LinksRequest& request);
bool is_links_request(const Json& json);
LinksRequest links_request_from_json(const Json& json);  // throws FormatError

// Joins the other ranks first. Throws RanksError, c10::Error and std::bad_alloc.
LinkProfile measure_links(const LinksRequest& request);

}  // namespace rematch
