// SPDX-License-Identifier: Apache-2.0
// SharedLog: the requests of an access log in anonymous memory that forked workers share with their
// parent, and the words by which they agree on who takes which request and when.
//
// Stamps are made non-decreasing; the requests of one stamp form a group. The parent opens one
// group after the other; a worker takes a request by moving `cursor`, never past `open_until`,
// decides it, writes its verdict and counts it in `done`. Only when all of a group are done does
// the parent move the clock and open the next one, so which worker decided what cannot change any
// client's sum. Nobody spins: workers sleep on `open_until`, the parent on `done` (futex words).
//
// A worker that is killed leaves its group unfinished: the parent sees the process end and gives
// up. Thread and process safety: the parent fills and opens, workers take; see the words below.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <cutwater/result.hpp>

#include "ctl/access_log.hpp"

namespace cutwater::quickstart {

/// Requests read from one log; the rest is left out, and said.
inline constexpr std::uint32_t kMaxRequests = 20'000'000;
/// Bytes of client names.
inline constexpr std::size_t kMaxNameBytes = std::size_t{1} << 30;
inline constexpr std::uint32_t kMaxWorkers = 64;

enum class Verdict : std::uint8_t { Undecided = 0, Admitted = 1, Refused = 2, Overflowed = 4 };

struct Request {
  std::int64_t at_ns = 0;  ///< since the first request, non-decreasing
  std::uint32_t client = 0;
  std::uint8_t verdict = 0;  ///< Admitted or Refused, with Overflowed beside it; one writer
};

/// What parent and workers share besides the requests.
struct Control {
  alignas(64) std::atomic<std::uint32_t> open_until;  ///< parent; requests below it may be taken
  alignas(64) std::atomic<std::uint32_t> cursor;      ///< workers; the next request to take
  alignas(64) std::atomic<std::uint32_t> done;        ///< workers; requests decided
  alignas(64) std::atomic<std::uint32_t> ready;       ///< workers; those that may start
  std::atomic<std::uint32_t> failed;                  ///< a worker that could not go on
  char failure[512];                                  ///< why, written by the first that failed
  std::uint64_t decided[kMaxWorkers];                 ///< by each worker, written at its end
};

class SharedLog {
 public:
  /// Reads all of the log. NoMemory, System, InvalidArgument (nothing in it could be read).
  static Result<SharedLog> read(ctl::AccessLog& log);

  SharedLog(SharedLog&& other) noexcept;
  SharedLog& operator=(SharedLog&&) = delete;
  ~SharedLog();

  std::uint32_t size() const noexcept { return count_; }
  std::uint32_t clients() const noexcept { return clients_; }
  Request& request(std::uint32_t i) const noexcept { return requests_[i]; }
  std::string_view client(std::uint32_t i) const noexcept {
    return {names_ + ends_[i], static_cast<std::size_t>(ends_[i + 1] - ends_[i])};
  }
  Control& control() const noexcept { return *control_; }
  /// One past the last request with the stamp of request `i`.
  std::uint32_t end_of_group(std::uint32_t i) const noexcept;

  std::uint64_t skipped() const noexcept { return skipped_; }
  std::uint64_t out_of_order() const noexcept { return out_of_order_; }
  std::uint64_t left_out() const noexcept { return left_out_; }
  const std::vector<ctl::LogFault>& faults() const noexcept { return faults_; }

  /// Says why a worker cannot go on, once, and wakes the parent.
  void fail(const std::string& why) const noexcept;

 private:
  struct Draft;
  SharedLog() = default;
  bool place(const Draft& draft);

  void* memory_ = nullptr;
  std::size_t length_ = 0;
  Control* control_ = nullptr;
  Request* requests_ = nullptr;
  std::uint64_t* ends_ = nullptr;  // clients_ + 1 offsets into names_
  char* names_ = nullptr;
  std::uint32_t count_ = 0, clients_ = 0;
  std::uint64_t skipped_ = 0, out_of_order_ = 0, left_out_ = 0;
  std::vector<ctl::LogFault> faults_;
};

/// Sleeps while the word holds `seen`, at most `at_most_ms`. May return early.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, int at_most_ms) noexcept;
/// Wakes everybody who sleeps on the word.
void futex_wake(std::atomic<std::uint32_t>& word) noexcept;

}  // namespace cutwater::quickstart
