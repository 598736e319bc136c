// SPDX-License-Identifier: Apache-2.0
// A small shared memory with one bulkhead, callers with rows of their own, and time that moves when
// told.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "shm/bulkhead/bulkhead.hpp"
#include "shm/event_log.hpp"
#include "shm/process_table.hpp"
#include "stress/bulkhead_shape.hpp"
#include "stress/world.hpp"

namespace cutwater::test {

class BulkheadWorld {
 public:
  explicit BulkheadWorld(const rule::BulkheadSettings& settings, std::uint32_t processes = 4,
                         WorldOptions options = {});

  World& world() noexcept { return *world_; }
  const shm::View& view() const noexcept { return world_->view(); }
  std::int64_t now() const noexcept { return view().clock.now(); }
  void pass(std::int64_t ns) { world_->pass(ns); }

  shm::BulkheadRef ref() const { return shm::find_bulkhead(view(), name_); }
  shm::BulkheadCaller caller(std::uint32_t process = 0) const;
  /// Its row is dead from now on.
  void kill(std::uint32_t process);
  /// The same in shared memory only: what a restored memory takes back. Then the tick.
  void bury(std::uint32_t process) const;
  /// What its daemon does when a row died; its successor has a row of its own.
  void revive(std::uint32_t process);
  /// All rows anew: those of before belong to nobody.
  void renew_rows();
  shm::RowGrant row(std::uint32_t process) const { return rows_[process]; }

  shm::BulkheadEntry enter(std::uint32_t process = 0) const;
  shm::Left leave(const shm::BulkheadEntry& entry, std::uint32_t process = 0) const;
  shm::JoinedLine join(std::uint32_t process = 0, shm::LineAsk ask = {}) const;
  shm::LineLook poll(const shm::JoinedLine& joined, std::uint32_t process = 0) const;
  shm::BulkheadTick tick() const;

  shm::BulkheadInfo info() const;
  std::uint32_t in_use() const { return info().in_use; }
  std::uint64_t count(shm::BulkheadCounter counter) const;
  /// Events of this kind, repeats dropped.
  std::vector<shm::Event> events(shm::EventKind kind) const;
  void publish(const rule::BulkheadSettings& settings);

 private:
  std::string name_;
  std::unique_ptr<World> world_;
  std::unique_ptr<shm::RowTable> table_;
  std::vector<shm::RowGrant> rows_;
  std::vector<std::unique_ptr<shm::BulkheadLocal>> locals_;
};

}  // namespace cutwater::test
