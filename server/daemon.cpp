// SPDX-License-Identifier: Apache-2.0
#include "daemon.hpp"

#include <algorithm>
#include <csignal>

#include <sys/resource.h>
#include <unistd.h>

#include <asio.hpp>

#include <cutwater/version.hpp>

#include "desk.hpp"
#include "listener.hpp"
#include "notify.hpp"

namespace cutwater::server {

namespace {

constexpr std::chrono::milliseconds kTick{100};
/// How long GOAWAY may take to reach those who listen.
constexpr std::chrono::milliseconds kFarewell{500};

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
  return access.map.everybody || !access.map.groups.empty() ||
         std::any_of(access.map.users.begin(), access.map.users.end(), is_other);
}

struct Daemon::Parts {
  Parts(config::Config config, ConfigSource source, const Surroundings& around,
        std::unique_ptr<Memory> of, Log& to)
      : log(to),
        memory(std::move(of)),
        notifier(around.notify_socket, around.watchdog_usec, around.watchdog_pid),
        running{std::move(config), {}, std::move(source)},
        janitor(loop, *memory, log),
        reloader(loop, *memory, running, log),
        steering(*memory, reloader, log),
        desk(*memory, janitor, running, steering, log),
        reader(*memory, running,
               {.fill = [this] { return janitor.fill(); },
                .add_status = [this](wire::Value& row) { add_status(row); },
                .add_clients = [this](rows::Rows& rows) { desk.add_clients(rows); }}),
        signals(loop, SIGTERM, SIGINT, SIGHUP),
        timer(loop),
        farewell(loop) {
    running.reserved = running.config.capacity;
    signals.add(SIGUSR1);
    desk.set_reader(&reader);
    reloader.on_published([this] { janitor.rules_published(); });
  }

  void add_status(wire::Value& row);
  asio::awaitable<void> tick();
  asio::awaitable<void> obey_signals();
  void reload();
  void stop();

  Log& log;
  asio::io_context loop{1};
  std::unique_ptr<Memory> memory;
  Notifier notifier;
  Running running;
  Janitor janitor;
  Reloader reloader;
  Steering steering;
  Desk desk;
  Reader reader;
  std::unique_ptr<Listener> listener;   // none: listen.unix.path is off
  asio::signal_set signals;
  asio::steady_timer timer, farewell;
  SocketSettings socket;
  bool stopping = false;
};

Daemon::Daemon(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Daemon::~Daemon() = default;
const std::string& Daemon::socket_path() const noexcept { return parts_->socket.path; }

Result<std::unique_ptr<Daemon>> Daemon::start(config::Config config, ConfigSource source,
                                              const Surroundings& around, bool stepped, Log& log) {
  raise_descriptor_limit();
  std::vector<std::string> remarks;
  auto memory = Memory::open(config,
                             {.stepped = stepped,
                              .runtime_directory = around.runtime_directory,
                              .xdg_runtime_dir = around.xdg_runtime_dir},
                             remarks);
  if (!memory) return memory.error();
  Memory& of = **memory;
  for (const std::string& remark : remarks) log.info("{}", remark);
  switch (of.birth()) {
    case Birth::Kind::Fresh: log.info("memory in {}: made anew", of.path()); break;
    case Birth::Kind::Adopted:
      log.info("memory in {}: adopted, nothing is forgotten", of.path());
      break;
    case Birth::Kind::AnotherBoot:
      log.warn("memory in {}: made anew: {}", of.path(), of.birth_reason());
      break;
    case Birth::Kind::SetAside:
      log.error("memory in {}: made anew; what was found is kept as *.bad and was not usable: {}",
                of.path(), of.birth_reason());
      of.note(shm::EventKind::Damage, 0, "old memory set aside");
      break;
  }
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
                                       std::move(*memory), log);
  Parts& all = *parts;
  if (of.birth() == Birth::Kind::Adopted) {
    const auto rows = all.janitor.adopt_rows(all.desk.moment().now_ns);
    log.info("{} processes are attached still, {} rows of ended ones were given back", rows.kept,
             rows.reaped);
  }
  if (socket) {
    all.socket = settings;
    all.listener = std::make_unique<Listener>(all.loop, std::move(*socket), log,
                                              [&all](Listener::Socket accepted) {
                                                all.desk.accepted(std::move(accepted));
                                              });
  }
  const bool adopted = of.birth() == Birth::Kind::Adopted;
  of.note(adopted ? shm::EventKind::DaemonTookOver : shm::EventKind::DaemonStarted,
          static_cast<std::uint32_t>(::getpid()), kVersion);
  return std::unique_ptr<Daemon>(new Daemon(std::move(parts)));
}

ExitCode Daemon::run() {
  Parts& all = *parts_;
  asio::co_spawn(all.loop, all.tick(), asio::detached);
  asio::co_spawn(all.loop, all.obey_signals(), asio::detached);
  if (all.listener) all.listener->start();
  const std::string status = fmt::format(
      "{} limits, memory in {}, socket {}", all.running.config.limits.size(), all.memory->path(),
      all.listener ? all.socket.path : std::string("off"));
  all.log.info("cutwaterd {} is ready: {}", kVersion, status);
  all.notifier.ready(status);
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
    if (listener && ticks % Janitor::kTicksPerSecond == 0) listener->keep_in_place(socket);
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

asio::awaitable<void> Daemon::Parts::obey_signals() {
  while (true) {
    std::error_code error;
    const int signal =
        co_await signals.async_wait(asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return;
    if (signal == SIGHUP) {
      reload();
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

void Daemon::Parts::reload() {
  notifier.reloading();
  reloader.request(false, [this](const Verdict& verdict) {
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
  farewell.expires_after(kFarewell);
  farewell.async_wait([this](std::error_code) { loop.stop(); });
}

}  // namespace cutwater::server
