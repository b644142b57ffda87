// Times collectives in each group of this rank, and copies to the host, for a range of sizes. All
// ranks must run this pass with the same request. harness/cli/libtorch/profile_links.cpp starts the
// ranks and keeps the slowest rank's times.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "policies/base/json_fwd.h"
#include "policies/predict/device/links.h"

namespace rematch {

// The request of the hidden subcommand `point` that measures links. The JSON has no version,
// because the same build writes and reads it.
struct LinksRequest {
  std::map<std::string, std::int64_t> layout;  // a layout in the syntax of parse_layout()
  std::string device = "cpu";
  int num_steps = 1;  // number of samples per median
};

Json links_request_to_json(const LinksRequest& request);
bool is_links_request(const Json& json);
LinksRequest links_request_from_json(const Json& json);  // throws FormatError

// First joins the other ranks. Throws RanksError, c10::Error and std::bad_alloc.
LinkProfile measure_links(const LinksRequest& request);

}  // namespace rematch
