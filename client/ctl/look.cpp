// SPDX-License-Identifier: Apache-2.0
#include "ctl/look.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "ctl/print.hpp"
#include "ctl/text.hpp"
#include "rows/breaker_rows.hpp"
#include "rows/bulkhead_rows.hpp"
#include "rows/key_rows.hpp"
#include "rows/trip_rows.hpp"
#include "shm/verify.hpp"
#include "shm/socket_place.hpp"
#include "src/address.hpp"

namespace cutwater::ctl {
namespace {

using client::Connection;
using client::Deadline;

/// The file whose presence makes a directory a memory.
constexpr const char* kAnyFile = "rules";

/// Events asked for at once.
constexpr std::uint32_t kEventPage = 1000;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The memory directory a socket in its usual place belongs to (shm/socket_place.hpp).
std::string memory_beside(const std::string& socket) {
  std::error_code ignored;
  std::string folder =
      std::filesystem::absolute(socket, ignored).lexically_normal().parent_path().string();
  const std::string_view suffix = shm::kSocketDirectorySuffix;
  if (folder.ends_with(suffix)) folder.resize(folder.size() - suffix.size());
  return folder;
}

/// Directories where the memory may lie, in order.
std::vector<std::string> places(const Settings& settings) {
  if (!settings.memory.empty()) return {settings.memory};
  std::vector<std::string> found;
  const auto address = client::find_address(settings.address);
  if (address) found.push_back(memory_beside(address->path));
  shm::DirectoryQuery usual;
  usual.runtime_directory = environment("RUNTIME_DIRECTORY");
  usual.xdg_runtime_dir = environment("XDG_RUNTIME_DIR");
  usual.create = false;
  for (std::string& place : shm::directory_candidates(usual)) found.push_back(std::move(place));
  return found;
}

Result<Memory> open_at(const std::string& place, bool check_boot) {
  shm::DirectoryQuery query;
  query.setting = place;
  query.create = false;
  auto directory = shm::open_directory(query);
  if (!directory) return directory.error();
  auto segment = shm::Segment::open_files(directory->fd.get(), shm::Access::ReadOnly, check_boot);
  if (!segment) {
    const bool absent = segment.error().code() == Errc::NoDaemon;
    return absent ? Error{Errc::NoDaemon, "no memory files in " + place} : segment.error();
  }
  const bool alive = shm::lock_is_held(*directory);
  return Memory{std::move(*directory), std::move(*segment), alive};
}

bool is_absent(const std::string& place) noexcept {
  return ::access((place + "/" + kAnyFile).c_str(), F_OK) != 0 && errno == ENOENT;
}

/// The directory or its files may not be read by us.
bool is_closed(const std::string& place) noexcept {
  return ::access((place + "/" + kAnyFile).c_str(), R_OK) != 0 && errno == EACCES;
}

wire::Value status_of(const shm::View& view) {
  const shm::VerifyReport table = shm::verify(view);
  return rows::status_row(view, {.in_debt = table.in_debt, .claims = table.claims});
}

/// True for errors after which the memory may be read instead: nobody answered.
bool unanswered(Errc code) noexcept { return code == Errc::NoDaemon || code == Errc::Timeout; }

}  // namespace

Settings located(Settings settings) {
  if (!settings.memory.empty()) return settings;
  auto look = Look::open(settings);
  if (!look || look->daemon() != "running") return settings;
  const auto status = look->read("status");
  if (status && !status->empty()) settings.memory = text_at(status->front(), "memory_directory");
  return settings;
}

Result<Memory> open_memory(const Settings& settings, bool check_boot) {
  std::string looked;
  for (const std::string& place : places(settings)) {
    auto memory = open_at(place, check_boot);
    if (memory) return memory;
    // A memory that is there but closed to us says more than the next place, which may be empty.
    if (is_closed(place)) {
      return Error{Errc::NotPermitted,
                   place + ": only root and the daemon's user may read a memory directly"};
    }
    const Errc code = memory.error().code();
    if (!is_absent(place) && code != Errc::NoDaemon) {
      return Error{code, memory.error().text() +
                             (code == Errc::Damaged
                                  ? "; the next start of cutwaterd sets such files aside (*.bad) "
                                    "and makes new ones"
                                  : "")};
    }
    looked += (looked.empty() ? "" : ", ") + place;
  }
  if (looked.empty()) {
    return Error{Errc::NoDaemon, "no memory directory is known; name it with --memory"};
  }
  return Error{Errc::NoDaemon, "there is no memory in " + looked + "; name another with --memory"};
}

Result<Link> open_link(const Settings& settings) {
  auto address = client::find_address(settings.address);
  if (!address) return address.error();
  const Deadline deadline = Deadline::in(settings.timeout);
  auto connection = Connection::connect(address->path, deadline);
  if (!connection) return connection.error();
  auto greeting = connection->hello(client::hello_for("cutwaterctl", wire::Want::Ask), deadline);
  if (!greeting) return greeting.error();
  return Link{std::move(*connection), std::move(greeting->welcome)};
}

Result<Look> Look::open(const Settings& settings, Voice voice) {
  auto look = choose(settings);
  if (look && voice == Voice::Notes && !look->remark_.empty()) note(look->remark_);
  return look;
}

Result<Look> Look::choose(const Settings& settings) {
  if (!settings.memory.empty() && settings.address.empty())
    return from_memory(settings, "not asked", "");
  auto link = open_link(settings);
  if (!link) {
    if (!unanswered(link.error().code())) return link.error();
    return from_memory(settings,
                       link.error().code() == Errc::Timeout ? "does not answer" : "not running",
                       link.error().text());
  }
  Look look;
  look.settings_ = settings;
  look.daemon_ = "running";
  look.instance_ = link->welcome.instance;
  look.place_ = link->connection.path();
  look.link_ = std::make_unique<Link>(std::move(*link));
  return look;
}

Result<Look> Look::from_memory(const Settings& settings, std::string daemon,
                               const std::string& cause) {
  auto memory = open_memory(settings);
  if (!memory) {
    const Error& error = memory.error();
    const std::string why =
        cause.empty() ? "" : "daemon " + daemon + " (" + cause + "), and the memory: ";
    const Errc code = daemon == "does not answer" && error.code() == Errc::NoDaemon ? Errc::Timeout
                                                                                    : error.code();
    return Error{code, why + error.text()};
  }
  Look look;
  if (daemon != "does not answer") {
    daemon = memory->daemon_alive ? (daemon == "not asked" ? "running" : "does not answer")
                                  : "not running";
  }
  look.settings_ = settings;
  look.place_ = memory->directory.path;
  look.remark_ = "daemon " + daemon +
                 (settings.address.empty() && !settings.memory.empty() ? ", not asked" : "") +
                 "; read from the memory in " + look.place_;
  look.daemon_ = std::move(daemon);
  look.memory_ = std::make_unique<Memory>(std::move(*memory));
  return look;
}

bool Look::fall_back(const Error& error) {
  if (!unanswered(error.code())) return false;
  auto memory = from_memory(
      settings_, error.code() == Errc::Timeout ? "does not answer" : "not running", error.text());
  if (!memory) return false;
  *this = std::move(*memory);
  note(remark_);
  return true;
}

Result<Rows> Look::ask(wire::Read message) {
  Rows rows;
  for (int page = 0; page < kMaxPages; ++page) {
    auto answer = link_->connection.read(message, Deadline::in(settings_.timeout));
    if (!answer) return answer.error();
    for (wire::Value& row : answer->rows) rows.push_back(std::move(row));
    if (answer->cursor.empty() || answer->cursor == message.cursor) return rows;
    message.cursor = std::move(answer->cursor);
  }
  return Error{Errc::Protocol, "the daemon's answer to '" + message.what + "' does not end"};
}

Result<Rows> Look::read(std::string_view what, std::string_view name) {
  if (link_) {
    wire::Read message;
    message.what = what;
    if (!name.empty()) message.name = std::string(name);
    auto answer = ask(std::move(message));
    if (answer) return answer;
    // The daemon names what it does not know as a bad argument: which one it was is for the list.
    const bool by_limit = what == "top" && answer.error().code() == Errc::InvalidArgument;
    if (by_limit) return why_unknown("limit", name, answer.error());
    if (!fall_back(answer.error())) return answer;
  }
  const shm::View& view = memory_->segment.view();
  if (what == "status") return Rows{status_of(view)};
  if (what == "counters") return rows::counter_rows(view);
  if (what == "limits") return rows::limit_rows(view);
  if (what == "breakers") return rows::breaker_rows(view);
  if (what == "bulkheads") return rows::bulkhead_rows(view);
  if (what == "clients") return rows::client_rows(view);
  return Error{Errc::Unsupported,
               "'" + std::string(what) + "' is not in the memory; only the daemon knows it: "
                                           "start cutwaterd"};
}

Result<Rows> Look::read_not_well(std::string_view what) {
  if (link_) {
    wire::Read message;
    message.what = what;
    message.options.set("not_well", true);
    auto answer = ask(std::move(message));
    if (answer || !fall_back(answer.error())) return answer;
  }
  const shm::View& view = memory_->segment.view();
  return what == "breakers" ? rows::breaker_rows(view, rows::Which::NotWell)
                            : rows::bulkhead_rows(view, rows::Which::NotWell);
}

Result<wire::Value> Look::read_limit(std::string_view name, std::optional<std::string_view> key,
                                     std::uint64_t cost) {
  if (!link_) return rows::limit_row(memory_->segment.view(), name, key, cost);
  wire::Read message;
  message.what = "limit";
  message.name = name;
  if (key) message.key = std::string(*key);
  if (key && cost != 1) message.options.set("cost", cost);
  auto rows = ask(std::move(message));
  if (rows && !rows->empty()) return std::move(rows->front());
  if (!rows && fall_back(rows.error())) return read_limit(name, key, cost);
  return why_unknown("limit", name,
                     rows ? Error{Errc::Protocol, "the daemon gave no row for it"} : rows.error());
}

Result<void> Look::read_keys(std::string_view limit, const std::function<void(Rows)>& page) {
  std::uint64_t from = 0;
  if (link_) {
    wire::Read message;
    message.what = "keys";
    message.name = limit;
    for (std::uint64_t i = 0; i < kMaxKeyPages; ++i) {
      auto answer = link_->connection.read(message, Deadline::in(settings_.timeout));
      if (!answer && i == 0 && fall_back(answer.error())) break;
      if (!answer) {
        if (answer.error().code() != Errc::InvalidArgument) return answer.error();
        return why_unknown("limit", limit, answer.error());
      }
      page(std::move(answer->rows));
      if (answer->cursor.empty() || answer->cursor == message.cursor) return {};
      message.cursor = std::move(answer->cursor);
    }
    if (link_) return Error{Errc::Protocol, "the daemon's list of keys does not end"};
  }
  do {
    auto found = rows::key_page(memory_->segment.view(), {.limit = limit, .from = from});
    if (!found) return found.error();
    page(std::move(found->rows));
    from = found->next;
  } while (from != 0);
  return {};
}

Result<wire::Value> Look::read_named(std::string_view kind, std::string_view name) {
  if (!link_) {
    const shm::View& view = memory_->segment.view();
    if (kind == "breaker") return rows::breaker_row(view, name);
    if (kind == "bulkhead") return rows::bulkhead_row(view, name);
    return Error{Errc::Unsupported, "'" + std::string(kind) + "' is not in the memory"};
  }
  wire::Read message;
  message.what = kind;
  message.name = name;
  auto rows = ask(std::move(message));
  if (rows && !rows->empty()) return std::move(rows->front());
  if (!rows && fall_back(rows.error())) return read_named(kind, name);
  return why_unknown(kind, name,
                     rows ? Error{Errc::Protocol, "the daemon gave no row for it"} : rows.error());
}

Result<Rows> Look::read_trips(std::string_view breaker, std::uint32_t most) {
  if (!link_) return rows::trip_rows(memory_->segment.view(), breaker, most);
  wire::Read message;
  message.what = "trips";
  if (!breaker.empty()) message.name = std::string(breaker);
  message.max_rows = most;
  Rows rows;
  for (int page = 0; page < kMaxPages && rows.size() < most; ++page) {
    message.max_rows = most - static_cast<std::uint32_t>(rows.size());
    auto answer = link_->connection.read(message, Deadline::in(settings_.timeout));
    if (!answer) {
      if (fall_back(answer.error())) return read_trips(breaker, most);
      return breaker.empty() ? answer.error() : why_unknown("breaker", breaker, answer.error());
    }
    for (wire::Value& row : answer->rows) {
      // One that came meanwhile moves the others down a page.
      const bool again =
          !rows.empty() && number_at(row, "number") >= number_at(rows.back(), "number");
      if (!again) rows.push_back(std::move(row));
    }
    if (answer->cursor.empty() || answer->cursor == message.cursor) break;
    message.cursor = std::move(answer->cursor);
  }
  return rows;
}

Error Look::why_unknown(std::string_view kind, std::string_view name, const Error& error) {
  if (error.code() == Errc::NotPermitted) return error;
  // Whether a pattern is full is seen in the memory alone: its words stay.
  if (const auto at = error.text().find("no instance '"); at != std::string::npos) {
    return Error{Errc::UnknownName, error.text().substr(at)};
  }
  const auto all = read(std::string(kind) + "s");
  if (!all) return error;
  std::vector<std::string> known;
  for (const wire::Value& row : *all) {
    known.push_back(text_at(row, kind));
    if (known.back() == name) return error;
  }
  return rows::unknown_name(kind, name, known);
}

Result<EventRows> Look::read_events(std::uint64_t from) {
  if (!link_) return rows::event_rows(memory_->segment.view(), from, kEventPage);
  wire::Read message;
  message.what = "events";
  message.cursor = std::to_string(from);
  message.max_rows = kEventPage;
  auto answer = link_->connection.read(message, Deadline::in(settings_.timeout));
  if (!answer) return answer.error();
  EventRows out{std::move(answer->rows), from, 0};
  for (const wire::Value& row : out.rows) {
    const std::uint64_t number = number_at(row, "number", out.next);
    if (number > out.next) out.lost += number - out.next;
    out.next = number + 1;
  }
  return out;
}

wire::Value Look::document() const {
  wire::Value out;
  out.set("source", source());
  out.set("daemon", daemon_);
  if (!instance_.empty()) out.set("instance", instance_);
  if (!remark_.empty()) out.set("remark", remark_);
  return out;
}

}  // namespace cutwater::ctl
