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
// An act that has no effect now says so: on a breaker that is switched off, or a ban or override of
// a limit in shadow mode.
// Order: in force first, then on the disk, then answered. A disk that fails or takes longer than
// Journal::kPatience delays no answer: it says that the act is in force and not saved (yet). What
// failed is tried again every kRetrySeconds, all of the journal anew; `journal list` and `doctor`
// show it until then.
// Bounds: ActBook's. Thread safety: the loop's thread.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "acts/act_book.hpp"
#include "acts/journal.hpp"
#include "log.hpp"
#include "memory.hpp"
#include "rule/limit_settings.hpp"
#include "running.hpp"
#include "shm/breaker/transition.hpp"
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
  std::uint64_t act = 0;               ///< that stands by it now; 0: none
  std::uint8_t saved = wire::kSteerNothingToSave;
};

class Acts {
 public:
  /// Seconds between two attempts to save what could not be saved.
  static constexpr std::uint64_t kRetrySeconds = 2;

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
  /// Shadow off where the configuration enforces ends the act that says on, and none begins.
  void carry_out(Act act, std::uint64_t for_ns, Done done);
  /// Ends the ban of a key.
  void unban(const std::string& limit, const std::string& key, const std::string& who, Done done);
  /// Ends the override that an act gave a key.
  void end_override(const std::string& limit, const std::string& key, const std::string& who,
                    Done done);
  void undo(std::uint64_t id, const std::string& who, Done done);

  /// One breaker by hand: ForceOpen, Disable and MetricsOnly last; Auto and Reset end them and are
  /// over at once. All are journalled, but an Auto that changes nothing and has no note. `for_ns`
  /// 0: until undone.
  struct BreakerAct {
    shm::Steer what = shm::Steer::ForceOpen;
    std::string breaker, who, note;
    std::uint64_t for_ns = 0;
  };
  void steer_breaker(const BreakerAct& act, Done done);
  /// To OPEN, HALF_OPEN or CLOSED, from where it decides by itself on; an act that held the breaker
  /// ends. Not journalled: the state does not last either.
  void transition_breaker(const std::string& breaker, const shm::TransitionAsk& to,
                          const std::string& who, Done done);
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
  /// Why the last lines could not be saved; empty: they were.
  const std::string& journal_fault() const noexcept { return fault_; }
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
  void saved(const std::vector<std::uint64_t>& ids, const Result<void>& outcome);
  void write_anew();
  void end_act(const Act& act, const std::string& who, Done done);
  void end_breaker_act(const Act& act, const std::string& who, Done done);
  std::string off_text(shm::BreakerRef ref) const;
  std::string shadow_text(const Act& act) const;
  void end_shadow(const Act& by, Done done);
  void hold_breaker(const BreakerAct& act, shm::BreakerRef ref, Done done);
  void free_breaker(const BreakerAct& act, shm::BreakerRef ref, Done done);
  JournalEntry moment_of(const BreakerAct& act);
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
  ActBook book_;
  std::string fault_;                  // of the journal; empty: what was handed over is saved
  std::uint64_t seconds_to_retry_ = 0;
  bool writes_anew_ = false;           // and the disk has not answered yet
  std::set<std::uint64_t> placed_;     // ids of bans that have an entry in the table
  std::uint64_t last_looked_ = 0;      // act of a breaker that was looked at last; 0 = none
  Memory* memory_ = nullptr;
  const Running* running_ = nullptr;
  Publish publish_;
  std::function<void()> announced_;
  // Last: it ends first, and what it still writes is told to nobody.
  std::unique_ptr<Journal> journal_;
};

}  // namespace cutwater::server
