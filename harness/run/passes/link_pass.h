// Measures, on one rank of a layout, how long collectives over each of its groups and copies to the
// host take, by bytes. All ranks call it with the same request; who starts them and takes the
// slowest is harness/cli/libtorch/parts.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "policies/base/json_fwd.h"
#include "policies/predict/device/links.h"

namespace rematch {

// Also read by the hidden subcommand `point`. Internal to one build of the tool, so its JSON
// carries no version.
struct LinksRequest {
  std::map<std::string, std::int64_t> layout;  // as parse_layout() reads it
  std::string device = "cpu";
  int num_steps = 1;  // that each median is over
};

Json links_request_to_json(const LinksRequest& request);
bool is_links_request(const Json& json);
LinksRequest links_request_from_json(const Json& json);  // throws FormatError

// Joins the other ranks first. Throws RanksError, c10::Error and std::bad_alloc.
LinkProfile measure_links(const LinksRequest& request);

}  // namespace rematch
