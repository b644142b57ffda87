#include "reports/render/load_text.h"

#include "reports/render/format.h"

namespace rematch {
namespace {

std::string fits_words(const LoadQuestion& question, const LargestLoad& found) {
  const std::string largest = std::to_string(*found.largest);
  if (!found.is_complete) {
    return "stopped before every load was tried: the largest " + question.dimension +
           " known to fit is " + largest + "; of those tried, the most tokens a second are made ";
  }
  return "the largest " + question.dimension + " that fits is " + largest +
         (*found.largest == question.most ? ", the most that was asked for" : "") +
         "; the most tokens a second are made ";
}

// Rates are of one rank; together they are as many times that.
std::string rate_words(const LoadQuestion& question, const LoadAnswer& answer) {
  const std::string rate = format_fixed(answer.tokens_per_second, 0);
  if (question.world == 1) return rate + " a second";
  return rate + " a second per rank, " +
         format_fixed(answer.tokens_per_second * question.world, 0) + " of all " +
         std::to_string(question.world);
}

}  // namespace

std::string loads_to_text(const LoadQuestion& question, const LargestLoad& found,
                          const std::map<std::int64_t, LoadAnswer>& answers, TableFormat format,
                          std::size_t width) {
  if (!found.largest) return "";
  const std::string rate = question.world == 1 ? "tokens/s" : "tokens/s per rank";
  Grid grid{{{question.dimension}, {rate + " (roofline)"}, {"step"}, {"peak"}, {"recomputed ops"}},
            "keeps",
            {}};
  for (const TriedLoad& tried : found.tried) {
    if (!tried.tokens_per_second) continue;
    const LoadAnswer& answer = answers.at(tried.load);
    grid.rows.push_back({{std::to_string(tried.load), format_fixed(answer.tokens_per_second, 0),
                          format_duration(answer.step_time), format_bytes(answer.peak),
                          std::to_string(answer.num_recomputed)},
                         tried.load == found.best ? "the most: " + answer.saves : ""});
  }
  std::string summary =
      question.model + " on " + question.device + " within " + format_bytes(question.budget);
  if (question.world > 1) {
    summary += " of each of " + std::to_string(question.world) + " ranks";
  }
  summary += ": " + fits_words(question, found) + "with " + std::to_string(*found.best) + ", " +
             rate_words(question, answers.at(*found.best)) +
             ". Bytes and times are predicted, times by the data sheet's peak rates" +
             (question.world > 1 ? ", communication not counted." : ".");
  return format_grid(grid, format, width) + "\n" + format_line(summary, format, width);
}

}  // namespace rematch
