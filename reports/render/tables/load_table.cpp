#include "reports/render/tables/load_table.h"

#include "reports/render/format.h"

namespace rematch {
namespace {

std::string fits_words(const LoadQuestion& question, const LargestLoad& found) {
  const std::string largest = std::to_string(*found.largest);
  if (!found.is_complete) {
    return "stopped before every load was tried: the largest " + question.dimension +
           " known to fit is " + largest + "; of those tried, the highest throughput is ";
  }
  return "the largest " + question.dimension + " that fits is " + largest +
         (*found.largest == question.most ? ", the most that was asked for" : "") +
         "; the highest throughput is ";
}

// Whose rates they are: of one rank, or of those that share a batch. Empty for one alone.
std::string owner_words(const LoadQuestion& question) {
  if (question.world == 1) return "";
  const int sharing = question.world / question.num_batches;
  return sharing == 1 ? " per rank" : " per " + std::to_string(sharing) + " ranks";
}

// Together all have as many times that as there are batches.
std::string rate_words(const LoadQuestion& question, double tokens_per_second) {
  std::string rate = format_fixed(tokens_per_second, 0) + " tokens/s";
  if (question.world == 1) return rate;
  return rate + owner_words(question) + ", " +
         format_fixed(tokens_per_second * question.num_batches, 0) + " over all " +
         std::to_string(question.world) + ",";
}

}  // namespace

std::string loads_to_text(const LoadQuestion& question, const LargestLoad& found,
                          const std::map<std::int64_t, LoadAnswer>& answers, TableFormat format,
                          std::size_t width) {
  if (!found.largest) return "";
  const std::string rate = "tokens/s" + owner_words(question);
  table::Grid grid{
      {{question.dimension}, {rate + " (roofline)"}, {"step"}, {"peak"}, {"recomputed ops"}},
      "keeps"};
  for (const TriedLoad& tried : found.tried) {
    if (!tried.tokens_per_second) continue;
    const LoadAnswer& answer = answers.at(tried.load);
    grid.rows.push_back({{std::to_string(tried.load), format_fixed(answer.tokens_per_second, 0),
                          format_duration(answer.step_time), format_bytes(answer.peak),
                          std::to_string(answer.num_recomputed)},
                         tried.load == found.best ? "highest throughput: " + answer.saves : ""});
  }
  std::string summary =
      question.model + " on " + question.device + " within " + format_bytes(question.budget);
  if (question.world > 1) summary += " on each of " + std::to_string(question.world) + " ranks";
  summary +=
      ": " + fits_words(question, found) +
      rate_words(question, answers.at(*found.best).tokens_per_second) + " at " +
      std::to_string(*found.best) +
      ". Bytes and times are predicted, times from the data sheet's peak rates" +
      (question.world > 1 ? ", communication by its link, as if nothing ran beside it." : ".");
  return table::format_grid(grid, format, width) + "\n" +
         table::format_line(summary, format, width);
}

}  // namespace rematch
