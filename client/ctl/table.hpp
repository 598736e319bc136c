// SPDX-License-Identifier: Apache-2.0
// Table: columns of text under a heading, for people. Cells must hold single-width characters only
// (what comes from outside went through escape() first). On a terminal that is too narrow, columns
// that matter least are left out and named below; what remains too wide is left to the terminal.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cutwater::ctl {

/// Colour of a word on a terminal. `Plain` everywhere else.
enum class Tone : std::uint8_t { Plain, Bold, Good, Warn, Bad };

/// The text in that tone when `colour` is set, as it is otherwise.
std::string toned(std::string text, Tone tone, bool colour);

/// What is told of one thing: a word and a text each.
using Lines = std::vector<std::pair<std::string, std::string>>;
/// `word  text`, a line each, the texts below one another.
std::string text_of(const Lines& lines);

class Table {
 public:
  enum class Align : std::uint8_t { Left, Right };
  struct Column {
    std::string title;
    Align align = Align::Left;
    unsigned spare = 0;  ///< 0: always shown; else the highest is left out first
  };
  struct Cell {
    Cell(std::string t, Tone n = Tone::Plain) : text(std::move(t)), tone(n) {}  // NOLINT: implicit
    Cell(const char* t) : text(t) {}                                            // NOLINT: implicit
    std::string text;
    Tone tone = Tone::Plain;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Missing cells are empty, cells beyond the columns are dropped.
  void add(std::vector<Cell> cells);
  std::size_t rows() const noexcept { return rows_.size(); }

  /// Heading and rows, two blanks between columns, none at the end of a line. `columns`: of the
  /// terminal; 0: none, or unknown, and nothing is left out.
  std::string text(bool colour, std::size_t columns = 0) const;

 private:
  using Widths = std::vector<std::size_t>;
  Widths widths() const;
  /// Leaves out by setting their width to kLeftOut; the titles of those.
  std::string leave_out(Widths& width, std::size_t columns) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace cutwater::ctl
