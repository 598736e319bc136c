// SPDX-License-Identifier: Apache-2.0
// AskSocket: one connection to a daemon that all threads of a process ask over, without a thread of
// its own. Whoever asks first reads for all: it sleeps in recv() and hands out every answer that
// comes; when its own is there it leaves, and wakes the next in line to read. The others sleep on a
// word each. Alone, an ask is one send() and one recv().
//
// A connection that breaks is made again by the caller that reads, within its own deadline,
// under the same session token: what was sent is repeated or ends Lost, as AskSession says. When
// that fails, the calls in line end and up() is false until adopt().
// An ENTER that is given up after it was sent may hold something: a CANCEL follows it.
// A daemon that is there and does not answer (stopped, overloaded): a caller waits for its deadline
// once; then asks end Late at once but for one at a time that tries, first every 100 ms, then at
// most every second, until anything is heard again.
//
// Without memory for an answer, or to connect, the connection and its session end: calls under way
// end Lost or Unsent, and whoever attaches next begins a new one.
//
// Forks: belongs to the process_life() it was made in. A child touches nothing of it but
// abandon(), which closes the child's copy of the descriptor, and makes one of its own.
// Bounds: kReadBytes of input, AskSession's. Buffers grow to the largest frame and are kept.
// Thread safety: everything from any thread of its life; adopt() under its owner's lock.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include <cutwater/result.hpp>
#include <cutwater/units.hpp>

#include "src/ask/ask_session.hpp"
#include "src/connection.hpp"

namespace cutwater::client {

class AskSocket {
 public:
  /// `name`: said in HELLO when the connection is made again.
  AskSocket(std::string name, Nanos ask_timeout);
  ~AskSocket();

  /// Uses this connection and the session its greeting opened, or went on with. The descriptor
  /// stops being link's.
  Result<void> adopt(Connection link, const Greeting& greeting);

  /// Sends `call` and waits for its end, until `deadline_ns` of CLOCK_BOOTTIME at the latest.
  /// call.end says what became of it.
  void ask(Call& call, std::int64_t deadline_ns) noexcept;

  /// A call that nobody waits for, with its frame: an outcome, a cancel. Kept and repeated like any
  /// other until it is answered (a quiet one: sent); whoever asks next reads the answer for it.
  struct Posted : Call {
    std::string bytes = std::string(wire::kHeaderSize, '\0');
  };
  /// Sends it in session number `session`, as far as the socket takes it now, and does not wait.
  /// False: that session is over, its connection is, or kMostPosted are under way; `posted` stays
  /// the caller's then. Whoever asks makes the connection again.
  bool post(std::unique_ptr<Posted>& posted, std::uint32_t session) noexcept;
  /// Posted calls whose end is not known to have reached the daemon: cut off, refused.
  std::uint64_t posted_lost() const noexcept { return lost_.load(std::memory_order_relaxed); }
  static constexpr std::size_t kMostPosted = 1024;

  /// There is a connection, or one that may come back by itself.
  bool up() const noexcept { return up_.load(std::memory_order_acquire); }
  /// The process_life() this belongs to.
  std::uint64_t life() const noexcept { return life_; }
  /// Which session answers now. Receipts of another one are worth nothing.
  std::uint32_t session_number() const noexcept { return number_.load(std::memory_order_acquire); }
  /// What ended the last connection, for people.
  std::string why();
  /// The session that was last, for HELLO: to be gone on with, or for its daemon's successor to
  /// know whose was what its row still holds. Empty: there is none, or its stream was lost.
  std::string token();
  /// Where the last connection went.
  std::string path();
  /// Posted calls whose answer has not been read.
  std::size_t unanswered();

  /// A string of its own to write a frame into, with kHeaderSize bytes in front; give_frame() takes
  /// it back. nullptr without memory.
  std::string* take_frame() noexcept;
  void give_frame(std::string* frame) noexcept;

  /// Says goodbye and closes. No ask may be under way or follow.
  void close() noexcept;
  /// In a forked child, once, instead of everything else.
  void abandon() noexcept;

  // -- counts, and what the last greeting said of the clock
  std::uint64_t asked() const noexcept { return asked_.load(std::memory_order_relaxed); }
  /// Asks that waited for an answer to their deadline. Those that were not asked meanwhile, because
  /// the daemon is silent, are none of them.
  std::uint64_t late() const noexcept { return late_.load(std::memory_order_relaxed); }
  /// Connections that were cut and made again.
  std::uint64_t made_again() const noexcept { return again_.load(std::memory_order_relaxed); }
  std::size_t max_frame() const noexcept { return max_frame_.load(std::memory_order_relaxed); }
  bool stepped() const noexcept { return stepped_.load(std::memory_order_relaxed); }
  /// Segment time minus CLOCK_BOOTTIME, as far as the greeting tells (half a round trip).
  std::int64_t clock_offset_ns() const noexcept { return offset_.load(std::memory_order_relaxed); }

 private:
  using Lock = std::unique_lock<std::mutex>;
  static constexpr std::size_t kFramesKept = 16;

  void take_over(Connection link, const Greeting& greeting, bool resumed);
  bool may_try(Call& call, std::int64_t now_ns);
  void give_up(Call& call);
  void read_what_came(Lock& lock, Call& call, std::int64_t deadline_ns);
  void put_in_line(std::unique_ptr<Posted> posted);
  void flush();
  void hand_out() noexcept;
  void read_for_all(Lock& lock, std::int64_t deadline_ns);
  void receive(Lock& lock, std::int64_t deadline_ns);
  void end_without_memory() noexcept;
  void on_input(std::size_t bytes);
  void make_again(Lock& lock, std::int64_t deadline_ns);
  void sleep(Lock& lock, Call& call, std::int64_t deadline_ns);
  void wake_reader() noexcept;

  const std::string name_;
  const Nanos ask_timeout_;
  const std::uint64_t life_;

  std::mutex mutex_;                     // everything below but the atomics and input_
  AskSession session_;
  bool reading_ = false;                 // somebody reads, or makes the connection again
  bool cut_ = false;                     // the connection is gone; the reader has not seen it yet
  std::string path_, token_, why_;
  std::int64_t silent_until_ns_ = 0;     // asks end at once until then; 0: the daemon answers
  std::int64_t silence_ns_ = 0;          // the present interval
  std::uint64_t heard_ = 0;              // times anything was received
  std::size_t posted_ = 0;               // in session_, at most kMostPosted

  std::unique_ptr<char[]> input_;        // the reader's
  std::size_t input_bytes_ = 0, input_room_ = 0;

  std::atomic<int> fd_{-1};
  std::atomic<bool> up_{false};
  std::atomic<bool> stepped_{false};
  std::atomic<std::int64_t> offset_{0};
  std::atomic<std::size_t> max_frame_{wire::kMaxFrameDefault};
  std::atomic<std::uint32_t> number_{0};
  std::atomic<std::uint64_t> asked_{0}, again_{0}, lost_{0}, late_{0};
  std::array<std::atomic<std::string*>, kFramesKept> frames_{};
};

}  // namespace cutwater::client
