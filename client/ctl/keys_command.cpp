// SPDX-License-Identifier: Apache-2.0
// `limit keys`: which keys of a limit are in debt now, by the names that are kept of them. However
// many there are, no more rows are kept than are shown, and as many again.
#include <algorithm>
#include <tuple>
#include <vector>

#include "ctl/commands.hpp"
#include "ctl/look.hpp"
#include "ctl/print.hpp"
#include "ctl/table.hpp"
#include "ctl/text.hpp"

namespace cutwater::ctl {
namespace {

/// What goes first: who is refused (if asked for so), else who needs longest to be full again.
struct Order {
  bool refused_first = false;

  auto rank(const wire::Value& row) const {
    const std::uint64_t refused = refused_first ? number_at(row, "retry_after_ns") : 0;
    return std::tuple(~refused, ~number_at(row, "reset_after_ns"), text_at(row, "key"),
                      number_at(row, "window"));
  }
  bool operator()(const wire::Value& a, const wire::Value& b) const { return rank(a) < rank(b); }
};

/// The first `most` of all rows that were ever added.
class Shown {
 public:
  Shown(Order order, std::uint64_t most) : order_(order), most_(static_cast<std::size_t>(most)) {}

  void add(Rows page) {
    for (wire::Value& row : page) {
      ++found_;
      refused_ += number_at(row, "retry_after_ns") != 0 ? 1 : 0;
      unnamed_ += truth_at(row, "named") ? 0 : 1;
      kept_.push_back(std::move(row));
      if (kept_.size() >= 2 * most_) cut();
    }
  }
  const Rows& rows() {
    cut();
    std::sort(kept_.begin(), kept_.end(), order_);
    return kept_;
  }
  std::uint64_t found() const { return found_; }
  std::uint64_t refused() const { return refused_; }
  std::uint64_t unnamed() const { return unnamed_; }

 private:
  void cut() {
    if (kept_.size() <= most_) return;
    const auto end = kept_.begin() + static_cast<std::ptrdiff_t>(most_);
    std::nth_element(kept_.begin(), end, kept_.end(), order_);
    kept_.erase(end, kept_.end());
  }

  const Order order_;
  const std::size_t most_;
  Rows kept_;
  std::uint64_t found_ = 0, refused_ = 0, unnamed_ = 0;
};

/// Tokens left; below nothing what the key owes.
std::string left_cell(const wire::Value& row) {
  const std::uint64_t owes = number_at(row, "owes");
  return owes == 0 ? std::to_string(number_at(row, "remaining")) : "-" + std::to_string(owes);
}

/// Why keys have no names; empty: there is no reason to know.
std::string why_unnamed(const wire::Value& limit, const wire::Value& status) {
  const std::string show = text_at(limit, "show_keys");
  if (show != "shown") return "show-keys of this limit is " + show;
  if (!truth_at(status, "remember_keys")) {
    return "names are kept from a start with instance.remember-keys: true on";
  }
  return "they came before show-keys was shown, or while another key had their place";
}

}  // namespace

Exit run_limit_keys(const Settings& settings, const KeysAsk& ask) {
  auto look = Look::open(settings);
  if (!look) return complain(settings, look.error());
  const auto limit = look->read_limit(ask.limit);
  if (!limit) return complain(settings, limit.error());
  Shown shown({ask.refused_first}, ask.most);
  const auto read = look->read_keys(ask.limit, [&](Rows page) { shown.add(std::move(page)); });
  if (!read) return complain(settings, read.error());
  const auto status = look->read("status");
  if (!status) return complain(settings, status.error());

  const Rows& rows = shown.rows();
  wire::Value document = look->document();
  document.set("limit", ask.limit);
  document.set("found", shown.found());
  document.set("refused", shown.refused());
  document.set("unnamed", shown.unnamed());
  Rows spelled = rows;
  spell_keys(spelled);
  document.set("keys", wire::Value::Array(spelled.begin(), spelled.end()));
  std::string text;
  if (rows.empty()) return print(settings, document, "no key owes anything\n");
  using Align = Table::Align;
  Table table({{"KEY"},
               {"WINDOW", Align::Right},
               {"LEFT", Align::Right},
               {"NEXT TOKEN IN", Align::Right},
               {"FULL IN", Align::Right}});
  bool cut = false;
  for (const wire::Value& row : rows) {
    const std::uint64_t retry = number_at(row, "retry_after_ns");
    cut = cut || truth_at(row, "cut");
    table.add({key_cell(row), std::to_string(number_at(row, "window")),
               left_cell(row),
               {retry == 0 ? "now" : duration_text(retry), retry == 0 ? Tone::Plain : Tone::Bad},
               duration_text(number_at(row, "reset_after_ns"))});
  }
  text = table_text(settings, table);
  text += std::to_string(rows.size()) + " of " + std::to_string(shown.found()) +
          " in debt, of which " + std::to_string(shown.refused()) + " would be refused a token\n";
  if (cut) text += "... : only the beginning of a longer key is kept\n";
  if (shown.unnamed() != 0) {
    const auto row = status->empty() ? wire::Value() : status->front();
    text += std::to_string(shown.unnamed()) + " without a name: " + why_unnamed(*limit, row) + '\n';
  }
  return print(settings, document, text);
}

}  // namespace cutwater::ctl
