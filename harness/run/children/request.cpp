#include "harness/run/children/request.h"

#include "harness/run/variants.h"
#include "harness/training/device.h"
#include "policies/base/field_value.h"
#include "policies/plan/plan_json.h"

namespace rematch {

Json to_value(Determinism determinism) { return determinism == Determinism::kRepeatableBits; }

void read_value(const JsonField& field, Determinism& determinism) {
  determinism = field.boolean() ? Determinism::kRepeatableBits : Determinism::kFastest;
}

template <RecordOf<PointRequest> Request, class Visit>
void visit_fields(Request& request, Visit visit) {
  visit("pass", request.pass);
  visit("identity", request.identity);
  visit("policy", request.policy);
  visit("device", request.device);
  visit("family", request.family);
  visit("data_file", request.data_file);
  visit("plan", request.plan);
  visit("num_steps", request.num_steps);
  visit("snapshot_file", request.snapshot_file);
  visit("repeatable_bits", request.timed_as);
  visit("libtorch_chooses_attention", request.libtorch_chooses_attention);
  visit("cuda_graph", request.cuda_graph);
}

PointRequest request_for(const RunSettings& settings, const Variant& variant, Pass pass,
                         int num_steps) {
  PointRequest request;
  request.pass = pass;
  request.identity = variant.identity;
  request.policy = variant.policy;
  request.device = settings.request.device;
  request.family = settings.request.model.family;
  request.data_file = settings.request.data_file;
  request.plan = variant.plan;
  request.num_steps = num_steps;
  request.timed_as = settings.request.timed_as;
  request.cuda_graph = settings.request.cuda_graph;
  request.libtorch_chooses_attention = settings.libtorch_chooses_attention && pass == Pass::kTime;
  return request;
}

PointRecord empty_record(const PointRequest& request) {
  PointRecord record;
  record.identity = request.identity;
  record.policy = request.policy;
  record.device = device_kind(request.device);
  return record;
}

ModelSpec spec_of(const PointRequest& request) {
  ModelSpec spec;
  spec.preset = request.identity.model;
  spec.family = request.family;
  spec.dimensions = request.identity.dimensions;
  spec.dtype = request.identity.dtype;
  return spec;
}

Json request_to_json(const PointRequest& request) { return fields_to_json(request); }

PointRequest request_from_json(const Json& json) {
  PointRequest request;
  read_fields(JsonField(json), request);
  return request;
}

}  // namespace rematch
