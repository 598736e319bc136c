// SPDX-License-Identifier: Apache-2.0
// Which manual acts stand, and which ended lately. A machine without I/O: acts and times go in; the
// entries to be written come out, in the order they must stand in the journal.
//
// At most one act of a kind stands for a limit and key, and one for a breaker: a later one replaces
// it. Going back does not bring the replaced one back: what stands then is the configuration, or
// what a breaker decides by itself.
// Acts that are over at once are only remembered.
// Beside each act: whether its lines are on the disk, as far as the journal has told.
// Bounds: kMaxStanding acts stand (further ones: Busy, "undo some"), kMaxEnded ended ones are
// remembered for people. Thread safety: one thread.
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include <cutwater/result.hpp>

#include "acts/act.hpp"

namespace cutwater::server {

/// Whether the last line about an act is on the disk.
enum class Saving : std::uint8_t { Saved, Pending, Failed };
/// "saved", "pending", "failed".
std::string_view name_of(Saving saving) noexcept;

struct EndedAct {
  Act act;
  ActEnd end;
};

class ActBook {
 public:
  static constexpr std::size_t kMaxStanding = 4096;
  static constexpr std::size_t kMaxEnded = 256;

  /// Entries as they were written, oldest first. Ends of acts that are not known are ignored.
  void replay(const JournalEntry& entry);

  /// An act begins: it gets the next id. What it replaces ends. Busy when too many stand.
  Result<std::vector<JournalEntry>> begin(Act act);
  /// An act that is over at once: it gets the next id and is remembered. The entry to be written.
  JournalEntry moment(Act act);
  /// nullopt: no such act stands.
  std::optional<ActEnd> end(std::uint64_t id, EndKind how, std::uint64_t at_s, std::string who);
  /// Acts whose time is over end.
  std::vector<JournalEntry> expire(std::uint64_t now_s);

  const Act* find(std::uint64_t id) const;
  /// The one that stands for this kind, limit (or breaker) and key.
  const Act* find(ActKind kind, std::string_view subject, std::string_view key) const;
  /// The act that replaced this one: the next later one of its kind on the same; nullptr when that
  /// is not remembered.
  const Act* replacer(const Act& act) const;
  /// The newest about a breaker that ended, as far as it is remembered.
  const EndedAct* last_ended(std::string_view breaker) const;
  const std::map<std::uint64_t, Act>& standing() const noexcept { return standing_; }
  const std::deque<EndedAct>& ended() const noexcept { return ended_; }
  std::uint64_t last_id() const noexcept { return last_id_; }

  /// What the journal said of the entries about these acts. An act nobody remembers is left out; so
  /// is one that was replaced: its end lies on the disk when the act behind it does, and until then
  /// nothing of its own is missing.
  void set_saving(const std::vector<std::uint64_t>& ids, Saving saving);
  /// All that failed are on the disk after all: the journal was written anew.
  void all_saved_anew();
  Saving saving(std::uint64_t id) const;
  /// How many acts are not on the disk as they are.
  std::size_t unsaved() const noexcept { return unsaved_.size(); }
  /// What a journal that is written anew holds: all that this book knows.
  std::vector<JournalEntry> entries() const;

 private:
  void remember(Act act, ActEnd end);
  void close(std::map<std::uint64_t, Act>::iterator at, ActEnd end);

  std::map<std::uint64_t, Act> standing_;
  std::deque<EndedAct> ended_;         // oldest first
  std::map<std::uint64_t, Saving> unsaved_;   // Pending and Failed ones
  std::uint64_t last_id_ = 0;
};

}  // namespace cutwater::server
