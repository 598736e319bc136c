// SPDX-License-Identifier: Apache-2.0
#include "ctl/commands.hpp"
#include "ctl/look.hpp"
#include "ctl/print.hpp"
#include "ctl/text.hpp"
#include "shm/verify.hpp"

namespace cutwater::ctl {

Exit run_verify(const Settings& settings) {
  const auto memory = open_memory(located(settings), false);
  if (!memory) return complain(settings, memory.error());
  const shm::VerifyReport report = shm::verify(memory->segment.view());

  wire::Value document;
  document.set("memory", memory->directory.path);
  document.set("daemon", memory->daemon_alive ? "running" : "not running");
  document.set("ok", report.ok());
  document.set("slots", report.slots);
  document.set("members", report.members);
  document.set("in_debt", report.in_debt);
  document.set("claims", report.claims);
  document.set("limits", report.limits);
  document.set("rules", report.rules);
  document.set("rows", report.rows);
  document.set("events", report.events);
  document.set("findings_total", report.findings_total);
  wire::Value::Array findings;
  std::string text;
  for (const shm::Finding& finding : report.findings) {
    findings.push_back(wire::Value::map({{"place", finding.place}, {"text", finding.text}}));
    text += escape(finding.place) + ": " + escape(finding.text) + '\n';
  }
  document.set("findings", std::move(findings));
  if (report.findings_total > report.findings.size()) {
    text += std::to_string(report.findings_total - report.findings.size()) +
            " more findings are not shown\n";
  }
  text += escape(memory->directory.path) +
          (memory->daemon_alive ? " (daemon running)" : " (daemon not running)") + ": looked at " +
          std::to_string(report.slots) + " slots with " + std::to_string(report.members) +
          " entries, " + std::to_string(report.limits) + " limits, " +
          std::to_string(report.rules) + " rules, " + std::to_string(report.rows) + " rows, " +
          std::to_string(report.events) + " events: " +
          (report.ok() ? "no findings" : std::to_string(report.findings_total) + " findings") +
          '\n';
  const Exit printed = print(settings, document, text);
  return printed == Exit::Ok && !report.ok() ? Exit::Invalid : printed;
}

}  // namespace cutwater::ctl
