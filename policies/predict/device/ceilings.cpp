#include "policies/predict/device/ceilings.h"

#include "policies/base/json.h"

namespace rematch {
namespace {

constexpr double kTeraflop = 1e12;
constexpr double kGigabyte = 1e9;

// Calls visit(key, rate, unit) for each rate that a file may leave out.
template <class ACeilings, class Visit>
void visit_optional_rates(ACeilings& ceilings, Visit visit) {
  visit("attention_forward_tflop_per_second", ceilings.attention_forward, kTeraflop);
  visit("attention_backward_tflop_per_second", ceilings.attention_backward, kTeraflop);
  visit("elementwise_gb_per_second", ceilings.elementwise, kGigabyte);
  visit("float32_matmul_tflop_per_second", ceilings.float32_matmul, kTeraflop);
}

double rate_at(const JsonField& field, double unit) {
  const double rate = field.number();
  if (!(rate > 0)) field.fail("must be above 0");
  return rate * unit;
}

}  // namespace

Json ceilings_to_json(const Ceilings& ceilings) {
  Json json = {{"schema", schema_name(kCeilingsSchema)},
               {"device", ceilings.card},
               {"copy_gb_per_second", ceilings.copy / kGigabyte},
               {"matmul_tflop_per_second", ceilings.matmul / kTeraflop}};
  visit_optional_rates(ceilings, [&](const char* key, const auto& rate, double unit) {
    if (rate) json[key] = *rate / unit;
  });
  if (!ceilings.source.empty()) json["source"] = ceilings.source;
  return json;
}

Ceilings ceilings_from_json(const Json& json) {
  require_schema(json, kCeilingsSchema.kind);
  const JsonField root(json);
  Ceilings ceilings;
  ceilings.card = root.at("device").string();
  ceilings.copy = rate_at(root.at("copy_gb_per_second"), kGigabyte);
  ceilings.matmul = rate_at(root.at("matmul_tflop_per_second"), kTeraflop);
  visit_optional_rates(ceilings, [&](const char* key, auto& rate, double unit) {
    if (const auto field = root.find(key)) rate = rate_at(*field, unit);
  });
  if (const auto source = root.find("source")) ceilings.source = source->string();
  return ceilings;
}

}  // namespace rematch
