// SPDX-License-Identifier: Apache-2.0
// Limit and Key: asking one named rate limit.
//
//   auto api = client.limit("api-per-user").value();
//   if (auto d = api.try_acquire("alice"); !d.allowed()) return reply_429(d.retry_after());
//   auto alice = api.key("alice"); // resolved once: skips hashing and most of the look-up
//   auto d = alice.try_acquire();
//
// A decision is made by the calling thread in shared memory: one clock reading, no system call, no
// allocation, no lock, no daemon (P5). Every call always answers: a limit that a reload removed, or
// memory that was superseded, is answered Reason::Degraded until the name is there again.
// Thread safety: every method from any thread at once. Process safety: a forked child goes on
// deciding at once with the same objects (C066). Lifetime: a Limit or Key must not outlive the
// Client it came from. Keys: any bytes, 0..kMaxKeyBytes; the empty key is a key like any other; a
// longer one is answered KeyTooLong.
#pragma once
#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include <cutwater/decision.hpp>
#include <cutwater/export.hpp>
#include <cutwater/keys.hpp>
#include <cutwater/result.hpp>
#include <cutwater/units.hpp>

namespace cutwater {

namespace detail {
struct LimitState;
struct KeyText;
struct LimitOf;
}

/// What one ask may want besides a key.
struct Ask {
  std::uint64_t cost = 1;        ///< tokens, 0..kMaxCost; 0 = a look
  Nanos max_wait{
      0};  ///< acquire() only: longest wait for its turn, bounded by the limit's max-wait
};

class Limit;

/// One key of one limit, resolved once. It keeps the key's bytes in this process's memory, for
/// overrides by pattern that a reload may bring and for a time without mapped memory; they are
/// cleared with the last copy of the handle. A value: copy it freely; it re-resolves by itself when
/// the entry moved.
class CUTWATER_EXPORT Key {
 public:
  Key(const Key& other) noexcept;
  Key& operator=(const Key& other) noexcept;
  ~Key() { if (text_ != nullptr) drop_text(); }

  /// As Limit::try_acquire, without hashing the key again.
  Decision try_acquire(std::uint64_t cost = 1) noexcept;
  /// As Limit::peek.
  Decision peek(std::uint64_t cost = 1) const noexcept;

 private:
  friend class Limit;
  Key(detail::LimitState* state, std::uint64_t lo, std::uint64_t hi, bool valid) noexcept
      : state_(state), lo_(lo), hi_(hi), valid_(valid) {}
  void drop_text() noexcept;
  [[gnu::visibility("hidden")]] void ask_memory(std::uint64_t cost, Decision& answer) noexcept;
  [[gnu::visibility("hidden")]] void ask_anew(std::uint64_t cost, Decision& answer) noexcept;

  detail::LimitState* state_;
  std::uint64_t lo_, hi_;         // keyed hash of the key
  detail::KeyText* text_ = nullptr;  // the key itself, shared by copies, when it was not mapped
  bool valid_;                                  // false: the key was too long
  mutable std::atomic<std::uint64_t> hint_{
      ~std::uint64_t{0}};  // slot where it was last seen; proved by each swap
};

class CUTWATER_EXPORT Limit {
 public:
  std::string_view name() const noexcept;

  /// One decision, now. Refused: nothing was written but a counter (P3).
  Decision try_acquire(std::string_view key, std::uint64_t cost = 1) noexcept;

  /// May wait its turn: takes its place in line at once and sleeps until its slice begins, or
  /// refuses at once when that lies beyond `max_wait` (L4, C092). The line is bounded: burst + rate
  /// * max-wait tokens, and max-waiting callers asleep per process (beyond: refused with
  /// Reason::Full and a hint). The only call that may sleep. A process that dies while it waits
  /// gives nothing back: its tokens refill.
  Decision acquire(std::string_view key, Ask ask = {}) noexcept;

  /// As acquire, but does not sleep: starts_in() says when the caller may go. Undo it with refund()
  /// when it gives up.
  Decision reserve(std::string_view key, Ask ask) noexcept;

  /// Many answers: each key alone and in order, the same key twice as if asked twice, one clock
  /// reading, prefetched. `out` has at least keys.size() elements; each is overwritten.
  void acquire_batch(std::span<const std::string_view> keys, std::span<Decision> out,
                     std::uint64_t cost = 1) noexcept;

  /// Charges what was used already, when the cost is known late (L9). Never refused for want of
  /// tokens: goes into debt, down to the limit's max-debt; what goes beyond is not charged, and
  /// Decision::charged() says how much was. remaining() is 0 while in debt. Refused only by
  /// Reason::Degraded (no place in the table and on-full: deny, no daemon) and bad arguments. A ban
  /// or `mode: shadow` changes nothing: it was used. An unlimited key is charged nothing: it has
  /// no bucket.
  Decision charge(std::string_view key, std::uint64_t cost) noexcept;

  /// What try_acquire would answer. Writes nothing at all, not even a counter (L2).
  Decision peek(std::string_view key, std::uint64_t cost = 1) const noexcept;

  /// Undo of a charge: exact, and only while nobody has charged after it (L7). Returns the tokens
  /// given back. TooLate: somebody did; the tokens stay spent and the receipt stays good.
  /// AlreadyUsed: spent or moved-from. InvalidArgument: a decision of another limit, or one that
  /// charged nothing.
  Result<std::uint64_t> refund(Decision&& decision) noexcept;
  Result<std::uint64_t> refund(Decision& decision) noexcept;

  /// Its `ip-prefix`, for ip_key(). Over the socket as it was when the limit was first asked for.
  /// 32 and 64 where it is not known: without a daemon then, or while the limit is gone.
  IpPrefix ip_prefix() const noexcept;

  /// The key as a handle.
  Key key(std::string_view key) const noexcept;

 private:
  friend class Client;
  friend struct detail::LimitOf;
  explicit Limit(detail::LimitState* state) noexcept : state_(state) {}
  detail::LimitState* state_;
};

}  // namespace cutwater
