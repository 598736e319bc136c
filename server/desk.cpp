// SPDX-License-Identifier: Apache-2.0
#include "desk.hpp"

#include <cstring>

#include <sys/socket.h>

#include "ask/admission.hpp"
#include "session_settings.hpp"
#include "shm/limit/key_hash.hpp"

namespace cutwater::server {

namespace {

std::string random_id() {
  std::string out(wire::kIdSize, '\0');
  static_cast<void>(shm::random_bytes(out.data(), out.size()));
  return out;
}

/// A session's token names its row, so that a process that comes again gets it back.
std::string session_token(shm::RowGrant row) {
  std::string out = random_id();
  std::memcpy(out.data(), &row.index, sizeof row.index);
  std::memcpy(out.data() + sizeof row.index, &row.generation, sizeof row.generation);
  return out;
}

std::optional<shm::RowGrant> row_of_token(const std::string& token) {
  if (token.size() != wire::kIdSize) return std::nullopt;
  shm::RowGrant row;
  std::memcpy(&row.index, token.data(), sizeof row.index);
  std::memcpy(&row.generation, token.data() + sizeof row.index, sizeof row.generation);
  if (row.index == 0) return std::nullopt;
  return row;
}

/// For a connection that gets no session: one ERROR, as far as the socket takes it.
void send_error(int fd, wire::ErrorCode code, const std::string& text) {
  const auto payload = wire::encode(wire::ErrorMessage{code, "", text, true});
  if (!payload) return;
  const std::string frame = wire::encode_frame({.type = wire::MessageType::Error}, *payload);
  static_cast<void>(::send(fd, frame.data(), frame.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
}

bool maps_memory(wire::Want mode) { return mode == wire::Want::Map || mode == wire::Want::MapRead; }

const char* word_of(wire::Want mode) {
  switch (mode) {
    case wire::Want::Ask: return "ask";
    case wire::Want::Map: return "map";
    case wire::Want::Row: return "map";  // mapped already: it wants only its row back
    case wire::Want::MapRead: return "map-read";
  }
  return "?";
}

}  // namespace

Desk::Desk(Memory& memory, Janitor& janitor, Running& running, Steering& steering, Log& log)
    : memory_(memory),
      janitor_(janitor),
      running_(running),
      steering_(steering),
      log_(log),
      asking_(memory, running, janitor.book()),
      top_keys_(memory),
      feed_(memory.view()),
      sources_(::geteuid()),
      time_namespace_(shm::time_namespace_of_self()),
      daemon_id_(random_id()) {
  sources_.set_bounds(source_bounds(running.config));
  asking_.decider().set_witness(&top_keys_);
  asking_.set_came_back([this](shm::RowGrant row) { janitor_.came_back(row, moment().now_ns); });
  asking_.line().set_deliver([this](const Line::Asker& asker, const wire::EnterAnswer& answer,
                                    wire::Receipts receipts) {
    deliver(asker, answer, std::move(receipts));
  });
}

wire::Moment Desk::moment() const {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return {static_cast<std::uint64_t>(now),
          static_cast<std::uint64_t>(std::max<std::int64_t>(memory_.view().clock.now(), 0))};
}

void Desk::accepted(Connection::Socket socket) {
  auto peer = read_peer(socket.native_handle());
  if (!peer) return;
  const std::uint32_t uid = peer->identity.uid;
  switch (sources_.opened(uid, moment().now_ns)) {
    case SourceBook::Verdict::Welcome: break;
    case SourceBook::Verdict::Silent: ++refused_; return;
    case SourceBook::Verdict::TooManyInAll:
      ++refused_;
      send_error(socket.native_handle(), wire::ErrorCode::TooMany,
                 fmt::format("the daemon has {} connections, as many as it takes",
                             sources_.bounds().connections));
      return say_once(uid, "too many connections in all");
    case SourceBook::Verdict::TooManyOfSource:
      ++refused_;
      send_error(socket.native_handle(), wire::ErrorCode::TooMany,
                 fmt::format("uid {} has {} connections, as many as one may have", uid,
                             sources_.bounds().connections_per_source));
      return say_once(uid, "too many connections of this uid");
  }
  const std::uint64_t id = next_id_++;
  auto connection = std::make_shared<Connection>(std::move(socket), id, std::move(*peer), *this,
                                                 session_settings(running_.config));
  connection->session().set_acquires(&asking_);
  connections_.emplace(id, connection);
  connection->start();
}

void Desk::on_hello(Connection& from, const wire::HelloReceived& received) {
  const wire::Hello& hello = received.hello;
  const shm::FileHeader& header = memory_.segment().header(shm::FileKind::Rules);
  const AdmissionFacts facts{.layout_major = shm::kAbiMajor,
                             .layout_minor = shm::kAbiMinor,
                             .features_required = header.features_required,
                             .time_namespace = time_namespace_,
                             .boottime_ns = static_cast<std::uint64_t>(boottime_ns()),
                             .stepped = memory_.view().clock.is_stepped()};
  Admission admission = admit(hello, from.peer().identity, running_.config.access, facts);
  if (admission.refused) {
    ++refused_;
    memory_.note(shm::EventKind::ClientRefused, from.peer().identity.uid, "not permitted");
    from.perform(from.session().refuse(wire::ErrorCode::NotPermitted, admission.reason));
    return;
  }
  wire::Welcome welcome;
  welcome.features = wire::kFeatureRemember | wire::kFeatureEvents |
                     (facts.stepped ? wire::kFeatureSteppedClock : 0);
  welcome.instance = running_.config.instance.name;
  welcome.daemon = daemon_id_;
  welcome.rights = admission.rights;
  welcome.mode = admission.mode;
  welcome.why = admission.why;
  set_bounds(running_.config, welcome);
  if (welcome.mode == wire::Want::Row &&
      hello.segment != std::string_view(reinterpret_cast<const char*>(memory_.view().uuid),
                                        wire::kIdSize)) {
    welcome.mode = wire::Want::Ask;
    welcome.why = "the memory mapped there is not this daemon's: attach anew";
  }
  wire::AnswerMemory remembered = take_over(from, hello, welcome);
  if (!welcome.resumed) {
    note_former(from, hello);
    give_row(from, hello, welcome);
  }
  if (maps_memory(welcome.mode)) {
    welcome.descriptors = {"rules", "state", "stats"};
    from.descriptors = memory_.descriptors(welcome.mode == wire::Want::MapRead);
  }
  welcome.generation = memory_.view().current() >> shm::kCurrentGenerationShift;
  welcome.clock_ns = moment().clock_ns;
  note_welcome(from, hello, welcome);
  from.perform(from.session().welcome(std::move(welcome), moment().now_ns, std::move(remembered)));
}

void Desk::note_welcome(Connection& from, const wire::Hello& hello, const wire::Welcome& welcome) {
  from.notes.name = hello.client_name;
  from.notes.mode = welcome.mode;
  from.notes.why = welcome.why;
  from.notes.rights = welcome.rights;
  from.notes.session = welcome.session;
  from.notes.row = {welcome.row_index, welcome.row_generation};
  from.notes.mapped = welcome.mode == wire::Want::Map || welcome.mode == wire::Want::Row;
  asking_.note_holding(from);
  from.notes.since_ns = static_cast<std::int64_t>(welcome.clock_ns);
  from.notes.welcome = true;
  if (welcome.why.empty()) return;
  say_once(from.peer().identity.uid,
           fmt::format("'{}' (pid {}) does not map the memory: {}", hello.client_name,
                       from.peer().pid, welcome.why));
}

/// The memory of the session that HELLO names, when it is the same identity's: parked, or still
/// held by a connection whose end we have not heard of.
wire::AnswerMemory Desk::take_over(Connection& from, const wire::Hello& hello,
                                   wire::Welcome& welcome) {
  const bool may = welcome.mode == wire::Want::Ask && !hello.session.empty() &&
                   (hello.features & wire::kFeatureRemember) != 0;
  if (!may) return {};
  const std::uint32_t uid = from.peer().identity.uid;
  drop_former(hello.session, uid);
  auto parked = store_.take(hello.session, uid, moment().now_ns);
  if (!parked) return {};
  welcome.resumed = true;
  welcome.session = hello.session;
  if (parked->row.index != 0 && janitor_.taken_over(parked->row, from.id())) {
    welcome.row_index = parked->row.index;
    welcome.row_generation = parked->row.generation;
  }
  return std::move(parked->memory);
}

/// The session it names is over: what its row still holds is to be presented now.
void Desk::note_former(Connection& from, const wire::Hello& hello) {
  const auto row = row_of_token(hello.session);
  const RowHolder* const holder = row ? janitor_.book().find(row->index) : nullptr;
  const PeerProcess& peer = from.peer();
  const bool its_own = holder != nullptr && peer.pid != 0 && holder->pid == peer.pid &&
                       holder->start_time == peer.start_time;
  if (its_own) janitor_.came_back(*row, moment().now_ns);
}

void Desk::drop_former(const std::string& token, std::uint32_t uid) {
  std::shared_ptr<Connection> former;
  for (const auto& [id, connection] : connections_) {
    const bool same = connection->notes.welcome && connection->notes.session == token &&
                      connection->peer().identity.uid == uid;
    if (same) former = connection;
  }
  if (former) former->drop();   // on_closed() parks what it remembers
}

/// Sessions that map the memory or remember answers have a row. Those that only look need none.
void Desk::give_row(Connection& from, const wire::Hello& hello, wire::Welcome& welcome) {
  welcome.session = random_id();
  std::memset(welcome.session.data(), 0, 2 * sizeof(std::uint32_t));
  const bool maps = welcome.mode == wire::Want::Map || welcome.mode == wire::Want::Row;
  const bool asks = welcome.mode == wire::Want::Ask &&
                    (hello.features & wire::kFeatureRemember) != 0 &&
                    (welcome.rights & wire::kRightUse) != 0;
  if (!maps && !asks) return;
  const auto token = maps ? row_of_token(hello.session) : std::nullopt;
  auto row = janitor_.attach({.peer = &from.peer(),
                              .pidfd = std::move(from.peer().pidfd),
                              .connection = from.id(),
                              .name = hello.client_name,
                              .token = token,
                              .comes_again = welcome.mode == wire::Want::Row,
                              .asks = asks});
  if (!row) {
    // Limits go on without a row; only the stripe of counters is shared then (C057).
    if (maps) welcome.why = row.error().text();
    return;
  }
  welcome.resumed = token && token->index == row->index && token->generation == row->generation;
  welcome.row_index = row->index;
  welcome.row_generation = row->generation;
  welcome.session = session_token(*row);
}

void Desk::need_row(Connection& from) {
  if (from.notes.row.index != 0) return;
  const bool returns = from.session().remembers();
  auto row = janitor_.attach({.peer = &from.peer(),
                              .pidfd = std::move(from.peer().pidfd),
                              .connection = from.id(),
                              .name = from.notes.name,
                              .token = {},
                              .asks = true,
                              .returns = returns});
  if (row) from.notes.row = *row;   // else its probes come back by their result or their deadline
}

void Desk::on_fault(Connection& from, const wire::PeerFault& fault) {
  const std::uint32_t uid = from.peer().identity.uid;
  if (fault.before_welcome && sources_.hello_failed(uid, moment().now_ns)) {
    log_.warn("uid {}: {} connections failed before their welcome within a minute; further ones "
              "are closed without an answer until it is over", uid, SourceBook::kMaxFailedHellos);
  }
  say_once(uid, fmt::format("pid {}: {}: {}", from.peer().pid, wire::name_of(fault.code),
                            fault.text));
}

void Desk::on_closed(Connection& from, bool said_bye) {
  const std::uint64_t now_ns = moment().now_ns;
  sources_.closed(from.peer().identity.uid);
  if (from.session().remembers() && !said_bye) {
    store_.park(from.notes.session, {.uid = from.peer().identity.uid,
                                     .row = from.notes.row,
                                     .until_ns = now_ns + kSessionGraceNs,
                                     .memory = from.session().take_memory()});
  }
  janitor_.connection_ended(from.id(), said_bye, now_ns, stopping_);
  asking_.line().soon();               // what it held may be somebody's in line
  connections_.erase(from.id());
  if (connections_.empty() && when_empty_) when_empty_();
}

void Desk::tick() {
  push_events();
  top_keys_.tick();
  const wire::Moment now = moment();
  for_each_connection([&](Connection& connection) { connection.tick(now); });
  store_.tick(now.now_ns);
}

void Desk::each_minute() { sources_.forget_quiet(moment().now_ns); }

void Desk::reconfigured() {
  sources_.set_bounds(source_bounds(running_.config));
  for_each_connection([&](Connection& connection) {
    if (!connection.notes.welcome) return;
    const config::Peer& peer = connection.peer().identity;
    const bool lost = (connection.notes.rights & ~rights_of(peer, running_.config.access)) != 0;
    const bool may_map = connection.notes.mode != wire::Want::Map ||
                         running_.config.access.allows(config::Right::Map, peer);
    if (!lost && may_map) return;
    log_.info("uid {} (pid {}) lost rights by the reload: its session ends", peer.uid,
              connection.peer().pid);
    memory_.note(shm::EventKind::RightsChanged, peer.uid, connection.notes.name);
    connection.go_away(wire::GoawayReason::RightsChanged, "your rights were changed: connect anew");
  });
}

void Desk::memory_replaced() {
  asking_.decider().memory_replaced();
  asking_.line().memory_replaced(moment().now_ns);
  feed_ = EventFeed(memory_.view());
  for_each_connection([&](Connection& connection) {
    if (!maps_memory(connection.notes.mode) && !connection.notes.mapped) return;
    connection.go_away(wire::GoawayReason::SupersededMemory,
                       "the memory was replaced: attach anew");
  });
}

void Desk::shut_down() {
  stopping_ = true;
  for_each_connection([](Connection& connection) { connection.shut_down(); });
}

void Desk::say_once(std::uint32_t uid, std::string_view text) {
  const SourceBook::Say say = sources_.may_log(uid, moment().now_ns);
  if (!say.now) return;
  if (say.unsaid == 0) log_.warn("uid {}: {}", uid, text);
  else log_.warn("uid {}: {} ({} more since the last line about this uid)", uid, text, say.unsaid);
}

std::string Desk::who(const Connection& from) const {
  return fmt::format("uid {} (pid {})", from.peer().identity.uid, from.peer().pid);
}

void Desk::add_clients(rows::Rows& clients) const {
  std::map<std::uint64_t, const Connection*> by_row;
  for (const auto& [id, connection] : connections_) {
    if (connection->notes.row.index != 0) by_row[connection->notes.row.index] = connection.get();
  }
  for (wire::Value& row : clients) {
    const auto index = row.find("row")->as_unsigned().value_or(0);
    const RowHolder* holder = janitor_.book().find(static_cast<std::uint32_t>(index));
    row.set("watched", holder != nullptr && holder->watched ? "pidfd" : "connection");
    const auto found = by_row.find(index);
    if (found == by_row.end()) continue;
    row.set("connection", found->second->id());
    row.set("mode", word_of(found->second->notes.mode));
  }
  for (const auto& [id, connection] : connections_) {
    if (connection->notes.row.index != 0 || !connection->notes.welcome) continue;
    const Connection::Notes& notes = connection->notes;
    clients.push_back(wire::Value::map(
        {{"row", 0}, {"generation", 0}, {"kind", "session"}, {"state", "live"},
         {"pid", connection->peer().pid}, {"uid", connection->peer().identity.uid},
         {"name", notes.name}, {"attached_ns", static_cast<std::uint64_t>(notes.since_ns)},
         {"watched", "connection"}, {"connection", id}, {"mode", word_of(notes.mode)},
         {"why", notes.why}}));
  }
}

}  // namespace cutwater::server
