// SPDX-License-Identifier: Apache-2.0
// What hostile bytes make us allocate, measured: operator new of this program counts.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "unit/wire/golden.hpp"
#include "wire/session.hpp"
#include "wire/tokens.hpp"

namespace {
std::atomic<std::size_t> allocated{0};
std::atomic<std::size_t> largest{0};

void* count(std::size_t size) {
  // relaxed: one thread measures itself.
  allocated.fetch_add(size, std::memory_order_relaxed);
  if (size > largest.load(std::memory_order_relaxed)) {
    largest.store(size, std::memory_order_relaxed);
  }
  void* at = std::malloc(size);
  if (at == nullptr) std::abort();
  return at;
}
}  // namespace

void* operator new(std::size_t size) { return count(size); }
void* operator new[](std::size_t size) { return count(size); }
void operator delete(void* at) noexcept { std::free(at); }
void operator delete[](void* at) noexcept { std::free(at); }
void operator delete(void* at, std::size_t) noexcept { std::free(at); }
void operator delete[](void* at, std::size_t) noexcept { std::free(at); }

namespace cutwater::wire {
namespace {

constexpr std::size_t kAllowed = 64U << 10;  // all allocations of one attack together

struct Use {
  std::size_t total = 0;
  std::size_t largest = 0;
};

template <class Body>
Use measure(Body body) {
  allocated.store(0, std::memory_order_relaxed);
  largest.store(0, std::memory_order_relaxed);
  body();
  return {allocated.load(std::memory_order_relaxed), largest.load(std::memory_order_relaxed)};
}

/// Feeds an attack at once or byte by byte; true when it was answered by one ERROR 1 and the end.
bool is_refused(ServerSession session, std::string_view bytes, std::size_t piece) {
  bool answered = false;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    const auto actions = session.feed(bytes.substr(at, piece), {});
    for (const auto& send : all_of<SendBytes>(actions)) {
      const auto error = decode<ErrorMessage>(std::string_view(send.bytes).substr(kHeaderSize));
      answered = !answered && error && error->code == ErrorCode::BadFrame && error->closing;
    }
  }
  return answered && session.state() == SessionState::Closed;
}

// covers: C118 (at once and byte by byte, before and after WELCOME)
TEST(Allocation, AnAnnouncedLengthAllocatesNothing) {
  const std::string attacks[] = {frame_of(MessageType::Read, 2, from_hex("dd ff 00 00 00")),
                                 frame_of(MessageType::Read, 2, from_hex("df ff ff ff ff")),
                                 frame_of(MessageType::Read, 2, from_hex("c6 ff ff ff ff")),
                                 frame_of(MessageType::Read, 2, from_hex("db ff ff ff ff")),
                                 frame_of(MessageType::Read, 2, from_hex("c9 ff ff ff ff")),
                                 frame_of(MessageType::Read, 2, from_hex("91 dd 00 00 04 00")),
                                 from_hex("43 57 01 28 00 00 00 00 02 00 00 00 ff ff ff ff")};

  for (const auto& attack : attacks) {
    for (const std::size_t piece : {attack.size(), std::size_t{1}}) {
      const ServerSession session = ready_session();
      bool refused = false;

      const Use use = measure([&] { refused = is_refused(session, attack, piece); });

      EXPECT_TRUE(refused) << to_hex(attack);
      EXPECT_LT(use.total, kAllowed) << to_hex(attack);
    }
  }
}

// covers: C118 (a frame announced and never sent)
TEST(Allocation, AnAnnouncedFrameAllocatesOnlyForBytesThatCame) {
  Welcome welcome = plain_welcome();
  welcome.max_frame = kMaxFrameLargest;
  ServerSession session({}, 0);
  (void)session.feed(frame_of(plain_hello(), 1), {});
  (void)session.welcome(welcome, 0);

  const Use use = measure([&] {
    (void)session.feed(from_hex("43 57 01 28 00 00 00 00 02 00 00 00 00 00 10 00"), {});
    for (int i = 0; i < 100; ++i) (void)session.feed("x", {});
  });

  EXPECT_EQ(session.state(), SessionState::Ready);
  EXPECT_LT(use.total, 4096u);
}

// covers: C119 (no stack and no heap in proportion to the depth)
TEST(Allocation, DeepNestingAllocatesLittle) {
  std::string maps;
  for (int i = 0; i < 10000; ++i) maps += "\x81\xa1\x61";
  for (const std::string& payload : {std::string(10000, '\x91'), maps}) {
    const Use use = measure([&] { EXPECT_FALSE(decode_value(payload).ok()); });

    EXPECT_LT(use.total, kAllowed);
  }
}

TEST(Allocation, TheWorstFrameTakesNoMoreThanItsTokensAndValuesTwice) {
  // 64 arrays of 1000 nils: as many values as bytes.
  std::string payload = from_hex("dc 00 40");
  for (int i = 0; i < 64; ++i) payload += from_hex("dc 03 e8") + std::string(1000, '\xc0');

  const Use use = measure([&] { EXPECT_TRUE(decode_value(payload).ok()); });

  EXPECT_LE(use.largest, 2 * payload.size() * sizeof(Token));
  EXPECT_LT(use.total, payload.size() * (4 * sizeof(Token) + 2 * sizeof(Value)));
}

class Allows final : public AcquireServer {
 public:
  const AcquireAnswer& acquire_now(const AcquireView& asked, Receipts* receipts) override {
    answer_.decisions.resize(asked.items.size());
    for (std::size_t i = 0; i < asked.items.size(); ++i)
      receipts->add("as long as a receipt is, or so");
    return answer_;
  }

 private:
  AcquireAnswer answer_;
};

TEST(Allocation, AnAcquireAllocatesItsActionAndItsAnswer) {
  Allows server;
  ServerSession session({}, 0);
  Hello hello = plain_hello();
  hello.features = kFeatureRemember;
  Welcome welcome = plain_welcome();
  welcome.features = kFeatureRemember;
  (void)session.feed(frame_of(hello, 1), {});
  (void)session.welcome(welcome, 0);
  session.set_acquires(&server);
  std::uint32_t id = 1;
  const Acquire ask{0, 0,
                    std::vector<Item>(16, Item{"api-per-user", "a key of some length", 1, 0})};
  for (std::size_t i = 0; i < kRememberedItems; ++i) (void)session.feed(frame_of(ask, ++id), {});
  const std::string frame = frame_of(ask, ++id);

  const Use use = measure([&] { (void)session.feed(frame, {}); });

  // The room of an answer is made at once for the longest there may be.
  EXPECT_LE(use.largest, kHeaderSize + 16 * (kMaxDecisionBytes + 8));
  EXPECT_LE(use.total, use.largest + sizeof(ServerAction) + kHeaderSize + 600);
}

}  // namespace
}  // namespace cutwater::wire
