// SPDX-License-Identifier: Apache-2.0
#include "config/schema.hpp"

#include <algorithm>

#include "config/duration.hpp"
#include "config/words.hpp"

namespace cutwater::config {
namespace {

template <class Int>
Int narrow(const Parsed& value) { return static_cast<Int>(value.number); }

rule::WindowSettings& the_window(const Target& target) { return target.limit->windows.front(); }

using T = const Target&;
using V = const Parsed&;

// clang-format off
const Key kTable[] = {
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
           "who reaches the socket. They are trusted: they can write the shared state.",
   .store = [](T t, V v) {
     t.config.access.map.users = v.ids;
     t.config.access.map.everybody |= v.everybody;
   }},
  {.block = "access.map", .name = "groups", .kind = Kind::Groups, .fallback = "[cutwater-clients]",
   .help = "Groups who may. Empty by default once access.map is written; the default group is left "
           "out where it does not exist.",
   .store = [](T t, V v) {
     t.config.access.map.groups = v.ids;
     t.config.access.map.everybody |= v.everybody;
   }},

  {.block = "capacity", .name = "keys", .kind = Kind::Count, .min = 1024, .max = kMaxKeys,
   .fallback = "262144", .reload = Reload::Capacity,
   .help = "Places for keys in debt; 32 bytes each. A key that has its whole burst takes none.",
   .store = [](T t, V v) { t.config.capacity.keys = narrow<std::uint32_t>(v); }},
  {.block = "capacity", .name = "limits", .kind = Kind::Count, .min = 1, .max = kMaxLimits,
   .fallback = "256", .reload = Reload::Capacity, .help = "Limits; about 1.8 KB each.",
   .store = [](T t, V v) { t.config.capacity.limits = narrow<std::uint32_t>(v); }},
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

  {.block = kLimitBlock, .name = "rate", .kind = Kind::Rate,
   .help = "Required. Permits per period for each key: 10/s, 100/m, 1000/15m, 100 per minute, "
           "{ count: 100, per: 1m }.",
   .store = [](T t, V v) {
     the_window(t).rate_count = v.number;
     the_window(t).rate_period_ns = v.period_ns;
   }},
  {.block = kLimitBlock, .name = "burst", .kind = Kind::Count, .min = 1, .max = rule::kMaxBurst,
   .help = "Most permits at once. Default: the count of the rate (100/m: 100).",
   .store = [](T t, V v) { the_window(t).burst = v.number; }},
  {.block = kLimitBlock, .name = "initial", .kind = Kind::Choice, .words = "full empty",
   .fallback = "full", .help = "What a new key has; empty: filling since the limit was first set.",
   .store = [](T t, V v) { t.limit->initial = narrow<rule::Initial>(v); }},
  {.block = kLimitBlock, .name = "on-full", .kind = Kind::OnFull, .words = "share deny allow",
   .fallback = "share",
   .help = "When there is no place for a new key: share one overflow bucket, deny, or allow (then "
           "such keys are not limited).",
   .store = [](T t, V v) { t.limit->on_full = narrow<rule::OnFull>(v); }},
  {.block = kLimitBlock, .name = "on-change", .kind = Kind::Choice, .words = "keep-used additive",
   .fallback = "keep-used",
   .help = "What a changed rate or burst does to keys in debt: what they used stays used. "
           "additive is another word for it.",
   .store = [](T t, V) { t.limit->on_change = rule::OnChange::KeepUsed; }},
  {.block = kLimitBlock, .name = "max-wait", .kind = Kind::Duration, .max = rule::kMaxWaitNs,
   .fallback = "1h", .help = "Longest wait any caller is given a place in line for.",
   .store = [](T t, V v) { t.limit->max_wait_ns = v.number; }},
  {.block = kLimitBlock, .name = "max-waiting", .kind = Kind::Count, .max = rule::kMaxWaiting,
   .fallback = "1024", .help = "Callers asleep at once, in each process.",
   .store = [](T t, V v) { t.limit->max_waiting = narrow<std::uint32_t>(v); }},
  {.block = kLimitBlock, .name = "thread-lease", .kind = Kind::Lease, .min = 1,
   .max = rule::kMaxThreadLease, .words = "off", .fallback = "off",
   .help = "Permits a thread takes at once for very hot keys; at most a sixteenth of the burst.",
   .store = [](T t, V v) { t.limit->thread_lease = narrow<std::uint32_t>(v); }},
  {.block = kLimitBlock, .name = "note", .kind = Kind::Text, .max = rule::kMaxNoteLength,
   .help = "One line for people, shown by limit get.",
   .store = [](T t, V v) { t.limit->note = v.text; }},

  {.block = "log", .name = "level", .kind = Kind::Choice, .words = "trace debug info warn error",
   .fallback = "info", .help = "Least severe lines written. Keys of callers appear only at debug.",
   .store = [](T t, V v) { t.config.log.level = narrow<LogLevel>(v); }},
  {.block = "log", .name = "format", .kind = Kind::Choice, .words = "text json", .fallback = "text",
   .help = "Form of a line.",
   .store = [](T t, V v) { t.config.log.format = narrow<LogFormat>(v); }},
  {.block = "log", .name = "target", .kind = Kind::Target, .max = 4095, .words = "stderr",
   .fallback = "stderr", .help = "Where lines go: stderr or file:PATH; SIGUSR1 reopens a file.",
   .store = [](T t, V v) {
     t.config.log.file = v.text == "stderr" ? std::string() : v.text.substr(5);   // behind "file:"
   }},
  {.block = "log", .name = "queue", .kind = Kind::Count, .min = 256, .max = 65536,
   .fallback = "4096", .reload = Reload::Start,
   .help = "Lines that wait for the writer; beyond, lines are dropped and counted.",
   .store = [](T t, V v) { t.config.log.queue = narrow<std::uint32_t>(v); }},
};
// clang-format on

}  // namespace

std::span<const Key> schema() { return kTable; }

std::span<const Key> keys_of(std::string_view block) {
  const auto in_block = [&](const Key& key) { return key.block == block; };
  const Key* first = std::find_if(std::begin(kTable), std::end(kTable), in_block);
  const Key* last = std::find_if_not(first, std::end(kTable), in_block);
  return {first, last};
}

std::vector<std::string_view> blocks() {
  std::vector<std::string_view> found;
  for (const Key& key : kTable) {
    if (found.empty() || found.back() != key.block) found.push_back(key.block);
  }
  return found;
}

std::vector<std::string_view> children_of(std::string_view block) {
  std::vector<std::string_view> names;
  for (const Key& key : kTable) {
    std::string_view name = key.name;
    if (key.block != block) {
      std::string_view inner = key.block;
      if (!block.empty()) {
        const bool below = inner.size() > block.size() && inner[block.size()] == '.';
        if (!below || !inner.starts_with(block)) continue;
        inner.remove_prefix(block.size() + 1);
      }
      name = inner.substr(0, inner.find('.'));
    }
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

const Key* find_key(std::string_view block, std::string_view name) {
  for (const Key& key : keys_of(block)) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

std::string range_text(const Key& key) {
  const auto counts = [&] { return std::to_string(key.min) + ".." + std::to_string(key.max); };
  const auto words = split_words(key.words);
  switch (key.kind) {
    case Kind::Name: return "a name";
    case Kind::Choice:
    case Kind::LockMemory:
    case Kind::OnFull: return listing(words);
    case Kind::Count: return counts();
    case Kind::Lease: return "off or " + counts();
    case Kind::Duration: return "0.." + format_duration(key.max);
    case Kind::Rate: return "1 per 3660d..10000000/s";
    case Kind::Mode: return "octal 0..0777";
    case Kind::Place: return "an absolute path, " + listing(words);
    case Kind::Target: return "stderr or file:PATH";
    case Kind::Text: return "one line of at most " + std::to_string(key.max) + " bytes";
    case Kind::Group: return "a group, name or number";
    case Kind::Users: return "a list of users";
    case Kind::Groups: return "a list of groups";
  }
  return {};
}

}  // namespace cutwater::config
