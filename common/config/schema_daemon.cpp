// SPDX-License-Identifier: Apache-2.0
// The rows of the daemon itself: instance, listen, access, capacity.
#include "config/schema_table.hpp"

namespace cutwater::config {
namespace {

using T = const Target&;
using V = const Parsed&;

constexpr std::uint64_t kSecond = rule::kNanosPerSecond;
constexpr std::uint64_t kKiB = 1024;

template <Principals Access::* List>
void store_users(T t, V v) {
  (t.config.access.*List).users = v.ids;
  (t.config.access.*List).everybody |= v.everybody;
}

template <Principals Access::* List>
void store_groups(T t, V v) {
  (t.config.access.*List).groups = v.ids;
  (t.config.access.*List).everybody |= v.everybody;
}

// clang-format off
const Key kRows[] = {
  {.block = "instance", .name = "name", .kind = Kind::Name, .fallback = "main",
   .reload = Reload::Start, .help = "Name of this instance; part of paths, told to every client.",
   .store = [](T t, V v) { t.config.instance.name = v.text; }},
  {.block = "instance", .name = "memory-directory", .kind = Kind::Place, .max = 4095,
   .words = "auto", .fallback = "auto", .reload = Reload::Start,
   .help = "Where the memory files live. auto: the first of $RUNTIME_DIRECTORY, "
           "/run/cutwater/NAME, $XDG_RUNTIME_DIR/cutwater/NAME and /dev/shm/cutwater-UID/NAME "
           "that is tmpfs and ours.",
   .store = [](T t, V v) { t.config.instance.memory_directory = v.text; }},
  {.block = "instance", .name = "clock", .kind = Kind::Choice, .words = "boottime tsc",
   .fallback = "boottime", .reload = Reload::Start,
   .help = "Clock of all decisions. tsc only where the counter is invariant and calibrated.",
   .store = [](T t, V v) { t.config.instance.clock = narrow<Clock>(v); },
   .trap_word = "stepped",
   .trap_text = "a stepped clock is for tests; start the daemon with --clock=stepped instead"},
  {.block = "instance", .name = "lock-memory", .kind = Kind::LockMemory, .words = "auto true false",
   .fallback = "auto", .reload = Reload::Start,
   .help = "Keep the state in RAM (mlock). auto: when the limit of the system allows it.",
   .store = [](T t, V v) { t.config.instance.lock_memory = narrow<LockMemory>(v); }},
  {.block = "instance", .name = "huge-pages", .kind = Kind::Choice, .words = "auto always never",
   .fallback = "auto", .reload = Reload::Start, .help = "Huge pages for the memory files.",
   .store = [](T t, V v) { t.config.instance.huge_pages = narrow<HugePages>(v); }},
  {.block = "instance", .name = "initial-after-damage", .kind = Kind::Choice, .words = "full empty",
   .fallback = "empty", .reload = Reload::Live,
   .help = "What limits start with when a damaged memory had to be given up. "
           "full may admit up to one burst too many for each key.",
   .store = [](T t, V v) { t.config.instance.initial_after_damage = narrow<rule::Initial>(v); }},
  {.block = "instance", .name = "state-directory", .kind = Kind::Place, .max = 4095,
   .words = "auto off", .fallback = "auto", .reload = Reload::Start,
   .help = "Where bans, overrides and credits made by hand are kept over a reboot. auto: the first "
           "of $STATE_DIRECTORY, /var/lib/cutwater/NAME and $XDG_STATE_HOME/cutwater/NAME. "
           "off: they end with the memory.",
   .store = [](T t, V v) { t.config.instance.state_directory = v.text; }},
  {.block = "instance", .name = "remember-keys", .kind = Kind::Bool, .fallback = "false",
   .reload = Reload::Start,
   .help = "Keep the readable name of each key in debt for people, of limits whose show-keys "
           "is shown: `cutwaterctl limit keys`. 96 bytes more for each of capacity.keys. Of a key "
           "over 39 bytes the first 31.",
   .store = [](T t, V v) { t.config.instance.remember_keys = v.number != 0; }},
  {.block = "instance", .name = "watch-file", .kind = Kind::Bool, .fallback = "true",
   .help = "Take over a changed file by itself, also when a link to it is swapped.",
   .store = [](T t, V v) { t.config.instance.watch_file = v.number != 0; }},
  {.block = "instance", .name = "drain", .kind = Kind::Duration, .max = 600 * kSecond,
   .fallback = "10s", .help = "Time for open requests when the daemon ends.",
   .store = [](T t, V v) { t.config.instance.drain_ns = v.number; }},
  {.block = "instance", .name = "enabled", .kind = Kind::Enabled, .words = "fallback",
   .fallback = "true",
   .help = "false: breakers and bulkheads let everything through, for an emergency; limits have "
           "mode: shadow. [fallback]: fallbacks stay on.",
   .store = [](T t, V v) { t.config.instance.enabled = v.number != 0; }},

  {.block = "listen", .name = "max-connections", .kind = Kind::Count, .min = 1, .max = 65536,
   .fallback = "1024", .help = "Connections at once; beyond, a new one is refused.",
   .store = [](T t, V v) { t.config.listen.max_connections = narrow<std::uint32_t>(v); }},
  {.block = "listen", .name = "max-connections-per-peer", .kind = Kind::Count, .min = 1,
   .max = 65536, .fallback = "256", .help = "Of them at once by one user.",
   .store = [](T t, V v) { t.config.listen.max_connections_per_peer = narrow<std::uint32_t>(v); }},
  {.block = "listen", .name = "max-frame", .kind = Kind::Size, .min = 4 * kKiB, .max = 1024 * kKiB,
   .fallback = "64KiB", .help = "Longest message a peer may send.",
   .store = [](T t, V v) { t.config.listen.max_frame = narrow<std::uint32_t>(v); }},
  {.block = "listen", .name = "credit-items", .kind = Kind::Count, .min = 16, .max = 65536,
   .fallback = "1024", .help = "Questions of one connection that may be unanswered.",
   .store = [](T t, V v) { t.config.listen.credit_items = narrow<std::uint32_t>(v); }},
  {.block = "listen", .name = "credit-bytes", .kind = Kind::Size, .min = 4 * kKiB,
   .max = 65536 * kKiB, .fallback = "256KiB",
   .help = "Bytes of questions of one connection that may be unanswered; at least max-frame.",
   .store = [](T t, V v) { t.config.listen.credit_bytes = narrow<std::uint32_t>(v); }},
  {.block = "listen", .name = "max-unsent", .kind = Kind::Size, .min = 64 * kKiB,
   .max = 262144 * kKiB, .fallback = "1MiB",
   .help = "Answers a connection may leave untaken before it is closed.",
   .store = [](T t, V v) { t.config.listen.max_unsent = narrow<std::uint32_t>(v); }},
  {.block = "listen", .name = "hello-timeout", .kind = Kind::Duration, .min = kSecond / 10,
   .max = 600 * kSecond, .fallback = "2s", .help = "Time for the first message of a connection.",
   .store = [](T t, V v) { t.config.listen.hello_timeout_ns = v.number; }},
  {.block = "listen", .name = "idle-timeout", .kind = Kind::Duration, .min = kSecond,
   .max = 86400 * kSecond, .fallback = "5m",
   .help = "A connection that only asks and is silent for so long is closed.",
   .store = [](T t, V v) { t.config.listen.idle_timeout_ns = v.number; }},
  {.block = "listen.unix", .name = "path", .kind = Kind::Place, .max = 107, .words = "auto off",
   .fallback = "auto", .reload = Reload::Start,
   .help = "The daemon's socket. auto: cutwater.sock in the runtime folder. "
           "off: nobody can attach.",
   .store = [](T t, V v) { t.config.listen.unix_path = v.text; }},
  {.block = "listen.unix", .name = "mode", .kind = Kind::Mode, .fallback = "0660",
   .reload = Reload::Start, .help = "Permission bits of the socket, octal.",
   .store = [](T t, V v) { t.config.listen.unix_mode = narrow<std::uint32_t>(v); }},
  {.block = "listen.unix", .name = "group", .kind = Kind::Group, .fallback = "cutwater-clients",
   .reload = Reload::Start,
   .help = "Group of the socket, name or number. The default is left out where it does not exist.",
   .store = [](T t, V v) {
     if (v.known) t.config.listen.unix_group = narrow<std::uint32_t>(v);
   }},

  {.block = "access.map", .name = "users", .kind = Kind::Users, .fallback = "[]",
   .help = "Users who may map the memory and decide in it, names or numbers, \"*\" for everybody "
           "who reaches the socket. They are trusted: they can write the shared state. Implies "
           "ask and look.",
   .store = store_users<&Access::map>},
  {.block = "access.map", .name = "groups", .kind = Kind::Groups, .fallback = "[cutwater-clients]",
   .help = "Groups who may. Empty by default once access.map is written; a default group is left "
           "out where it does not exist.",
   .store = store_groups<&Access::map>},
  {.block = "access.ask", .name = "users", .kind = Kind::Users, .fallback = "[]",
   .help = "Users who may decide over the socket.", .store = store_users<&Access::ask>},
  {.block = "access.ask", .name = "groups", .kind = Kind::Groups, .fallback = "[cutwater-clients]",
   .help = "Groups who may.", .store = store_groups<&Access::ask>},
  {.block = "access.look", .name = "users", .kind = Kind::Users, .fallback = "[]",
   .help = "Users who may read: status, limits, events.", .store = store_users<&Access::look>},
  {.block = "access.look", .name = "groups", .kind = Kind::Groups, .fallback = "[cutwater-clients]",
   .help = "Groups who may.", .store = store_groups<&Access::look>},
  {.block = "access.steer", .name = "users", .kind = Kind::Users, .fallback = "[root]",
   .help = "Users who may change: reset, ban, reload. root and the daemon's user always may.",
   .store = store_users<&Access::steer>},
  {.block = "access.steer", .name = "groups", .kind = Kind::Groups, .fallback = "[]",
   .help = "Groups who may.", .store = store_groups<&Access::steer>},

  {.block = "capacity", .name = "keys", .kind = Kind::Count, .min = 1024, .max = kMaxKeys,
   .fallback = "262144", .reload = Reload::Capacity,
   .help = "Places for keys in debt; 32 bytes each. A key that has its whole burst takes none.",
   .store = [](T t, V v) { t.config.capacity.keys = narrow<std::uint32_t>(v); }},
  {.block = "capacity", .name = "limits", .kind = Kind::Count, .min = 1, .max = kMaxLimits,
   .fallback = "256", .reload = Reload::Capacity, .help = "Limits; about 1.8 KB each.",
   .store = [](T t, V v) { t.config.capacity.limits = narrow<std::uint32_t>(v); }},
  {.block = "capacity", .name = "overrides", .kind = Kind::Count, .max = 1 << 20,
   .fallback = "4096", .reload = Reload::Capacity,
   .help = "Keys with an override or a ban, from the file or by hand; 64 bytes each.",
   .store = [](T t, V v) { t.config.capacity.overrides = narrow<std::uint32_t>(v); }},
  {.block = "capacity", .name = "processes", .kind = Kind::Count, .min = 16, .max = 65533,
   .fallback = "1024", .reload = Reload::Capacity,
   .help = "Rows of processes and connections; 128 bytes each.",
   .store = [](T t, V v) { t.config.capacity.processes = narrow<std::uint32_t>(v); }},
  {.block = "capacity", .name = "stripes", .kind = Kind::Count, .min = 1, .max = 4096,
   .fallback = "32", .reload = Reload::Capacity,
   .help = "Sets of counters with one writer thread each; threads beyond share one.",
   .store = [](T t, V v) { t.config.capacity.stripes = narrow<std::uint32_t>(v); }},
  {.block = "capacity", .name = "events", .kind = Kind::Count, .min = 1024, .max = 1 << 20,
   .fallback = "4096", .reload = Reload::Capacity, .help = "Last events kept; 64 bytes each.",
   .store = [](T t, V v) { t.config.capacity.events = narrow<std::uint32_t>(v); }},
  {.block = "capacity", .name = "breakers", .kind = Kind::Count, .max = 65535, .fallback = "80",
   .reload = Reload::Capacity,
   .help = "Breakers; a pattern is its max-instances and one. Not written: what the blocks need, "
           "at least 80, in which a first pattern as it comes finds room beside 15 others.",
   .store = [](T t, V v) { t.config.capacity.breakers = narrow<std::uint32_t>(v); }},
  {.block = "capacity", .name = "breaker-memory", .kind = Kind::Size, .max = 1 << 30,
   .fallback = "512KiB", .reload = Reload::Capacity,
   .help = "Windows, half-open places and users of breakers: a window of 100 takes 2112 bytes, a "
           "place 16, a user 64 once three processes use it. Not written: what the breakers need, "
           "up to 16 MiB, at least 512 KiB.",
   .store = [](T t, V v) { t.config.capacity.breaker_memory = v.number; }},
  {.block = "capacity", .name = "bulkheads", .kind = Kind::Count, .max = 65535, .fallback = "80",
   .reload = Reload::Capacity,
   .help = "Bulkheads; a pattern is its max-instances and one. Not written: what the blocks need, "
           "at least 80.",
   .store = [](T t, V v) { t.config.capacity.bulkheads = narrow<std::uint32_t>(v); }},
  {.block = "capacity", .name = "bulkhead-cells", .kind = Kind::Count, .max = 1 << 20,
   .fallback = "4096", .reload = Reload::Capacity,
   .help = "Places of all bulkheads together; 16 bytes each. Not written: what the blocks need, at "
           "least 4096.",
   .store = [](T t, V v) { t.config.capacity.bulkhead_cells = narrow<std::uint32_t>(v); }},
  {.block = "capacity", .name = "waiters", .kind = Kind::Count, .max = 1 << 18,
   .fallback = "1024", .reload = Reload::Capacity,
   .help = "Calls in line at all bulkheads together; 64 bytes each. Not written: what the blocks "
           "need, at least 1024.",
   .store = [](T t, V v) { t.config.capacity.waiters = narrow<std::uint32_t>(v); }},
  {.block = "capacity", .name = "trips", .kind = Kind::Count, .max = 65536, .fallback = "1024",
   .reload = Reload::Capacity, .help = "Last openings kept with their causes, for `breaker why`.",
   .store = [](T t, V v) { t.config.capacity.trips = narrow<std::uint32_t>(v); }},
  {.block = "capacity", .name = "tops", .kind = Kind::Count, .max = 4096, .fallback = "64",
   .reload = Reload::Capacity,
   .help = "Keys of each limit that the list of most refused and most asking ones can hold; 0: no "
           "list.",
   .store = [](T t, V v) { t.config.capacity.tops = narrow<std::uint32_t>(v); }},
};
// clang-format on

}  // namespace

std::span<const Key> daemon_rows() { return kRows; }

}  // namespace cutwater::config
