// SPDX-License-Identifier: Apache-2.0
#include "src/ask/left_behind.hpp"

#include <sched.h>

#include <atomic>
#include <exception>
#include <list>
#include <new>
#include <utility>

#include "base/clock.hpp"
#include "base/fork_page.hpp"
#include "src/life_lock.hpp"

namespace cutwater::client {
namespace {

struct Session {
  std::string path, token;
};
using Sessions = std::list<Session>;

/// Of one life: a child finds its parent's, which it leaves alone, and begins its own.
struct Book {
  LifeLock lock;                         // the next three
  std::uint64_t life = 0;
  Sessions* sessions = nullptr;          // lives as long as the process
  std::int64_t not_before_ns = 0;
  std::atomic<std::uint64_t> added{0};
};
constinit Book book;

class Held {
 public:
  Held() noexcept {
    while (!book.lock.try_lock()) sched_yield();
    if (book.life == process_life()) return;
    book.life = process_life();
    book.sessions = new (std::nothrow) Sessions;
    book.not_before_ns = 0;
  }
  ~Held() { book.lock.unlock(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
};

/// Out of the book; an empty list: there is none of that path.
Sessions take(const std::string& path) noexcept {
  Sessions out;
  const Held held;
  if (book.sessions == nullptr) return out;
  for (auto at = book.sessions->begin(); at != book.sessions->end(); ++at) {
    if (at->path != path) continue;
    out.splice(out.begin(), *book.sessions, at);
    break;
  }
  return out;
}

void put_back(Sessions& one) noexcept {
  const Held held;
  if (book.sessions == nullptr) return;
  book.sessions->splice(book.sessions->end(), one);
  book.not_before_ns = boottime_ns() + LeftBehind::kPauseNs;
  book.added.fetch_add(1, std::memory_order_relaxed);
}

bool may_try() noexcept {
  const Held held;
  return boottime_ns() >= book.not_before_ns;
}

bool end_one(const Session& session, const std::string& name, Deadline deadline) {
  auto link = Connection::connect(session.path, deadline);
  if (!link) return false;
  wire::Hello hello = hello_for(name, wire::Want::Ask);
  hello.features = wire::kFeatureRemember;
  hello.session = session.token;
  if (!link->hello(std::move(hello), deadline)) return false;
  link->bye();
  return true;
}

}  // namespace

bool LeftBehind::add(const std::string& path, const std::string& token) noexcept {
  if (token.empty()) return true;
  try {
    Sessions one;
    one.push_back({path, token});
    const Held held;
    if (book.sessions == nullptr || book.sessions->size() >= kMost) return false;
    book.sessions->splice(book.sessions->end(), one);
    book.not_before_ns = 0;
    // relaxed: a hint; the lock orders what it is about.
    book.added.fetch_add(1, std::memory_order_relaxed);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

bool LeftBehind::end_all(const std::string& path, const std::string& name,
                         Deadline deadline) noexcept {
  if (added() == 0) return true;         // the usual one
  if (!may_try()) return size() == 0;
  for (Sessions one = take(path); !one.empty(); one = take(path)) {
    bool ended = false;
    try {
      ended = !deadline.passed() && end_one(one.front(), name, deadline);
    } catch (const std::exception&) {
      // no memory to talk to it: later
    }
    if (ended) continue;
    put_back(one);
    return false;
  }
  return true;
}

std::uint64_t LeftBehind::added() noexcept { return book.added.load(std::memory_order_relaxed); }

std::size_t LeftBehind::size() noexcept {
  const Held held;
  return book.sessions == nullptr ? 0 : book.sessions->size();
}

}  // namespace cutwater::client
