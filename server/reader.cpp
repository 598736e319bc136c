// SPDX-License-Identifier: Apache-2.0
#include "reader.hpp"

#include <algorithm>
#include <charconv>

#include <cutwater/version.hpp>

#include "acts/act_rows.hpp"
#include "config/key_text.hpp"
#include "rows/breaker_rows.hpp"
#include "rows/bulkhead_rows.hpp"
#include "rows/key_rows.hpp"
#include "rows/trip_rows.hpp"
#include "shm/breaker/breaker.hpp"
#include "shm/limit/bucket.hpp"
#include "shm/limit/tops.hpp"

namespace cutwater::server {

namespace {

constexpr std::size_t kFrameReserve = 64;   // array heads and the cursor
constexpr std::uint64_t kMaxCost = 1'000'000'000;

wire::Fault invalid(std::string field, std::string text) {
  return {wire::ErrorCode::InvalidArgument, std::move(field), std::move(text)};
}

/// A cursor of ours; nothing when it is none.
std::optional<std::uint64_t> parse_cursor(const std::string& cursor) {
  if (cursor.empty()) return 0;
  std::uint64_t number = 0;
  const char* end = cursor.data() + cursor.size();
  const auto [at, error] = std::from_chars(cursor.data(), end, number);
  if (error != std::errc() || at != end) return std::nullopt;
  return number;
}

/// How many rows from `first` on fit.
std::size_t fitting(const rows::Rows& all, std::size_t first, std::size_t max_rows,
                    std::size_t max_bytes) {
  std::size_t bytes = kFrameReserve, count = 0;
  while (first + count < all.size() && count < max_rows) {
    bytes += wire::encoded_size(all[first + count]);
    if (bytes > max_bytes) break;
    ++count;
  }
  return count;
}

const char* birth_word(Birth::Kind kind) {
  switch (kind) {
    case Birth::Kind::Fresh: return "fresh";
    case Birth::Kind::Adopted: return "adopted";
    case Birth::Kind::Moved: return "moved from one of another size";
    case Birth::Kind::AnotherBoot: return "fresh after a reboot";
    case Birth::Kind::SetAside: return "fresh, the old memory was set aside";
  }
  return "?";
}

rows::Rows config_rows(const config::Config& config) {
  rows::Rows out;
  for (const config::Value& value : config.values) {
    out.push_back(wire::Value::map(
        {{"path", value.path}, {"value", value.text},
         {"origin", config::origin_text(value.place, config.file_name)}}));
  }
  return out;
}

}  // namespace

std::variant<wire::ReadAnswer, wire::Fault> Reader::answer(const wire::Read& asked,
                                                           std::size_t max_bytes) const {
  if (asked.what == "events") return events(asked, max_bytes);
  if (asked.what == "keys") return keys(asked, max_bytes);
  const auto first = parse_cursor(asked.cursor);
  if (!first) return invalid("cursor", "this cursor is none of the daemon's");
  if (asked.what == "breakers" || asked.what == "bulkheads") {
    return listed(asked, *first, max_bytes);
  }
  Outcome outcome = rows_of(asked);
  if (auto* fault = std::get_if<wire::Fault>(&outcome)) return std::move(*fault);
  rows::Rows& all = std::get<rows::Rows>(outcome);
  const auto from = static_cast<std::size_t>(std::min<std::uint64_t>(*first, all.size()));
  const std::size_t count =
      fitting(all, from, std::min<std::size_t>(asked.max_rows, wire::kMaxRows), max_bytes);
  wire::ReadAnswer out;
  out.rows.assign(std::make_move_iterator(all.begin() + static_cast<std::ptrdiff_t>(from)),
                  std::make_move_iterator(all.begin() + static_cast<std::ptrdiff_t>(from + count)));
  if (from + count < all.size() && count > 0) out.cursor = std::to_string(from + count);
  return out;
}

Reader::Outcome Reader::rows_of(const wire::Read& asked) const {
  const shm::View& view = memory_.view();
  if (asked.what == "status") return rows::Rows{status()};
  if (asked.what == "counters") return rows::counter_rows(view);
  if (asked.what == "config") return config_rows(running_.config);
  if (asked.what == "limit") return limit(asked);
  if (asked.what == "limits") {
    rows::Rows all = rows::limit_rows(view);
    for (wire::Value& row : all) add_settings(row);
    return all;
  }
  if (asked.what == "clients") {
    rows::Rows all = rows::client_rows(view);
    facts_.add_clients(all);
    return all;
  }
  if (asked.what == "breaker") return breaker(asked);
  if (asked.what == "trips") {
    auto trips = rows::trip_rows(view, asked.name ? *asked.name : std::string(), rows::kMaxTrips);
    if (!trips) return invalid("name", trips.error().text());
    return std::move(*trips);
  }
  if (asked.what == "bulkhead") return bulkhead(asked);
  if (asked.what == "top") return top(asked);
  if (asked.what == "journal") {
    return journal_rows(view, facts_.book(), running_.config.limits);
  }
  if (asked.what == "overrides") return facts_.overrides();
  return invalid("what", "'" + asked.what + "' is not known; there are status, clients, limits, "
                         "limit, breakers, breaker, trips, bulkheads, bulkhead, top, keys, "
                         "counters, overrides, journal, events, config");
}

Reader::Outcome Reader::limit(const wire::Read& asked) const {
  if (!asked.name) return invalid("name", "which limit?");
  std::uint64_t cost = 1;
  if (const wire::Value* given = asked.options.find("cost")) {
    const auto number = given->as_unsigned();
    if (!number || *number > kMaxCost) {
      return invalid("options.cost", "cost must be 0 .. " + std::to_string(kMaxCost));
    }
    cost = *number;
  }
  std::optional<std::string_view> key;
  if (asked.key) key = *asked.key;
  auto row = rows::limit_row(memory_.view(), *asked.name, key, cost);
  if (!row) return invalid("name", row.error().text());
  add_settings(*row);
  if (key) {
    wire::Value act = key_act_row(memory_.view(), facts_.book(), running_.config.limits,
                                  *asked.name, *key);
    if (!act.is_nil()) row->set("act", std::move(act));
  }
  return rows::Rows{std::move(*row)};
}

/// Of many thousands only those of the page are read. A cursor is a place in the list as it was
/// when a first page was last asked for, by this reader or another; who is gone since is left out.
wire::ReadAnswer Reader::listed(const wire::Read& asked, std::uint64_t first,
                                std::size_t max_bytes) const {
  const shm::View& view = memory_.view();
  const bool breakers = asked.what == "breakers";
  const wire::Value* option = asked.options.find("not_well");
  const bool not_well = option != nullptr && option->as_bool().value_or(false);
  std::vector<rows::Named>& list = lists_[(breakers ? 0 : 1) + (not_well ? 2 : 0)];
  if (first == 0 || list.empty()) {
    const rows::Which which = not_well ? rows::Which::NotWell : rows::Which::All;
    list = breakers ? rows::breakers_by_name(view, which) : rows::bulkheads_by_name(view, which);
  }
  wire::ReadAnswer out;
  const std::size_t max_rows = std::min<std::size_t>(asked.max_rows, wire::kMaxRows);
  std::size_t bytes = kFrameReserve, at = std::min<std::uint64_t>(first, list.size());
  for (; at < list.size() && out.rows.size() < max_rows; ++at) {
    wire::Value row = breakers ? breaker_row_of(list[at]) : rows::bulkhead_row_of(view, list[at]);
    if (row.is_nil()) continue;
    bytes += wire::encoded_size(row);
    if (bytes > max_bytes) break;
    out.rows.push_back(std::move(row));
  }
  if (at < list.size() && !out.rows.empty()) out.cursor = std::to_string(at);
  return out;
}

wire::Value Reader::breaker_row_of(const rows::Named& one) const {
  wire::Value row = rows::breaker_row_of(memory_.view(), one);
  if (row.is_nil()) return row;
  const wire::Value act = breaker_act_row(memory_.view(), facts_.book(), one.name);
  const wire::Value* state = act.find("state");
  if (state != nullptr && *state->as_string() == "stands") row.set("act", *act.find("id"));
  return row;
}

Reader::Outcome Reader::breaker(const wire::Read& asked) const {
  if (!asked.name) return invalid("name", "which breaker?");
  auto row = rows::breaker_row(memory_.view(), *asked.name);
  if (!row) return invalid("name", row.error().text());
  for (const rule::BreakerSettings& settings : running_.config.breakers) {
    if (settings.name != *asked.name) continue;
    const auto list = [&](const char* word, const std::vector<std::string>& names) {
      wire::Value::Array out(names.begin(), names.end());
      row->set(word, std::move(out));
    };
    if (settings.record_given) list("record", settings.record);
    if (!settings.ignore.empty()) list("ignore", settings.ignore);
    if (!settings.note.empty()) row->set("note", settings.note);
  }
  wire::Value act = breaker_act_row(memory_.view(), facts_.book(), *asked.name);
  if (!act.is_nil()) row->set("act", std::move(act));
  return rows::Rows{std::move(*row)};
}

Reader::Outcome Reader::bulkhead(const wire::Read& asked) const {
  if (!asked.name) return invalid("name", "which bulkhead?");
  auto row = rows::bulkhead_row(memory_.view(), *asked.name);
  if (!row) return invalid("name", row.error().text());
  for (const rule::BulkheadSettings& settings : running_.config.bulkheads) {
    if (settings.name == *asked.name && !settings.note.empty()) row->set("note", settings.note);
  }
  return rows::Rows{std::move(*row)};
}

/// One limit, or all. Keys as show-keys allows now, also those noted when it allowed more.
Reader::Outcome Reader::top(const wire::Read& asked) const {
  const shm::View& view = memory_.view();
  rows::Rows out;
  bool found = false;
  for (const rule::LimitSettings& limit : memory_.publisher().limits()) {
    if (asked.name && *asked.name != limit.name) continue;
    found = true;
    const bool hidden = limit.show_keys == rule::ShowKeys::Hidden;
    for (const shm::Top& top : shm::read_tops(view, shm::find_limit(view, limit.name).index)) {
      const bool shown = limit.show_keys == rule::ShowKeys::Shown && !top.text.empty();
      const std::string hash = fmt::format("#{:016x}", top.key_hash);
      const bool cut = shown && top.text.size() >= sizeof shm::TopRecord::text;
      wire::Value key(hidden ? "" : hash);
      if (shown) key = cut ? wire::Value::binary(top.text) : config::spell_key(top.text);
      out.push_back(wire::Value::map({{"limit", limit.name},
                                      {"key", std::move(key)},
                                      {"named", shown},
                                      {"cut", cut},
                                      {"asked", top.asked},
                                      {"refused", top.refused},
                                      {"over", top.over}}));
    }
  }
  if (found || !asked.name) return out;
  const auto row = rows::limit_row(view, *asked.name, std::nullopt, 1);
  return invalid("name", row ? "the limit was removed just now" : row.error().text());
}

std::variant<wire::ReadAnswer, wire::Fault> Reader::keys(const wire::Read& asked,
                                                         std::size_t max_bytes) const {
  if (!asked.name) return invalid("name", "the keys of which limit?");
  const auto from = parse_cursor(asked.cursor);
  if (!from) return invalid("cursor", "this cursor is none of the daemon's");
  const std::size_t room = max_bytes > kFrameReserve ? max_bytes - kFrameReserve : 0;
  auto page = rows::key_page(memory_.view(), {.limit = *asked.name,
                                              .from = *from,
                                              .max_rows = std::min<std::size_t>(asked.max_rows,
                                                                                wire::kMaxRows),
                                              .max_bytes = room});
  if (!page) return invalid("name", page.error().text());
  wire::ReadAnswer out;
  out.rows = std::move(page->rows);
  if (page->next != 0) out.cursor = std::to_string(page->next);
  return out;
}

namespace {

/// What the configuration lets through: at most so many names of a kind, then how many more.
constexpr std::size_t kMostNotProtecting = 8;

template <class Settings, class Open>
void add_open(const std::vector<Settings>& all, std::string_view what, Open is_open,
              wire::Value::Array& out) {
  std::size_t found = 0;
  for (const Settings& one : all) {
    if (is_open(one) && ++found <= kMostNotProtecting) {
      out.emplace_back(fmt::format("{} {}", what, one.name));
    }
  }
  if (found > kMostNotProtecting) {
    out.emplace_back(fmt::format("{} more: {}", what, found - kMostNotProtecting));
  }
}

/// Breakers that a hand, or how they begin, holds in a state that lets everything through.
void add_by_hand(const shm::View& view, wire::Value::Array& out) {
  struct Held {
    std::string name;
  };
  std::vector<Held> disabled, metrics_only;
  for (std::uint32_t i = 0; i < view.breaker_count; ++i) {
    if (shm::breaker_is_plain(view, i)) continue;
    shm::BreakerInfo info;
    const bool lets_through = shm::read_breaker(view, i, info) && !info.effective.ready &&
                              (info.numbers.flags & rule::kBreakerSwitchedOff) == 0;
    if (!lets_through) continue;
    const rule::BreakerState state = info.word.state;
    if (state == rule::BreakerState::Disabled) disabled.push_back({info.name});
    if (state == rule::BreakerState::MetricsOnly) metrics_only.push_back({info.name});
  }
  const auto every = [](const Held&) { return true; };
  add_open(disabled, "breaker DISABLED", every, out);
  add_open(metrics_only, "breaker METRICS_ONLY", every, out);
}

/// What lets through now: by the configuration, and by hand.
wire::Value::Array not_protecting(const config::Config& config, const Memory& memory,
                                  const ActBook& book) {
  wire::Value::Array out;
  const auto is_off = [](const auto& one) { return !one.enabled; };
  if (!config.instance.enabled) {
    out.emplace_back("all breakers and bulkheads: instance.enabled is false");
  } else {
    add_open(config.breakers, "breaker", is_off, out);
    add_by_hand(memory.view(), out);
    add_open(config.bulkheads, "bulkhead", is_off, out);
  }
  const auto by_hand = [&](const rule::LimitSettings& one) {
    return book.find(ActKind::Shadow, one.name, {}) != nullptr;
  };
  const auto in_shadow = [](const rule::LimitSettings& one) {
    return one.mode == rule::Mode::Shadow;
  };
  const std::vector<rule::LimitSettings>& limits = memory.publisher().limits();
  add_open(limits, "limit in shadow", [&](const rule::LimitSettings& one) {
    return in_shadow(one) && !by_hand(one);
  }, out);
  add_open(limits, "limit in shadow by hand", [&](const rule::LimitSettings& one) {
    return in_shadow(one) && by_hand(one);
  }, out);
  return out;
}

}  // namespace

wire::Value Reader::status() const {
  wire::Value row = rows::status_row(memory_.view(), facts_.fill());
  row.set("instance", running_.config.instance.name);
  row.set("version", kVersion);
  row.set("config_file", running_.source.file);
  row.set("memory_directory", memory_.path());
  row.set("memory_bytes", memory_.bytes());
  row.set("birth", birth_word(memory_.birth()));
  if (!memory_.birth_reason().empty()) row.set("birth_reason", memory_.birth_reason());
  row.set("reloads", running_.reloads);
  row.set("reloads_refused", running_.reloads_refused);
  if (!running_.refusal.empty()) row.set("config_refused", running_.refusal);
  wire::Value::Array open = not_protecting(running_.config, memory_, facts_.book());
  if (!open.empty()) row.set("not_protecting", std::move(open));
  wire::Value::Array over = acts_over_file(facts_.book(), running_.config.limits);
  if (!over.empty()) row.set("acts_over_file", std::move(over));
  facts_.add_status(row);
  return row;
}

/// What the image does not hold: how a limit began, and its note.
void Reader::add_settings(wire::Value& row) const {
  const wire::Value* name = row.find("limit");
  if (name == nullptr || name->as_string() == nullptr) return;
  const rule::LimitSettings* settings = running_.config.find_limit(*name->as_string());
  if (settings == nullptr) return;
  row.set("initial", settings->initial == rule::Initial::Empty ? "empty" : "full");
  if (!settings->note.empty()) row.set("note", settings->note);
}

std::variant<wire::ReadAnswer, wire::Fault> Reader::events(const wire::Read& asked,
                                                           std::size_t max_bytes) const {
  const auto from = parse_cursor(asked.cursor);
  if (!from) return invalid("cursor", "a cursor of events is the number to begin with");
  const auto max_rows = std::min<std::uint32_t>(asked.max_rows, wire::kMaxRows);
  rows::EventRows page = rows::event_rows(memory_.view(), *from, max_rows);
  const std::size_t count = fitting(page.rows, 0, max_rows, max_bytes);
  wire::ReadAnswer out;
  const bool cut = count < page.rows.size();
  page.rows.resize(count);
  out.rows = std::move(page.rows);
  if (!out.rows.empty()) {
    const auto last = out.rows.back().find("number")->as_unsigned();
    if (cut || count == max_rows) out.cursor = std::to_string(*last + 1);
  }
  return out;
}

}  // namespace cutwater::server
