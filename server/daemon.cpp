// SPDX-License-Identifier: Apache-2.0
#include "daemon.hpp"

#include <algorithm>
#include <csignal>

#include <sys/resource.h>
#include <unistd.h>

#include <asio.hpp>
#include <cutwater/version.hpp>

#include "acts/act_rows.hpp"
#include "acts/acts.hpp"
#include "desk.hpp"
#include "file_watch.hpp"
#include "listener.hpp"
#include "notify.hpp"
#include "rethrow.hpp"

namespace cutwater::server {

namespace {

constexpr std::chrono::milliseconds kTick{100};

/// Connections, pidfds and rows need descriptors: as many as we may have.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
}

SocketSettings socket_settings(const config::Config& config, const std::string& memory_directory) {
  SocketSettings settings;
  settings.mode = config.listen.unix_mode;
  settings.group = config.listen.unix_group;
  const bool automatic = config.listen.unix_path == "auto";
  const bool others = others_must_reach(config.access);
  settings.own_directory = automatic && others;
  settings.path = automatic ? socket_path_for(memory_directory, others) : config.listen.unix_path;
  return settings;
}

}  // namespace

bool others_must_reach(const config::Access& access) noexcept {
  const auto is_other = [&](std::uint32_t uid) { return uid != 0 && uid != access.daemon_uid; };
  const auto lets_in_others = [&](const config::Principals* list) {
    return list->everybody || !list->groups.empty() ||
           std::any_of(list->users.begin(), list->users.end(), is_other);
  };
  const std::array lists{&access.map, &access.ask, &access.look, &access.steer};
  return std::any_of(lists.begin(), lists.end(), lets_in_others);
}

struct Daemon::Parts {
  /// What there is before the memory.
  struct Base {
    std::unique_ptr<asio::io_context> loop = std::make_unique<asio::io_context>(1);
    std::unique_ptr<Acts> acts;
    std::unique_ptr<Memory> memory;
  };
  Parts(config::Config config, ConfigSource source, const Surroundings& around, Base base, Log& to)
      : log(to),
        loop_owner(std::move(base.loop)),
        loop(*loop_owner),
        memory(std::move(base.memory)),
        acts(std::move(base.acts)),
        notifier(around.notify_socket, around.watchdog_usec, around.watchdog_pid),
        running{std::move(config), {}, std::move(source)},
        janitor(loop, *memory, log),
        reloader(loop, *memory, running, log),
        steering(*memory, running, reloader, *acts, log),
        desk(*memory, janitor, running, steering, log),
        reader(*memory, running,
               {.fill = [this] { return janitor.fill(); },
                .add_status = [this](wire::Value& row) { add_status(row); },
                .add_clients = [this](rows::Rows& rows) { desk.add_clients(rows); },
                .overrides = [this] {
                  return override_rows(memory->view(), acts->book(),
                                       acts->effective(running.config.limits));
                },
                .book = [this]() -> const ActBook& { return acts->book(); }}),
        signals(loop, SIGTERM, SIGINT, SIGHUP),
        timer(loop),
        farewell(loop) {
    running.reserved = running.config.capacity;
    signals.add(SIGUSR1);
    desk.set_reader(&reader);
    desk.set_when_empty([this] { if (stopping) loop.stop(); });
    reloader.on_published([this] { published(); });
    reloader.set_effective([this](const Reloader::Limits& limits) {
      return acts->effective(limits);
    });
    acts->begin(*memory, running,
                [this](auto limits, auto done) {
                  reloader.republish(std::move(limits), std::move(done));
                },
                [this] { janitor.rules_published(); });
  }

  void add_status(wire::Value& row);
  asio::awaitable<void> tick();
  void give_names_back();
  asio::awaitable<void> obey_signals();
  void published();
  void watch_file();
  void reload(Reloader::Origin origin);
  void stop();

  Log& log;
  std::unique_ptr<asio::io_context> loop_owner;
  asio::io_context& loop;
  std::unique_ptr<Memory> memory;
  std::unique_ptr<Acts> acts;
  Notifier notifier;
  Running running;
  Janitor janitor;
  Reloader reloader;
  Steering steering;
  Desk desk;
  Reader reader;
  std::unique_ptr<Listener> listener;   // none: listen.unix.path is off
  std::unique_ptr<FileWatch> file_watch;
  asio::signal_set signals;
  asio::steady_timer timer, farewell;
  SocketSettings socket;
  std::uint64_t name_tries = 0;        ///< seconds that the memory's names have been lost
  bool stopping = false;
};

Daemon::Daemon(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Daemon::~Daemon() = default;
const std::string& Daemon::socket_path() const noexcept { return parts_->socket.path; }

namespace {

/// With the manual acts on top of the configuration; without them, when it cannot be with them:
/// what an operator once did must not keep the daemon from starting.
Result<std::unique_ptr<Memory>> open_memory(const config::Config& config, const Acts& acts,
                                            const MemoryPlan& plan,
                                            std::vector<std::string>& remarks, Log& log) {
  config::Config effective = config;
  effective.limits = acts.effective(config.limits);
  auto memory = Memory::open(effective, plan, remarks);
  const bool acts_are_wrong = !memory && memory.error().code() == Errc::InvalidArgument &&
                              effective.limits != config.limits;
  if (!acts_are_wrong) return memory;
  log.error("the manual acts of the journal are not in force: {}", memory.error().text());
  return Memory::open(config, plan, remarks);
}

/// What a memory of another size took over from the one before.
void tell_move(Memory& of, Log& log) {
  const shm::CopyReport& copied = of.copied();
  log.info("memory in {}: moved into one of another size, nothing is forgotten ({}): {} keys in "
           "debt, {} bans; debts of {} more keys went to what their limit's keys without a place "
           "share; processes attach anew by themselves",
           of.path(), of.birth_reason(), copied.entries, copied.bans, copied.shared);
  if (copied.bans_lost > 0) {
    log.error("{} bans found no place in the smaller memory: raise capacity.keys and ban anew what "
              "the journal does not hold", copied.bans_lost);
  }
  of.note(shm::EventKind::DaemonTookOver, static_cast<std::uint32_t>(copied.entries),
          "moved to another size");
}

void tell_birth(Memory& of, Log& log) {
  switch (of.birth()) {
    case Birth::Kind::Fresh: log.info("memory in {}: made anew", of.path()); break;
    case Birth::Kind::Adopted:
      log.info("memory in {}: adopted, nothing is forgotten", of.path());
      break;
    case Birth::Kind::Moved: tell_move(of, log); break;
    case Birth::Kind::AnotherBoot:
      log.warn("memory in {}: made anew: {}", of.path(), of.birth_reason());
      break;
    case Birth::Kind::SetAside:
      log.error("memory in {}: made anew; what was found is kept as *.bad and was not usable: {}",
                of.path(), of.birth_reason());
      of.note(shm::EventKind::Damage, 0, "old memory set aside");
      break;
  }
}

}  // namespace

Result<std::unique_ptr<Daemon>> Daemon::start(config::Config config, ConfigSource source,
                                              const Surroundings& around, bool stepped, Log& log) {
  raise_descriptor_limit();
  Parts::Base base;
  base.acts = std::make_unique<Acts>(
      Journal::open(*base.loop, {.setting = config.instance.state_directory,
                                 .instance = config.instance.name,
                                 .state_directory = around.state_directory,
                                 .xdg_state_home = around.xdg_state_home}),
      log);
  std::vector<std::string> remarks;
  const MemoryPlan plan{.stepped = stepped,
                        .runtime_directory = around.runtime_directory,
                        .xdg_runtime_dir = around.xdg_runtime_dir};
  auto memory = open_memory(config, *base.acts, plan, remarks, log);
  if (!memory) return memory.error();
  Memory& of = **memory;
  base.memory = std::move(*memory);
  for (const std::string& remark : remarks) log.info("{}", remark);
  tell_birth(of, log);
  if (config.instance.clock == config::Clock::Tsc && !stepped && !of.tsc()) {
    log.warn("instance.clock: tsc takes effect when the memory is next made anew");
  }
  std::optional<SocketFile> socket;
  const SocketSettings settings = socket_settings(config, of.path());
  if (config.listen.unix_path != "off") {
    auto listening = SocketFile::listen(settings);
    if (!listening) return listening.error();
    socket = std::move(*listening);
  }
  auto parts = std::make_unique<Parts>(std::move(config), std::move(source), around,
                                       std::move(base), log);
  Parts& all = *parts;
  if (of.inherits()) {
    const auto rows = all.janitor.adopt_rows(all.desk.moment().now_ns);
    if (of.birth() == Birth::Kind::Adopted) {
      log.info("{} processes are attached still, {} rows of ended ones were given back", rows.kept,
               rows.reaped);
    }
  }
  if (socket) {
    all.socket = settings;
    all.listener = std::make_unique<Listener>(all.loop, std::move(*socket), log,
                                              [&all](Listener::Socket accepted) {
                                                all.desk.accepted(std::move(accepted));
                                              });
  }
  of.note(of.inherits() ? shm::EventKind::DaemonTookOver : shm::EventKind::DaemonStarted,
          static_cast<std::uint32_t>(::getpid()), kVersion);
  return std::unique_ptr<Daemon>(new Daemon(std::move(parts)));
}

ExitCode Daemon::run() {
  Parts& all = *parts_;
  asio::co_spawn(all.loop, all.tick(), kRethrow);
  asio::co_spawn(all.loop, all.obey_signals(), kRethrow);
  if (all.listener) all.listener->start();
  if (all.listener && all.memory->inherits()) {
    // Whoever is attached offers its row when it reads the rules again: now somebody answers.
    all.memory->publisher().announce();
    all.janitor.rules_published();
  }
  const std::string status = fmt::format(
      "{} limits, memory in {}, socket {}", all.running.config.limits.size(), all.memory->path(),
      all.listener ? all.socket.path : std::string("off"));
  all.log.info("cutwaterd {} is ready: {}", kVersion, status);
  all.notifier.ready(status);
  all.watch_file();
  all.loop.run();
  all.log.info("ended as asked; the memory stays for the next daemon");
  return ExitCode::Ok;
}

void Daemon::Parts::add_status(wire::Value& row) {
  row.set("socket", listener ? socket.path : std::string("off"));
  row.set("connections", desk.connections());
  row.set("accepted", listener ? listener->accepted() : 0);
  row.set("accept_pauses", listener ? listener->pauses() : 0);
  row.set("refused", desk.refused());
  row.set("log_dropped", log.dropped());
  row.set("names_lost", janitor.names_lost());
  row.set("rules_repaired", janitor.repairs());
  row.set("journal", acts->journal().path());
  if (acts->journal().path().empty()) row.set("journal_why_not", acts->journal().why_not());
  row.set("manual_acts", acts->book().standing().size());
  row.set("acts_unsaved", acts->book().unsaved());
  if (!acts->journal_fault().empty()) row.set("journal_fault", acts->journal_fault());
}

asio::awaitable<void> Daemon::Parts::tick() {
  const auto watchdog_period = notifier.watchdog_period();
  auto watchdog_due = std::chrono::steady_clock::now();
  for (std::uint64_t ticks = 1; !stopping; ++ticks) {
    timer.expires_after(kTick);
    std::error_code error;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
    if (error || stopping) co_return;
    janitor.tick(desk.moment().now_ns);
    reloader.tick(desk.moment().now_ns);
    desk.tick();
    if (ticks % Janitor::kTicksPerSecond == 0) {
      if (listener) listener->keep_in_place(socket);
      give_names_back();
      acts->tick();
    }
    if (ticks % Janitor::kTicksPerMinute == 0) {
      desk.each_minute();
      log.flush_repeats();
    }
    const auto now = std::chrono::steady_clock::now();
    if (watchdog_period && now >= watchdog_due) {
      notifier.watchdog();
      watchdog_due = now + *watchdog_period;
    }
  }
}

/// A memory without its names would be lost to the next daemon: it moves to files that have them.
/// Tried at once, then each minute; each second while nobody decides.
void Daemon::Parts::give_names_back() {
  if (!janitor.names_lost()) {
    name_tries = 0;
    return;
  }
  if (name_tries++ % 60 != 0 && !memory->superseded()) return;
  auto moved = memory->move_to_named_files();
  if (!moved) {
    log.error("the memory in {} cannot be moved to files with its names: {}; {}, and the next "
              "daemon will not find this memory", memory->path(), moved.error().text(),
              memory->superseded() ? "nobody decides in it, tried again each second"
                                   : "all go on in it, tried again each minute");
    return;
  }
  name_tries = 0;
  janitor.memory_replaced();
  desk.memory_replaced();
  log.info("memory in {}: moved to newly named files, nothing is forgotten: {} keys in debt, {} "
           "bans for a time (all others stand in the rules); debts of {} more keys went to what "
           "their limit's keys without a place share; processes attach anew by themselves",
           memory->path(), moved->entries, moved->bans, moved->shared);
  memory->note(shm::EventKind::DaemonTookOver, static_cast<std::uint32_t>(::getpid()),
               "moved to new names");
}

asio::awaitable<void> Daemon::Parts::obey_signals() {
  while (true) {
    std::error_code error;
    const int signal =
        co_await signals.async_wait(asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return;
    if (signal == SIGHUP) {
      reload(Reloader::Origin::Asked);
    } else if (signal == SIGUSR1) {
      log.reopen();
      log.info("log opened anew");
    } else if (stopping) {
      loop.stop();
    } else {
      log.info("signal {}: ending", signal);
      stop();
    }
  }
}

/// Another configuration, or other manual acts, are in force.
void Daemon::Parts::published() {
  janitor.rules_published();
  acts->look_at_breakers();
  desk.reconfigured();
  watch_file();
}

/// The watch stays when `watch-file` is switched off: ending its thread could wait for a disk.
void Daemon::Parts::watch_file() {
  const bool wanted = running.config.instance.watch_file && !running.source.file.empty();
  if (!wanted || file_watch) return;
  file_watch = std::make_unique<FileWatch>(loop, running.source.file, [this] {
    if (!running.config.instance.watch_file || stopping) return;
    log.debug("{} changed", running.source.file);
    reload(Reloader::Origin::Watched);
  }, FileWatch::kLookEvery, running.source.fingerprint);
  if (!file_watch->why_slow().empty()) {
    log.warn("changes of {} are noticed only every {} s: {}", running.source.file,
             FileWatch::kLookEvery.count() / 1000, file_watch->why_slow());
  }
}

void Daemon::Parts::reload(Reloader::Origin origin) {
  notifier.reloading();
  reloader.request(origin, [this](const Verdict& verdict) {
    notifier.ready(verdict.ok ? verdict.text
                              : "reload refused, the running configuration stays: see the log");
  });
}

void Daemon::Parts::stop() {
  stopping = true;
  notifier.stopping();
  timer.cancel();
  if (listener) listener->stop();
  desk.shut_down();
  memory->say_farewell();
  if (desk.connections() == 0) {
    loop.stop();
    return;
  }
  farewell.expires_after(std::chrono::nanoseconds(running.config.instance.drain_ns));
  farewell.async_wait([this](std::error_code) { loop.stop(); });
}

}  // namespace cutwater::server
