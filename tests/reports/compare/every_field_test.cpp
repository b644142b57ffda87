// Checks that no value of a report can change silently. Changes every value of a report's JSON in
// turn. Each change must appear in the comparison with the original, or the file must be rejected.
// Exceptions are listed with a reason.
#include <algorithm>
#include <array>
#include <string>

#include "policies/base/hashing.h"
#include "policies/base/json.h"
#include "reports/record/json/record_json.h"
#include "reports/render/tables/compare_table.h"
#include "tests/reports/compare/sample_comparison.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

using testing::finite_point;

struct Silent {
  std::string_view path;  // JSON pointer of a value; also covers everything inside this value
  std::string_view reason;
};

constexpr std::string_view kOrigin = "says where the report comes from";
constexpr std::string_view kOfMoment = "changes at any moment, or identifies the card";
constexpr std::string_view kVaries = "varies from run to run";

constexpr std::array kSilent = {
    Silent{"/command", kOrigin},
    Silent{"/seed", "is compared in each point, which stores it too"},
    Silent{"/tool_version", kOrigin},
    Silent{"/program_sha256", kOrigin},
    Silent{"/git_commit", kOrigin},
    Silent{"/git_dirty", kOrigin},
    Silent{"/reproduce", kOrigin},
    Silent{"/fingerprint", "is computed from the environment on reading"},
    Silent{"/schema", "a newer minor version only adds keys"},
    Silent{"/environment/hostname", kOrigin},
    Silent{"/environment/pcie_current_generation", kOfMoment},
    Silent{"/environment/pcie_current_width", kOfMoment},
    Silent{"/environment/other_processes", kOfMoment},
    Silent{"/environment/pci_bus_id", kOfMoment},
    Silent{"/environment/device_uuid", kOfMoment},
    Silent{"/environment/persistence_mode", kOfMoment},
    Silent{"/environment/default_power_limit_mw", kOfMoment},
    Silent{"/environment/cupti", "is the profiler's"},
    Silent{"/environment/variables/OMP_NUM_THREADS", "equals `threads`"},
    Silent{"/reference_repeats", "is the noise of the loss, which the gate judges"},
    Silent{"/points/0/memory/peak_transient_bytes", kVaries},
    Silent{"/points/0/memory/peak_device_used_bytes", kVaries},
    Silent{"/points/0/memory/timeline", kVaries},
    Silent{"/points/0/time/starts", "says which samples were taken together"},
    Silent{"/points/0/time/step_interval_ns", "is computed from the samples"},
    Silent{"/points/0/time/step_mad_ns", "is computed from the samples"},
    Silent{"/points/0/time/phases_ns", kVaries},
    Silent{"/points/0/time/classes_ns", kVaries},
    Silent{"/points/0/time/step_ratio", "is relative to the run's own reference"},
    Silent{"/points/0/time/control", "is relative to the run's own reference"},
    Silent{"/points/0/time/quality", kVaries},
    Silent{"/points/0/time/device_state", kVaries},
    Silent{"/points/0/time/peak_reserved_bytes", kVaries},
    Silent{"/points/0/kernels/kernel_time_ns", kVaries},
    Silent{"/points/0/kernels/dropped_records",
           "makes the kernels' count invalid, which is reported"},
    Silent{"/points/0/kernels/lost_records", "makes the kernels' count invalid, which is reported"},
    Silent{"/points/0/kernels/unattributed_kernels", kVaries},
    Silent{"/points/0/kernels/badly_stamped_records", kVaries},
    Silent{"/points/0/kernels/unknown_time_ratio", kVaries},
    Silent{"/points/0/kernels/unknown_names", kVaries},
    Silent{"/points/0/kernels/unknown_time_ns", kVaries},
    Silent{"/points/0/kernels/offload_copies", "`memory.host` has the bytes that were copied"},
    Silent{"/points/0/kernels/unattributed_transfers", kVaries},
    Silent{"/points/0/kernels/slowdown_ratio", kVaries},
    Silent{"/points/0/kernels_reason", "is only used without kernels"},
    Silent{"/points/0/implied_flops_per_second", kVaries},
    Silent{"/points/0/most_flops_per_second", "follows from the environment"},
    Silent{"/points/0/sheet_flops_per_second", "follows from the environment"},
    Silent{"/points/0/model_flops_utilization_ratio", kVaries},
    Silent{"/points/0/hardware_flops_utilization_ratio", kVaries},
};

bool may_be_silent(const std::string& path) {
  return std::any_of(kSilent.begin(), kSilent.end(),
                     [&](const Silent& silent) { return path.starts_with(silent.path); });
}

Report trained_report() {
  Report report = testing::report_of({finite_point("none"), finite_point("full")});
  for (PointRecord& point : report.points) {
    point.steps[0].gradient_hashes["embed.weight"] = "ee";
  }
  for (const float loss : {1.25F, 1.0F, 0.75F}) {
    for (PointRecord& point : report.points) {
      StepRecord step = point.steps.front();
      testing::set_loss(step, loss);
      point.steps.push_back(step);
    }
  }
  report.repeats.push_back(
      {point_key(report.points[0].identity), "none", PointStatus::kOk, "", report.points[0].steps});
  return report;
}

// Returns a value that differs from `value` and that, if possible, the report reader accepts.
Json changed(const Json& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number_integer()) return 3 * value.get<std::int64_t>() + 1;
  if (value.is_number()) return 3 * value.get<double>() + 1;
  if (!value.is_string()) return 1;  // replaces null, which means unknown
  const auto text = value.get<std::string>();
  for (const auto& [one, other] : {std::pair("on_demand", "whole_region"), std::pair("ok", "crash"),
                                   std::pair("backward", "forward"), std::pair("cpu", "meta")}) {
    if (text == one) return other;
  }
  if (text.starts_with("0x")) return text.substr(0, text.size() - 1) + "1";
  return text + "1";
}

// Recomputes the keys that depend on a point's identity. The reader rejects an identity with other
// keys.
void make_keys(Json& report) {
  for (Json& point : report["points"]) {
    for (const char* name : {"model", "plan_sha256", "schedule"}) {
      point[name] = point["identity"][name];
    }
    point["key"] = canonical_sha256(point["identity"]);
  }
}

bool is_identity(const std::string& path) { return path.find("/identity/") != std::string::npos; }

// Returns the output of a comparison with `base`, or the reason why the file is rejected.
std::string said_of(const Report& base, const Json& candidate) {
  try {
    const CompareRecord record = testing::compare(base, report_from_json(candidate));
    return render_compare(record, TableFormat::kText);
  } catch (const FormatError& error) {
    return error.what();
  }
}

// Collects the JSON pointers of all values, and of all members and array elements that can be
// removed.
void add_paths(const Json& json, const std::string& path, std::vector<std::string>& values,
               std::vector<std::string>& elements) {
  if (!json.is_structured()) return values.push_back(path);
  for (const auto& [name, member] : json.items()) {
    const std::string below = path + "/" + name;
    elements.push_back(below);
    add_paths(member, below, values, elements);
  }
}

}  // namespace

TEST_CASE("a comparison mentions every changed value of a report", "[property]") {
  const Report base = trained_report();
  const Json whole = report_to_json(base);
  const std::string equal = said_of(base, whole);
  REQUIRE_THAT(equal, Catch::Contains("2 rows, no difference"));
  std::vector<std::string> values;
  std::vector<std::string> elements;
  add_paths(whole, "", values, elements);
  int num_changed = 0;
  const auto check = [&](const std::string& path, const Json& edited) {
    if (!path.starts_with("/points/1") && !may_be_silent(path)) {
      CAPTURE(path);
      const bool is_said = said_of(base, edited) != equal;
      CHECK(is_said);
      ++num_changed;
    }
  };
  for (const std::string& path : values) {
    Json edited = whole;
    edited[Json::json_pointer(path)] = changed(whole[Json::json_pointer(path)]);
    if (is_identity(path)) make_keys(edited);
    check(path, edited);
  }
  CHECK(num_changed > 150);
  for (const std::string& path : elements) {
    const Json::json_pointer pointer(path);
    if (whole[pointer].is_null()) continue;  // a null member means the same as a missing one
    Json edited = whole;
    Json& parent = edited[pointer.parent_pointer()];
    if (parent.is_array()) {
      parent.erase(std::stoul(pointer.back()));
    } else {
      parent.erase(pointer.back());
    }
    if (is_identity(path)) make_keys(edited);
    check(path, edited);
  }
}

// An exception for a path that no longer exists could later hide a new field at the same path.
TEST_CASE("each field in the list of exceptions exists and has a reason") {
  const Json whole = report_to_json(trained_report());
  for (const Silent& silent : kSilent) {
    CAPTURE(silent.path);
    CHECK(whole.contains(Json::json_pointer(std::string(silent.path))));
    CHECK_FALSE(silent.reason.empty());
  }
}

}  // namespace rematch
