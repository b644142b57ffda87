#include "harness/cli/search/search_offload.h"

#include "harness/cli/exit_code.h"
#include "harness/cli/files/links_file.h"
#include "harness/cli/flags/flag_values.h"
#include "policies/predict/device/device_sheet.h"

namespace rematch {

void require_offload_flags(const SearchFlags& flags) {
  if (!flags.link_rate.empty()) parse_rate(flags.link_rate);
  if (!flags.link_rate.empty() && !flags.offload) {
    throw UsageError("--link-rate is the rate of offloaded copies; give it with --offload");
  }
  if (flags.offload && !flags.target.empty()) {
    throw UsageError(
        "torch.utils.checkpoint moves nothing to the host; leave out --offload or --for");
  }
}

void require_link_flags(const SearchFlags& flags) {
  if (flags.links_file.empty()) return;
  if (!flags.link_rate.empty()) {
    throw UsageError("--links has the rates of copies too; leave out --links or --link-rate");
  }
  const bool is_sheet = find_device_sheet(flags.device) != nullptr;
  if (!is_sheet && !flags.offload) {
    throw UsageError(
        "--links replaces the link of a data sheet, and these times are measured; give it with "
        "--device h100, or with --offload for the rates of copies");
  }
  require_links(flags.links_file, is_sheet ? flags.device : "");
}

Profile sheet_times(const SearchFlags& flags, const Trace& trace) {
  const bool for_copies_alone = flags.offload && !has_collectives(trace);
  return sheet_profile(trace, flags.device, for_copies_alone ? "" : flags.links_file);
}

void add_host_link(const SearchFlags& flags, const std::string& device, SearchSpace& space) {
  if (!flags.offload) return;
  if (!flags.links_file.empty()) {
    const NamedLinks links = read_links(flags.links_file);
    space.offload = host_link_of(links.links, "links of " + links.name);
    return;
  }
  if (!flags.link_rate.empty()) {
    const double rate = parse_rate(flags.link_rate);
    space.offload = HostLink{rate, rate, "--link-rate " + flags.link_rate};
    return;
  }
  const DeviceSheet* sheet = find_device_sheet(device);
  if (sheet == nullptr) {
    throw UsageError("no data sheet tells the rate of copies between " + device +
                     " and the host; give --link-rate 25GB/s");
  }
  const double rate = sheet->pcie_bytes_per_second;
  space.offload = HostLink{rate, rate, "data sheet of " + device};
}

}  // namespace rematch
