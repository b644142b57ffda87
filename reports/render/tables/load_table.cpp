#include "reports/render/tables/load_table.h"

#include "policies/base/format.h"

namespace rematch {
namespace {

std::string fits_words(const LoadsRecord& record) {
  const std::string largest = std::to_string(*record.largest);
  if (!record.is_complete) {
    return "stopped before every load was tried: the largest " + record.dimension +
           " known to fit is " + largest +
           "; of the loads that were tried, the highest throughput is ";
  }
  return "the largest " + record.dimension + " that fits is " + largest +
         (*record.largest == record.most ? ", the largest that was tried" : "") +
         "; the highest throughput is ";
}

// Returns " per rank", or text such as " per 4 ranks" if four ranks share a batch. Empty for a
// single rank.
std::string owner_words(const LoadsRecord& record) {
  if (record.world == 1) return "";
  const int sharing = record.world / record.num_batches;
  return sharing == 1 ? " per rank" : " per " + std::to_string(sharing) + " ranks";
}

// The total rate is the rate per batch times the number of batches.
std::string rate_words(const LoadsRecord& record, double tokens_per_second) {
  std::string rate = format_fixed(tokens_per_second, 0) + " tokens/s";
  if (record.world == 1) return rate;
  return rate + owner_words(record) + ", " +
         format_fixed(tokens_per_second * record.num_batches, 0) + " over all " +
         std::to_string(record.world) + ",";
}

}  // namespace

std::string loads_to_text(const LoadsRecord& record, TableFormat format, std::size_t width) {
  if (!record.largest) return "";
  const std::string rate = "tokens/s" + owner_words(record);
  table::Grid grid{
      {{record.dimension}, {rate + " (roofline)"}, {"step"}, {"peak"}, {"recomputed ops"}},
      "keeps"};
  double highest = 0;
  for (const LoadPlan& plan : record.tried) {
    if (!plan.tokens_per_second) continue;
    const bool is_best = plan.load == record.best;
    if (is_best) highest = *plan.tokens_per_second;
    grid.rows.push_back({{std::to_string(plan.load), format_fixed(*plan.tokens_per_second, 0),
                          format_duration(*plan.step_time), format_bytes(*plan.peak),
                          std::to_string(*plan.num_recomputed)},
                         is_best ? "highest throughput: " + plan.saves : ""});
  }
  std::string summary =
      record.model + " on " + record.device + " within " + format_bytes(record.budget);
  if (record.world > 1) summary += " on each of " + std::to_string(record.world) + " ranks";
  const std::string link = record.links.empty() ? "its link" : "links (" + record.links + ")";
  summary += ": " + fits_words(record) + rate_words(record, highest) + " at " +
             std::to_string(*record.best) + ". Bytes and times are predicted; times follow from " +
             (record.ceilings.empty() ? "the data sheet's peak rates"
                                      : "measured ceilings (" + record.ceilings + ")") +
             (record.world > 1 ? ", communication by " + link + ", without overlap." : ".");
  return table::format_grid(grid, format, width) + "\n" +
         table::format_line(summary, format, width);
}

}  // namespace rematch
