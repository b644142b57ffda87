// Formats the output of --help in 100 columns, with the default of each flag.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace rematch {

class HelpFormat final : public CLI::Formatter {
 public:
  HelpFormat();

  // Returns "N" or "TEXT", with " ..." if the option takes several values. The usage line says
  // which arguments are required.
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;
};

}  // namespace rematch
