// The entries of the catalogue by family, and what their factories share. Private to
// policies/catalogue; everybody else includes catalogue.h.
#pragma once

#include <string_view>
#include <vector>

#include "policies/catalogue/catalogue.h"

namespace rematch {

std::vector<CatalogueEntry> layer_policies();
std::vector<CatalogueEntry> save_list_policies();
std::vector<CatalogueEntry> alternating_policies();
std::vector<CatalogueEntry> region_policies();
std::vector<CatalogueEntry> module_policies();
std::vector<CatalogueEntry> maxtext_policies();

// Selectors of the catalogue's own, written as text: "*.ffn::matmul#1".
std::vector<Selector> selectors(const std::vector<std::string_view>& texts);

// Every block is a region that keeps what these select and recomputes the rest.
Policy keeping(const std::vector<std::string_view>& texts);

// One for each module that recompute_modules can name.
std::vector<Policy::Expectation> module_expectations();

template <typename Item>
void append(std::vector<Item>& all, const std::vector<Item>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace rematch
