// SPDX-License-Identifier: Apache-2.0
// Manual acts that last: carried out in the memory, written to the journal, undone, expired, and
// put in force again by the next daemon or after a reboot.
//
//   ban for a time      an entry of the bucket table; no place there: an override with `until`
//   ban until undone, override, shadow      the configuration's limits with these on top, published
//                                           as a reload is: whole, within 100 ms
//   a breaker's state by hand               one swap of its state word, which carries its end; put
//                                           in force again where the breaker began anew
// An operator's act wins over the configuration for the same key. An act for a limit that the
// configuration does not have (any more) stands without effect until the limit is back.
// Order: in force first, then on the disk, then answered; the answer says when it is not saved.
// Bounds: ActBook's. Thread safety: the loop's thread.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "act_book.hpp"
#include "journal.hpp"
#include "log.hpp"
#include "memory.hpp"
#include "rule/limit_settings.hpp"
#include "running.hpp"
#include "shm/breaker.hpp"
#include "wire/message.hpp"

namespace cutwater::server {

/// The limits of the configuration with the standing acts on top. `placed`: bans that have an entry
/// of their own in the table, so no override. Pure.
std::vector<rule::LimitSettings> with_acts(const std::vector<rule::LimitSettings>& limits,
                                           const std::map<std::uint64_t, Act>& standing,
                                           const std::set<std::uint64_t>& placed);

/// What an act came to, for the answer: a STEER code and its text.
struct ActVerdict {
  std::uint16_t code = wire::kSteerDone;
  std::string text;
};

class Acts {
 public:
  using Done = std::function<void(ActVerdict)>;
  /// Publishes these limits as soon as it can be, or says why not (Reloader::republish).
  using Publish = std::function<void(std::function<std::vector<rule::LimitSettings>()> limits,
                                     std::function<void(const Result<void>&)> done)>;

  Acts(Journal::Opened opened, Log& log);

  /// Set once the memory is there. Bans whose time runs are put into the table. `announced`: the
  /// generation was raised.
  void begin(Memory& memory, const Running& running, Publish publish,
             std::function<void()> announced);

  /// What is to be published for the limits of a configuration.
  std::vector<rule::LimitSettings> effective(const std::vector<rule::LimitSettings>& limits) const {
    return with_acts(limits, book_.standing(), placed_);
  }

  /// `act` without id and times. `for_ns` 0: until undone. `done` is called once, now or later.
  void carry_out(Act act, std::uint64_t for_ns, Done done);
  /// Ends the ban of a key.
  void unban(const std::string& limit, const std::string& key, const std::string& who, Done done);
  /// Ends the override that an act gave a key.
  void end_override(const std::string& limit, const std::string& key, const std::string& who,
                    Done done);
  void undo(std::uint64_t id, const std::string& who, Done done);

  /// One breaker by hand: ForceOpen, Disable and MetricsOnly last and are journalled; Auto and
  /// Reset end them. `for_ns` 0: until undone.
  struct BreakerAct {
    shm::Steer what = shm::Steer::ForceOpen;
    std::string breaker, who, note;
    std::uint64_t for_ns = 0;
  };
  void steer_breaker(const BreakerAct& act, Done done);
  /// After a publication, and once a second: acts about breakers that began anew (another boot, a
  /// block that came back) are put in force, for the time that is left; acts whose breaker was
  /// moved on by somebody else end.
  void look_at_breakers() {
    last_looked_ = 0;
    look_at_breakers(ActBook::kMaxStanding);
  }

  /// Once a second: acts whose time is over end.
  void tick();
  /// The memory is another one, or empty: bans are put into it.
  void put_bans();

  const ActBook& book() const noexcept { return book_; }
  const Journal& journal() const noexcept { return *journal_; }

 private:
  /// Changes a book, and says what the journal is to hold.
  using Change = std::function<Result<std::vector<JournalEntry>>(ActBook&)>;
  bool place_ban(const Act& act);
  struct Note {                        // the event of an act, once it is in force
    std::string limit, what;           // empty: none
  };
  void publish_then(Change change, Note noted, std::string text, Done done);
  void save(const std::vector<JournalEntry>& entries, std::string text, Done done);
  void end_act(const Act& act, const std::string& who, Done done);
  void end_breaker_act(const Act& act, const std::string& who, Done done);
  void hold_breaker(const BreakerAct& act, shm::BreakerRef ref, Done done);
  void free_breaker(const BreakerAct& act, shm::BreakerRef ref, Done done);
  bool reapply(const Act& act, shm::BreakerRef ref, std::uint64_t now_s);
  bool was_breaker(std::uint64_t id) const;
  /// Finding a breaker goes through all names: so many a second.
  static constexpr std::size_t kBreakersPerTick = 16;
  void look_at_breakers(std::size_t at_most);
  void note_breaker(const std::string& breaker, std::string_view what);
  void announce();
  void note(const std::string& limit, std::string_view what);
  bool known_limit(const std::string& name) const;

  Log& log_;
  std::unique_ptr<Journal> journal_;
  ActBook book_;
  std::set<std::uint64_t> placed_;     // ids of bans that have an entry in the table
  std::uint64_t last_looked_ = 0;      // act of a breaker that was looked at last; 0 = none
  Memory* memory_ = nullptr;
  const Running* running_ = nullptr;
  Publish publish_;
  std::function<void()> announced_;
};

}  // namespace cutwater::server
