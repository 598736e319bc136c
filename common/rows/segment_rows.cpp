// SPDX-License-Identifier: Apache-2.0
#include "rows/segment_rows.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include <cutwater/version.hpp>

#include "config/words.hpp"
#include "rows/limits_of_image.hpp"
#include "rows/words_of_event.hpp"
#include "rule/breaker_pattern.hpp"
#include "rule/limit_settings.hpp"
#include "shm/counters.hpp"
#include "shm/event_log.hpp"
#include "shm/process_table.hpp"

namespace cutwater::rows {
namespace {

std::string hash_text(std::uint64_t hash) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

/// A name somebody gave, cut and safe to print.
std::string printable(std::string_view name) {
  constexpr std::size_t kMaxShown = 64;
  std::string out(name.substr(0, kMaxShown));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  }
  return out;
}

const char* kind_word(shm::RowKind kind) noexcept {
  constexpr const char* kWords[] = {"none", "daemon", "process", "connection", "remote"};
  return static_cast<std::size_t>(kind) < std::size(kWords) ? kWords[static_cast<std::size_t>(kind)]
                                                            : "?";
}

const char* state_word(shm::RowState state) noexcept {
  constexpr const char* kWords[] = {"free", "live", "orphan", "dead"};
  return static_cast<std::size_t>(state) < std::size(kWords)
             ? kWords[static_cast<std::size_t>(state)]
             : "?";
}

}  // namespace

wire::Value status_row(const shm::View& view, const TableFill& fill) {
  const std::uint64_t current = view.current();
  const shm::RulesControl& rules = *view.rules_control;
  const shm::StatsControl& stats = *view.stats_control;
  const std::int64_t now = view.clock.now();
  // relaxed everywhere below: figures for people, each alone; nothing else is read because of them.
  const auto figure = [](const std::uint64_t& word) {
    return __atomic_load_n(&word, __ATOMIC_RELAXED);
  };

  wire::Value row;
  row.set("pid", __atomic_load_n(&rules.daemon_pid, __ATOMIC_RELAXED));
  shm::RowInfo daemon;
  if (shm::read_row(view, shm::kDaemonRow, daemon) && daemon.word.kind == shm::RowKind::Daemon) {
    row.set("uptime_ns",
            static_cast<std::uint64_t>(std::max<std::int64_t>(now - daemon.attached_ns, 0)));
  }
  row.set("takeovers", __atomic_load_n(&rules.takeovers, __ATOMIC_RELAXED));
  row.set("clock", view.clock.is_stepped() ? "stepped" : "boottime");
  row.set("clock_ns", static_cast<std::uint64_t>(std::max<std::int64_t>(now, 0)));
  row.set("generation", current >> shm::kCurrentGenerationShift);
  row.set("superseded", (current & shm::kCurrentSupersededBit) != 0);
  row.set("config_hash", hash_text(view.image_head(current).config_hash));
  row.set("slots", view.slot_count);
  row.set("in_debt", fill.in_debt);
  row.set("claims", fill.claims);
  const std::vector<FoundLimit> limits = read_limits(view);
  row.set("limits", limits.size());
  const Rows clients = client_rows(view);
  row.set("clients", clients.size());
  row.set("rows",
          view.row_count > shm::kFirstClientRow ? view.row_count - shm::kFirstClientRow : 0U);
  row.set("stripes_used", shm::stripes_in_use(view));
  row.set("stripes", view.stripe_count);
  row.set("damage", figure(stats.damage));
  row.set("contention", figure(stats.contention));
  row.set("late_publish", figure(stats.late_publish));
  row.set("reclaimed_rows", figure(stats.reclaimed_rows));
  std::uint64_t no_place = 0;
  for (const FoundLimit& limit : limits) {
    no_place +=
        shm::sum_counters(view, limit.index)[static_cast<std::size_t>(shm::LimitCounter::NoPlace)];
  }
  row.set("no_place", no_place);
  row.set("events", figure(stats.next_event));
  row.set("remember_keys", view.key_names != nullptr);
  return row;
}

Rows client_rows(const shm::View& view) {
  Rows rows;
  for (std::uint32_t i = shm::kFirstClientRow; i < view.row_count; ++i) {
    shm::RowInfo info;
    if (!shm::read_row(view, i, info) || info.word.state == shm::RowState::Free) continue;
    wire::Value row;
    row.set("row", i);
    row.set("generation", info.word.generation);
    row.set("kind", kind_word(info.word.kind));
    row.set("state", state_word(info.word.state));
    row.set("pid", info.pid);
    row.set("uid", info.uid);
    row.set("name", std::string(info.name, ::strnlen(info.name, sizeof info.name)));
    row.set("attached_ns", static_cast<std::uint64_t>(std::max<std::int64_t>(info.attached_ns, 0)));
    rows.push_back(std::move(row));
  }
  return rows;
}

namespace {

void add_subject(wire::Value& row, const shm::View& view, const shm::Event& event) {
  if (event.kind == shm::EventKind::BreakerMoved) {
    const auto state = [](std::uint8_t word) {
      return word < rule::kBreakerStates ? rule::name_of(static_cast<rule::BreakerState>(word))
                                         : std::string_view("?");
    };
    row.set("from", state(event.from));
    row.set("to", state(event.to));
  }
  const std::string words = words_of(view, event);
  if (words.empty()) return;
  const bool place =
      event.kind == shm::EventKind::PlaceReclaimed || event.kind == shm::EventKind::PlaceRevoked;
  row.set(place ? "bulkhead" : "breaker", subject_of(view, event));
  if (!place) row.set("reason", rule::name_of(static_cast<rule::BreakerReason>(event.reason)));
  row.set("row", event.row);
  row.set("words", words);
}

}  // namespace

EventRows event_rows(const shm::View& view, std::uint64_t from, std::uint32_t max) {
  const shm::EventPage page = shm::read_events(view, from, max);
  EventRows out{{}, page.next, page.lost};
  const std::int64_t offset = unix_offset_ns(view);
  for (const shm::Event& event : page.events) {
    wire::Value row;
    row.set("number", event.number);
    row.set("clock_ns", static_cast<std::uint64_t>(std::max<std::int64_t>(event.t_ns, 0)));
    row.set("unix_ms", unix_ms(event.t_ns, offset));
    row.set("kind", shm::name_of(event.kind));
    row.set("object", event.object);
    row.set("epoch", event.epoch);
    row.set("text", std::string(event.text));
    add_subject(row, view, event);
    out.rows.push_back(std::move(row));
  }
  return out;
}

namespace {

/// Of these names the longest pattern that stands for `name`; empty when none does.
std::string_view pattern_of(std::string_view name, const std::vector<std::string>& known) {
  std::string_view best;
  if (!rule::is_name(name)) return best;
  for (const std::string& one : known) {
    const bool pattern = one.find('*') != std::string::npos;
    if (pattern && one.size() > best.size() && rule::pattern_stands_for(one, name)) best = one;
  }
  return best;
}

}  // namespace

Error unknown_name(std::string_view kind, std::string_view name,
                   const std::vector<std::string>& known,
                   const std::function<bool(std::string_view)>& is_full) {
  constexpr std::size_t kNamed = 8;  // so many names are still read by a person
  const std::string what(kind);
  std::string text = "no " + what + " '" + printable(name) + "'";
  if (const std::string_view pattern = pattern_of(name, known); !pattern.empty()) {
    if (is_full && is_full(pattern)) {
      const std::string own = "'" + std::string(pattern) + "'";
      return {Errc::UnknownName, "no instance '" + printable(name) + "': the max-instances of " +
                                     own + " are used up, so calls by this name share " + own +
                                     "; look at it by `cutwaterctl " + what + " get " + own + "`"};
    }
    return {Errc::UnknownName, "no instance '" + printable(name) + "': its first caller makes it, "
                                   "and once the max-instances are used up '" +
                                   std::string(pattern) + "' answers for it"};
  }
  const std::vector<std::string_view> words(known.begin(), known.end());
  const std::string_view near = config::nearest(name, words);
  if (!near.empty()) {
    text += "; did you mean '" + std::string(near) + "'?";
  } else if (words.empty()) {
    text += "; there are no " + what + "s";
  } else if (words.size() <= kNamed) {
    text += "; there are " + config::listing(words);
  } else {
    text += "; `cutwaterctl " + what + " list` shows the " + std::to_string(words.size()) +
            " there are";
  }
  return {Errc::UnknownName, text};
}

}  // namespace cutwater::rows
