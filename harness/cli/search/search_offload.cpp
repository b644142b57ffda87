#include "harness/cli/search/search_offload.h"

#include "harness/cli/exit_code.h"
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

void add_host_link(const SearchFlags& flags, const std::string& device, SearchSpace& space) {
  if (!flags.offload) return;
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
