// SPDX-License-Identifier: Apache-2.0
#include "ctl/table.hpp"

#include <algorithm>

namespace cutwater::ctl {

std::string toned(std::string text, Tone tone, bool colour) {
  constexpr const char* kCodes[] = {"", "\x1b[1m", "\x1b[32m", "\x1b[33m", "\x1b[31m"};
  if (!colour || tone == Tone::Plain || text.empty()) return text;
  return kCodes[static_cast<std::size_t>(tone)] + std::move(text) + "\x1b[0m";
}

std::string text_of(const Lines& lines) {
  std::size_t width = 0;
  for (const auto& [word, text] : lines) width = std::max(width, word.size());
  std::string out;
  for (const auto& [word, text] : lines) {
    out += word + std::string(width - word.size() + 2, ' ') + text + '\n';
  }
  return out;
}

void Table::add(std::vector<Cell> cells) {
  cells.resize(columns_.size(), Cell(""));
  rows_.push_back(std::move(cells));
}

namespace {

constexpr std::size_t kLeftOut = ~std::size_t{0};
constexpr std::size_t kBetween = 2;

std::size_t line_width(const std::vector<std::size_t>& width) {
  std::size_t out = 0;
  for (const std::size_t one : width) out += one == kLeftOut ? 0 : one + kBetween;
  return out < kBetween ? 0 : out - kBetween;
}

}  // namespace

Table::Widths Table::widths() const {
  Widths out;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t widest = columns_[c].title.size();
    for (const auto& row : rows_) widest = std::max(widest, row[c].text.size());
    out.push_back(widest);
  }
  return out;
}

std::string Table::leave_out(Widths& width, std::size_t columns) const {
  std::string titles;
  while (columns != 0 && line_width(width) > columns) {
    std::size_t spare = columns_.size();
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const bool candidate = width[c] != kLeftOut && columns_[c].spare != 0;
      if (candidate && (spare == columns_.size() || columns_[c].spare > columns_[spare].spare)) {
        spare = c;
      }
    }
    if (spare == columns_.size()) break;
    width[spare] = kLeftOut;
    titles += (titles.empty() ? "" : ", ") + columns_[spare].title;
  }
  return titles;
}

std::string Table::text(bool colour, std::size_t columns) const {
  Widths width = widths();
  const std::string left_out = leave_out(width, columns);
  std::string out;
  const auto line = [&](const auto& cell_of) {
    std::string waiting;  // blanks that are written only when something follows
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (width[c] == kLeftOut) continue;
      const Cell cell = cell_of(c);
      const std::string blanks(width[c] - cell.text.size(), ' ');
      const bool right = columns_[c].align == Align::Right;
      if (right) waiting += blanks;
      if (!cell.text.empty()) {
        out += waiting + toned(cell.text, cell.tone, colour);
        waiting.clear();
      }
      if (!right) waiting += blanks;
      waiting += std::string(kBetween, ' ');
    }
    out += '\n';
  };
  line([&](std::size_t c) { return Cell(columns_[c].title, Tone::Bold); });
  for (const auto& row : rows_) line([&](std::size_t c) { return row[c]; });
  if (!left_out.empty()) out += "(too narrow for " + left_out + "; -o json has all)\n";
  return out;
}

}  // namespace cutwater::ctl
