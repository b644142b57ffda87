// The fields of what stands around points in a report: environment, provenance, repeats, plans. A
// field is a member in environment.h or report.h, a line here, and an entry in
// reports/schema/report.schema.json (environment: point.schema.json). Private to reports.
#pragma once

#include "policies/base/record_fields.h"
#include "reports/record/environment.h"
#include "reports/record/fields/point_fields.h"
#include "reports/record/report.h"

namespace rematch {

template <RecordOf<Environment> AnEnvironment, class Visit>
void visit_fields(AnEnvironment& environment, Visit visit) {
  visit("device", environment.device);
  visit({"device_uuid", kNotInFingerprint}, environment.device_uuid);
  visit("compute_capability", environment.compute_capability);
  visit("device_memory_bytes", environment.device_memory);
  visit("cpu_model", environment.cpu_model);
  visit("cpu_cores", environment.cpu_cores);
  visit("cpu_capability", environment.cpu_capability);
  visit("threads", environment.threads);
  visit("host_memory_bytes", environment.host_memory);
  visit("libtorch_version", environment.libtorch_version);
  visit("libtorch_build", environment.libtorch_build);
  visit("math_mode", environment.math_mode);
  visit("compiler", environment.compiler);
  visit("build_type", environment.build_type);
  visit("os", environment.os);
  visit("kernel", environment.kernel);
  visit("allocator", environment.allocator);
  visit("driver", environment.driver);
  visit("cuda_runtime", environment.cuda_runtime);
  visit("cudnn", environment.cudnn);
  visit("pcie_generation", environment.pcie_generation);
  visit("pcie_width", environment.pcie_width);
  visit("topology", environment.topology);
  visit("cpu_governor", environment.cpu_governor);
  visit({"sm_clock_mhz", kNotInFingerprint}, environment.sm_clock_mhz);
  visit({"memory_clock_mhz", kNotInFingerprint}, environment.memory_clock_mhz);
  visit({"hostname", kNotInFingerprint}, environment.hostname);
  visit({"variables", kNotInFingerprint}, environment.variables);
  visit({"cuda_driver", kLater}, environment.cuda_driver);
  visit({"multiprocessors", kLater}, environment.multiprocessors);
  visit({"power_limit_mw", kLater}, environment.power_limit_mw);
  visit({"sm_clock_most_mhz", kLater}, environment.sm_clock_most_mhz);
  visit({"ecc", kLater}, environment.ecc);
  visit({"mig", kLater}, environment.mig);
  visit({"pcie_current_generation", kLater | kNotInFingerprint},
        environment.pcie_current_generation);
  visit({"pcie_current_width", kLater | kNotInFingerprint}, environment.pcie_current_width);
  visit({"other_processes", kLater | kNotInFingerprint}, environment.other_processes);
  visit({"pci_bus_id", kLater | kNotInFingerprint}, environment.pci_bus_id);
  visit({"persistence_mode", kLater | kNotInFingerprint}, environment.persistence_mode);
  visit({"default_power_limit_mw", kLater | kNotInFingerprint}, environment.default_power_limit_mw);
  visit({"cupti", kLater | kNotInFingerprint}, environment.cupti);
}

// All but the environment's fingerprint, which files hold beside it.
template <RecordOf<Provenance> AProvenance, class Visit>
void visit_fields(AProvenance& provenance, Visit visit) {
  visit("environment", provenance.environment);
  visit("command", provenance.command);
  visit("seed", provenance.seed);
  visit("tool_version", provenance.tool_version);
  visit({"program_sha256", kLater}, provenance.program_sha256);
  visit("git_commit", provenance.git_commit);
  visit("git_dirty", provenance.git_dirty);
  visit("reproduce", provenance.reproduce);
  visit("execution", provenance.execution);
}

template <RecordOf<RepeatRecord> Repeat, class Visit>
void visit_fields(Repeat& repeat, Visit visit) {
  visit("key", repeat.key);
  visit("policy", repeat.policy);
  visit("status", repeat.status);
  visit({"reason", kNullIfEmpty}, repeat.reason);
  visit("steps", repeat.steps);
}

template <RecordOf<PlannedPoint> Planned, class Visit>
void visit_fields(Planned& planned, Visit visit) {
  visit("policy", planned.policy);
  visit("schedule", planned.schedule);
  visit("key", planned.key);
}

template <RecordOf<UnmeasuredComparison> Comparison, class Visit>
void visit_fields(Comparison& comparison, Visit visit) {
  visit("model", comparison.model);
  visit("dimensions", comparison.dimensions);
  visit("dtype", comparison.dtype);
  visit("seed", comparison.seed);
  visit("policies", comparison.policies);
  visit("outcome", comparison.outcome);
  visit({"reason", kNullIfEmpty}, comparison.reason);
}

}  // namespace rematch
