// SPDX-License-Identifier: Apache-2.0
// The memory of this instance, with everything only its owner may do to it: directory, lock,
// segment, publisher, process table, and the descriptors that clients are given.
//
// Order of birth: directory -> lock -> files (adopted or made) -> rules published -> rows. The
// lock is held for the process's life (guard LockHeldForLife): the kernel gives it back, whatever
// ends us. At the end the files stay: attached clients go on deciding in them, the next daemon
// adopts them. The descriptors are opened once and kept, so that clients can attach even when
// somebody has removed the names (a log-out's tidy-up of /dev/shm, C050).
// Thread safety: the loop's thread.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include <cutwater/result.hpp>

#include "adoption.hpp"
#include "config/config.hpp"
#include "shm/directory.hpp"
#include "shm/event_log.hpp"
#include "shm/process_table.hpp"
#include "shm/publisher.hpp"
#include "shm/segment.hpp"
#include "shm/supersede.hpp"

namespace cutwater::server {

struct MemoryPlan {
  bool stepped = false;                ///< --clock=stepped
  std::string runtime_directory;       ///< $RUNTIME_DIRECTORY
  std::string xdg_runtime_dir;         ///< $XDG_RUNTIME_DIR
};

class Memory {
 public:
  /// Exit codes of the errors: exit_code_for(). `remarks` gets what the operator should hear.
  static Result<std::unique_ptr<Memory>> open(const config::Config& config, const MemoryPlan& plan,
                                              std::vector<std::string>& remarks);
  ~Memory();

  const shm::View& view() const noexcept { return birth_.segment.view(); }
  const shm::Segment& segment() const noexcept { return birth_.segment; }
  const std::string& path() const noexcept { return directory_.path; }
  Birth::Kind birth() const noexcept { return birth_.kind; }
  bool inherits() const noexcept { return birth_.inherits(); }
  const std::string& birth_reason() const noexcept { return birth_.reason; }
  const shm::CopyReport& copied() const noexcept { return birth_.copied; }
  shm::Publisher& publisher() noexcept { return *publisher_; }
  const shm::Publisher& publisher() const noexcept { return *publisher_; }
  shm::RowTable& rows() noexcept { return *rows_; }
  bool tsc() const noexcept;
  /// Who the daemon's loop is as the owner of a stripe of counters.
  Word16 stripe_owner() const noexcept {
    return {std::uint64_t{daemon_row_.index} << 32 | daemon_row_.generation, 1};
  }
  std::uint64_t bytes() const noexcept { return shm::total_length(birth_.segment.capacity()); }

  /// For SCM_RIGHTS: rules read-only, state and stats read-write; or all read-only.
  const std::array<int, 3>& descriptors(bool read_only) const noexcept {
    return read_only ? reader_files_ : client_files_;
  }
  /// Device and inode of `state`: how it shows in /proc/PID/maps.
  struct Identity { std::uint64_t device = 0, inode = 0; };
  Identity state_identity() const noexcept;

  /// True while the directory still names all three files.
  bool names_in_place() const;
  /// Into files of the same size that have the names again (C050), by shm/supersede.hpp: what is
  /// owed comes along, so do breakers and held places. Whoever maps the old ones attaches anew.
  /// view() and the numbers of descriptors() stay valid, what was made from the old view does not.
  /// An error with superseded() false: nothing was changed; true: nobody decides until another try
  /// succeeds.
  Result<shm::CopyReport> move_to_named_files();
  bool superseded() const noexcept { return shm::is_superseded(view()); }

  /// Seconds since 1970 by the segment's own reckoning: the system's clock, or, on a stepped clock,
  /// the step.
  std::uint64_t unix_now_s() const noexcept;
  /// Writes an event; `text` is cut at 28 bytes. Never a caller's key.
  void note(shm::EventKind kind, std::uint32_t object, std::string_view text);
  /// The daemon ends as asked: its row is given back.
  void say_farewell();

 private:
  Memory(shm::MemoryDirectory directory, shm::UniqueFd lock, Birth birth);
  Result<void> open_descriptors();
  Result<void> reopen_descriptors();
  /// What is in force.
  struct Rules {
    std::vector<rule::LimitSettings> limits;
    std::vector<rule::BreakerSettings> breakers;
    std::vector<rule::BulkheadSettings> bulkheads;
    std::uint64_t hash = 0;
  };
  /// `inherits`: rules, rows and debts of before are in the memory.
  Result<void> publish(const Rules& rules, bool inherits);
  Result<void> take_daemon_row();

  shm::MemoryDirectory directory_;
  shm::UniqueFd lock_;
  Birth birth_;
  std::unique_ptr<shm::Publisher> publisher_;
  std::unique_ptr<shm::RowTable> rows_;
  shm::RowGrant daemon_row_;
  bool lock_memory_ = false;
  std::array<int, 3> client_files_{-1, -1, -1}, reader_files_{-1, -1, -1};
};

/// The segment's sizes and clock as the configuration asks for them.
shm::SegmentOptions segment_options(const config::Config& config, bool stepped);

}  // namespace cutwater::server
