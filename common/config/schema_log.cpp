// SPDX-License-Identifier: Apache-2.0
// The rows of the log.
#include "config/schema_table.hpp"

namespace cutwater::config {
namespace {

using T = const Target&;
using V = const Parsed&;

// clang-format off
const Key kRows[] = {
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

std::span<const Key> log_rows() { return kRows; }

}  // namespace cutwater::config
