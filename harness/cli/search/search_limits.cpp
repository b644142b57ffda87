#include "harness/cli/search/search_limits.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "harness/cli/exit_code.h"
#include "harness/cli/files/input_files.h"
#include "harness/cli/files/output.h"
#include "harness/cli/flags/flag_values.h"
#include "harness/cli/flags/require.h"
#include "harness/cli/search/search_maximize.h"
#include "policies/base/format.h"
#include "policies/base/json.h"
#include "policies/base/text.h"
#include "policies/predict/device/device_sheet.h"
#include "policies/predict/device/reserve.h"
#include "policies/predict/device/sharding.h"
#include "policies/predict/step/optimizer_bytes.h"

namespace rematch {
namespace {

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

}  // namespace

void require_one_budget(const SearchFlags& flags) {
  const std::pair<const char*, const std::string&> given[] = {
      {"--budget", flags.budget},
      {"--free", flags.free},
      {"--activation-budget", flags.activation_budget}};
  std::string first;
  for (const auto& [name, text] : given) {
    if (text.empty()) continue;
    require_unit(name, text);
    static_cast<void>(parse_bytes(text));
    if (!first.empty()) throw UsageError("give " + first + " or " + name + ", not both");
    first = name;
  }
  if (!first.empty() && !flags.max_slowdown.empty()) {
    throw UsageError(first +
                     " asks for the fastest plan, but --max-slowdown asks for the lowest peak; "
                     "give only one of the two flags");
  }
  if (!flags.maximize.empty() && !first.empty() && flags.budget.empty()) {
    throw UsageError("--maximize takes --budget, not " + first +
                     ": each batch size or token count would need its own budget");
  }
}

void take_free_memory(const SearchFlags& flags, const SearchSpace& space, const Trace& trace,
                      FrontRecord& record) {
  const bool is_free = !flags.free.empty();
  if (!is_free && flags.activation_budget.empty()) return;
  const Bytes asked = parse_bytes(is_free ? flags.free : flags.activation_budget);
  const Trace rank = shard_step(trace, space.world).trace;
  Bytes held =
      rank.parameter_bytes + rank.constant_bytes + optimizer_bytes(rank, space.optimizer).state;
  if (!is_free) held += rank.gradient_bytes;
  record.budget = held + asked;
  say("budget " + format_bytes(*record.budget) + " = " + format_bytes(held) + " of parameters" +
      (is_free ? "" : ", gradients") + " and optimizer state + " + format_bytes(asked));
}

// The trace of a whole model has no collectives. If --world estimates several ranks from this trace
// (sharding.h), one communicator is assumed.
int communicators_of(const Trace& trace, int world) {
  return std::max(num_communicators(trace), world > 1 ? 1 : 0);
}

void take_reserve(const SearchFlags& flags, const Trace& trace, FrontRecord& record) {
  const std::optional<Bytes> asked = parse_reserve(flags.reserve);
  const bool is_of_card =
      record.reserve || find_device_sheet(flags.device) != nullptr || !flags.doctor_file.empty();
  if (asked) {
    record.reserve = MemoryReserve{{}, {}, {}, *asked};
  } else if (is_of_card && record.device_memory) {
    record.reserve = usual_reserve(find_device_sheet(flags.device), *record.device_memory,
                                   communicators_of(trace, record.world));
  }
  if (!asked || !record.budget) return;
  record.budget = memory_less_reserve(*record.budget, *asked);
}

std::string doctor_card(const SearchFlags& flags) {
  if (!memory_by_doctor(flags)) return "";
  return require_json_file(flags.doctor_file)["environment"]["device"].get<std::string>();
}

std::optional<Bytes> memory_by_doctor(const SearchFlags& flags) {
  if (flags.doctor_file.empty()) return std::nullopt;
  const Json json = require_json_file(flags.doctor_file);
  const Json::json_pointer name_at("/environment/device");
  const Json::json_pointer memory_at("/environment/device_memory_bytes");
  const bool has_gpu = json.is_object() && json.contains(name_at) && json.contains(memory_at) &&
                       json[name_at].is_string() && json[memory_at].is_number_integer() &&
                       json[memory_at].get<std::int64_t>() > 0;
  if (!has_gpu) {
    throw UsageError(
        "'" + flags.doctor_file +
        "' contains no GPU memory size; write it with rematch doctor --json on the machine "
        "that has the GPU");
  }
  const std::string name = json[name_at].get<std::string>();
  const bool is_sheet = find_device_sheet(flags.device) != nullptr;
  if (is_sheet && lower_case(name).find(flags.device) == std::string::npos) {
    throw UsageError("'" + flags.doctor_file + "' describes " + in_quotes(name) +
                     ", but --device is " + flags.device);
  }
  return Bytes{json[memory_at].get<std::int64_t>()};
}

void require_offload_flags(const SearchFlags& flags) {
  if (!flags.link_rate.empty()) parse_rate(flags.link_rate);
  if (!flags.link_rate.empty() && !flags.offload) {
    throw UsageError("--link-rate is the rate of offloaded copies; give it with --offload");
  }
  if (flags.offload && !flags.target.empty()) {
    throw UsageError("--for searches no plans that offload; leave out --offload or --for");
  }
}

void require_link_flags(const SearchFlags& flags) {
  if (flags.links_file.empty()) return;
  if (!flags.link_rate.empty()) {
    throw UsageError("--links also sets the rates of copies; leave out --links or --link-rate");
  }
  const bool is_sheet = flags.profile_file.empty() && find_device_sheet(flags.device) != nullptr;
  if (!is_sheet && !flags.offload) {
    throw UsageError(
        "--links replaces the link times of a data sheet, but these times are measured; use "
        "--links with --device h100, or with --offload for the rates of copies");
  }
  require_links(flags.links_file, is_sheet ? flags.device : "");
}

void require_ceilings_flag(const SearchFlags& flags) {
  if (flags.ceilings_file.empty()) return;
  require_ceilings(flags.ceilings_file, flags.device, !flags.profile_file.empty());
}

Profile sheet_times(const SearchFlags& flags, const Trace& trace) {
  const bool for_copies_alone = flags.offload && !has_collectives(trace);
  return sheet_profile(trace, flags.device,
                       {for_copies_alone ? "" : flags.links_file, flags.ceilings_file});
}

std::optional<HostLink> sheet_link(const SearchFlags& flags) {
  const DeviceSheet* sheet = find_device_sheet(flags.device);
  if (sheet == nullptr) return std::nullopt;
  const double rate = sheet->pcie_bytes_per_second;
  return HostLink{rate, rate, "data sheet of " + flags.device};
}

namespace {

// Returns the device's name in its data sheet. Without a sheet, returns the profile's name for the
// device.
std::string device_of(const Profile& profile) {
  const DeviceSheet* sheet = sheet_of(profile);
  return sheet != nullptr ? std::string(sheet->name) : profile.device;
}

HostLink host_link(const SearchFlags& flags, const std::string& device) {
  if (!flags.links_file.empty()) {
    const NamedLinks links = read_links(flags.links_file);
    return host_link_of(links.links, "links of " + links.name);
  }
  if (!flags.link_rate.empty()) {
    const double rate = parse_rate(flags.link_rate);
    return {rate, rate, "--link-rate " + flags.link_rate};
  }
  const DeviceSheet* sheet = find_device_sheet(device);
  if (sheet == nullptr) {
    throw UsageError("no data sheet gives the rate of copies between " + device +
                     " and the host; give --link-rate 25GB/s");
  }
  const double rate = sheet->pcie_bytes_per_second;
  return {rate, rate, "data sheet of " + device};
}

}  // namespace

void add_host_link(const SearchFlags& flags, const Trace& trace, const Profile& profile,
                   SearchSpace& space) {
  if (!flags.offload) return;
  space.offload = host_link(flags, device_of(profile));
  hide_behind_blocks(trace, profile, *space.offload);
}

}  // namespace rematch
