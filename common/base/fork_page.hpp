// SPDX-License-Identifier: Apache-2.0
// ForkPage: the one page of a process that a forked child finds empty. It is how the library
// notices a fork without a system call, also one made by raw clone(), which runs no pthread_atfork
// handlers (spec memory 12).
//
//   life    a number that names this process since its last fork: never 0 once process_life() was
//           called, never the number of an ancestor. Whatever belongs to one process alone (a row
//           of the process table, a stripe of counters, a thread lease) is kept together with the
//           life it was obtained in, and is no longer ours when the numbers differ (guard
//           ForkDropsRow).
//   nonce   counter of claims; see next_claim_nonce().
//
// The kernel empties the page in the child (MADV_WIPEONFORK, Linux 4.14). Where it cannot, a
// pthread_atfork handler does, and only raw clone() goes unnoticed.
// Thread safety: everything from any thread. Nothing here fails: without memory for a page of its
// own, static storage and the handler are used. No system call after the first use in a process,
// none at all in a forked child.
#pragma once
#include <atomic>
#include <cstdint>

namespace cutwater {

struct ForkPage {
  std::atomic<std::uint64_t> life;    ///< 0 = not named yet: this process was just forked
  std::atomic<std::uint64_t> nonce;   ///< 0 = no start drawn yet
};

namespace detail {
extern std::atomic<ForkPage*> the_fork_page;
ForkPage& make_fork_page() noexcept;
std::uint64_t name_this_life(ForkPage& page) noexcept;
}  // namespace detail

/// The page of this process. The address is the same in every child.
[[gnu::always_inline]] inline ForkPage& fork_page() noexcept {
  // acquire: pairs with the release in make_fork_page(), so the page is mapped and marked before it
  // is used.
  ForkPage* const page = detail::the_fork_page.load(std::memory_order_acquire);
  return page != nullptr ? *page : detail::make_fork_page();
}

/// This process's life. Never 0; differs from every ancestor's.
[[gnu::always_inline]] inline std::uint64_t process_life() noexcept {
  ForkPage& page = fork_page();
  // relaxed: the number carries its whole meaning.
  const std::uint64_t life = page.life.load(std::memory_order_relaxed);
  return life != 0 ? life : detail::name_this_life(page);
}

/// The next nonce of a claim, 24 bits (guard InsertClaimNonce: two claims never look alike). A
/// process-wide counter with a random start that is drawn anew in a forked child: two claims of one
/// process differ for 16.7M claims, and claims live 2 ms; those of two processes in one slot and
/// deadline agree with probability 2^-24.
std::uint32_t next_claim_nonce() noexcept;

}  // namespace cutwater
