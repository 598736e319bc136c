// SPDX-License-Identifier: Apache-2.0
#include "ctl/completion.hpp"

#include <algorithm>
#include <functional>

namespace cutwater::ctl {
namespace {

/// Asked for names while somebody types: short, quiet, and nothing when nobody answers. The group
/// of commands that knows them, or nullptr: no names are wanted.
const char* group_of(Wanted wanted) noexcept {
  switch (wanted) {
    case Wanted::LimitName: return "limit";
    case Wanted::BreakerName: return "breaker";
    case Wanted::BulkheadName: return "bulkhead";
    default: return nullptr;
  }
}
std::string names_command(const std::string& program, Wanted wanted) {
  return program + " --timeout 200ms " + group_of(wanted) +
         " list 2>/dev/null | sed -n '2,$s/ .*//p'";
}

/// A text between single quotes for a POSIX shell and for zsh.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// The same for fish, where a backslash is special too.
std::string fish_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += (c == '\'' || c == '\\' ? "\\" : "") + std::string(1, c);
  return out + "'";
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : between) + word;
  return out;
}

/// Calls `visit` for each command below the program with its path: "/limit/get".
void walk(const CommandTree& at, const std::string& path,
          const std::function<void(const CommandTree&, const std::string&)>& visit) {
  for (const CommandTree& child : at.children) {
    const std::string below = path + "/" + child.name;
    visit(child, below);
    walk(child, below, visit);
  }
}

std::vector<std::string> paths_of(const CommandTree& program) {
  std::vector<std::string> paths;
  walk(program, "", [&](const CommandTree&, const std::string& path) { paths.push_back(path); });
  return paths;
}

std::vector<std::string> option_names(const CommandTree& at) {
  std::vector<std::string> names;
  for (const CommandOption& option : at.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

/// `word) ...` of every option that takes a value, with what completes it.
void each_value(const CommandTree& at, std::vector<const CommandOption*>& out) {
  for (const CommandOption& option : at.options) {
    if (option.value != Wanted::Nothing) out.push_back(&option);
  }
  for (const CommandTree& child : at.children) each_value(child, out);
}

/// Names of all options that take a value, for a `case`.
std::vector<std::string> names_with_value(const CommandTree& program) {
  std::vector<const CommandOption*> options;
  each_value(program, options);
  std::vector<std::string> names;
  for (const CommandOption* option : options) {
    for (const std::string& name : option->names) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

/// The loop both bash and zsh find the command by, and how many of its arguments stand already.
/// (`path` would be PATH in zsh; `=` is a word of its own in bash.)
std::string command_loop(const CommandTree& program, const char* array, const char* begin,
                         const char* end) {
  std::string out = "  local at='' word skip='' i n=0\n";
  out += std::string("  for ((i = ") + begin + "; i < " + end + "; i++)); do\n";
  out += std::string("    word=${") + array + "[i]}\n";
  out += "    if [[ -n $skip ]]; then [[ $word == '=' ]] || skip=''; continue; fi\n";
  out += "    case $word in\n      " + joined(names_with_value(program), "|") +
         ") skip=1; continue ;;\n      -*) continue ;;\n    esac\n";
  out += "    case \"$at/$word\" in\n      " + joined(paths_of(program), "|") +
         ") at=$at/$word; n=0 ;;\n      *) n=$((n + 1)) ;;\n    esac\n  done\n";
  return out;
}

// ---- bash ---------------------------------------------------------------------------------------

std::string bash_value(Wanted wanted, const std::vector<std::string>& words,
                       const std::string& program) {
  switch (wanted) {
    case Wanted::File:
      return "COMPREPLY=($(compgen -f -- \"$cur\")); return";
    case Wanted::LimitName:
    case Wanted::BreakerName:
    case Wanted::BulkheadName:
      return "COMPREPLY=($(compgen -W \"$(" + names_command(program, wanted) +
             ")\" -- \"$cur\")); return";
    case Wanted::Words:
      return "COMPREPLY=($(compgen -W " + quoted(joined(words, " ")) + " -- \"$cur\")); return";
    default:
      return "return";
  }
}

std::string bash_script(const CommandTree& program) {
  const std::string function = "_" + program.name;
  std::string out = "# bash completion of " + program.name + "; load it with\n#   source <(" +
                    program.name + " completion bash)\n" + function + "() {\n";
  out += "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=''\n";
  out += "  COMPREPLY=()\n";
  out += command_loop(program, "COMP_WORDS", "1", "COMP_CWORD");
  std::vector<const CommandOption*> values;
  each_value(program, values);
  out += "  case $prev in\n";
  for (const CommandOption* option : values) {
    out += "    " + joined(option->names, "|") + ") " +
           bash_value(option->value, option->words, program.name) + " ;;\n";
  }
  out += "  esac\n  case $at in\n";
  const auto branch = [&](const CommandTree& at, const std::string& path) {
    std::vector<std::string> words;
    for (const CommandTree& child : at.children) words.push_back(child.name);
    for (const std::string& name : option_names(at)) words.push_back(name);
    out += "    " + quoted(path) + ")\n      words=" + quoted(joined(words, " ")) + "\n";
    for (std::size_t i = 0; i < at.positionals.size(); ++i) {
      const Positional& one = at.positionals[i];
      const std::string here = "      [[ $n == " + std::to_string(i) + " ]] && ";
      if (group_of(one.wanted) != nullptr) {
        out += here + "words+=\" $(" + names_command(program.name, one.wanted) + ")\"\n";
      } else if (one.wanted == Wanted::Words) {
        out += here + "words+=" + quoted(" " + joined(one.words, " ")) + "\n";
      } else if (one.wanted == Wanted::File) {
        out += here + "COMPREPLY=($(compgen -f -- \"$cur\"))\n";
      }
    }
    out += "      ;;\n";
  };
  branch(program, "");
  walk(program, "", branch);
  out += "  esac\n  words+=" + quoted(" " + joined(option_names(program), " ")) + "\n";
  out += "  COMPREPLY+=($(compgen -W \"$words\" -- \"$cur\"))\n}\n";
  return out + "complete -o filenames -F " + function + " " + program.name + "\n";
}

// ---- zsh ----------------------------------------------------------------------------------------

/// `name:help` for _describe; a colon in either would end it.
std::string described(const std::string& name, const std::string& help) {
  std::string text = name + ":" + help.substr(0, help.find('\n'));
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    out += text[i] == ':' && i > name.size() ? std::string("\\:") : std::string(1, text[i]);
  }
  return quoted(out);
}

std::string zsh_value(Wanted wanted, const std::vector<std::string>& words,
                      const std::string& program) {
  switch (wanted) {
    case Wanted::File:
      return "_files; return";
    case Wanted::LimitName:
    case Wanted::BreakerName:
    case Wanted::BulkheadName:
      return "compadd -- ${(f)\"$(" + names_command(program, wanted) + ")\"}; return";
    case Wanted::Words:
      return "compadd -- " + joined(words, " ") + "; return";
    default:
      return "return";
  }
}

std::string zsh_script(const CommandTree& program) {
  const std::string function = "_" + program.name;
  std::string out = "#compdef " + program.name + "\n# zsh completion; load it with\n#   source <(" +
                    program.name + " completion zsh)\n" + function + "() {\n";
  out += "  local cur=${words[CURRENT]} prev=${words[CURRENT-1]}\n  local -a list\n";
  out += command_loop(program, "words", "2", "CURRENT");
  std::vector<const CommandOption*> values;
  each_value(program, values);
  out += "  case $prev in\n";
  for (const CommandOption* option : values) {
    out += "    " + joined(option->names, "|") + ") " +
           zsh_value(option->value, option->words, program.name) + " ;;\n";
  }
  out += "  esac\n  case $at in\n";
  const auto branch = [&](const CommandTree& at, const std::string& path) {
    out += "    " + quoted(path) + ")\n      list=(";
    for (const CommandTree& child : at.children) out += " " + described(child.name, child.help);
    for (const CommandOption& option : at.options) {
      for (const std::string& name : option.names) out += " " + described(name, option.help);
    }
    out += " )\n";
    for (std::size_t i = 0; i < at.positionals.size(); ++i) {
      const Positional& one = at.positionals[i];
      const std::string here = "      [[ $n == " + std::to_string(i) + " ]] && ";
      if (group_of(one.wanted) != nullptr) {
        out += here + "compadd -- ${(f)\"$(" + names_command(program.name, one.wanted) + ")\"}\n";
      } else if (one.wanted == Wanted::Words) {
        out += here + "compadd -- " + joined(one.words, " ") + "\n";
      } else if (one.wanted == Wanted::File) {
        out += here + "_files\n";
      }
    }
    out += "      ;;\n";
  };
  branch(program, "");
  walk(program, "", branch);
  out += "  esac\n  _describe -V " + quoted(program.name) + " list\n}\n";
  return out + "if [[ $funcstack[1] == " + function + " ]]; then " + function +
         "; else compdef " + function + " " + program.name + "; fi\n";
}

// ---- fish ---------------------------------------------------------------------------------------

std::string fish_option(const std::string& program, const std::string& condition,
                        const CommandOption& option) {
  std::string out = "complete -c " + program + condition;
  for (const std::string& name : option.names) {
    out += name.rfind("--", 0) == 0 ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (option.value == Wanted::File) out += " -r -F";
  else if (option.value == Wanted::Words) out += " -x -a " + fish_quoted(joined(option.words, " "));
  else if (group_of(option.value) != nullptr)
    out += " -x -a " + fish_quoted("(" + names_command(program, option.value) + ")");
  else if (option.value != Wanted::Nothing) out += " -x";
  return out + " -d " + fish_quoted(option.help.substr(0, option.help.find('\n'))) + "\n";
}

/// Is it this command that stands there, with so many arguments already?
std::string fish_at(const CommandTree& program, const std::string& name) {
  std::string out = "function " + name + "\n  set -l at ''\n  set -l n 0\n  set -l skip 0\n";
  out += "  for word in (commandline -opc)[2..-1]\n";
  out += "    if test $skip = 1\n      set skip 0\n      continue\n    end\n";
  out += "    switch $word\n      case " + joined(names_with_value(program), " ") +
         "\n        set skip 1\n        continue\n      case '-*'\n        continue\n    end\n";
  out += "    switch $at/$word\n      case " + joined(paths_of(program), " ") +
         "\n        set at $at/$word\n        set n 0\n      case '*'\n"
         "        set n (math $n + 1)\n    end\n  end\n";
  out += "  test \"$at\" = \"$argv[1]\" || return 1\n";
  return out + "  test -z \"$argv[2]\" || test \"$n\" = \"$argv[2]\"\nend\n";
}

std::string fish_script(const CommandTree& program) {
  const std::string at = "__" + program.name + "_at";
  std::string out = "# fish completion of " + program.name + "; load it with\n#   " + program.name +
                    " completion fish | source\n" + fish_at(program, at) + "complete -c " +
                    program.name + " -f\n";
  for (const CommandOption& option : program.options) out += fish_option(program.name, "", option);
  const auto branch = [&](const CommandTree& command, const std::string& path) {
    const std::string condition = " -n " + fish_quoted(at + " '" + path + "'");
    for (const CommandTree& child : command.children) {
      out += "complete -c " + program.name + condition + " -a " + child.name + " -d " +
             fish_quoted(child.help.substr(0, child.help.find('\n'))) + "\n";
    }
    if (path.empty()) return;
    for (std::size_t i = 0; i < command.positionals.size(); ++i) {
      const Positional& one = command.positionals[i];
      const std::string here = "complete -c " + program.name + " -n " +
                               fish_quoted(at + " '" + path + "' " + std::to_string(i));
      if (group_of(one.wanted) != nullptr) {
        out += here + " -a " +
               fish_quoted("(" + names_command(program.name, one.wanted) + ")") + "\n";
      } else if (one.wanted == Wanted::Words) {
        out += here + " -a " + fish_quoted(joined(one.words, " ")) + "\n";
      } else if (one.wanted == Wanted::File) {
        out += here + " -F\n";
      }
    }
    for (const CommandOption& option : command.options) {
      out += fish_option(program.name, condition, option);
    }
  };
  branch(program, "");
  walk(program, "", branch);
  return out;
}

}  // namespace

Wanted wanted_by(std::string_view placeholder, Wanted names) noexcept {
  if (placeholder == "FILE" || placeholder == "LOG" || placeholder == "DIR") return Wanted::File;
  return placeholder == "NAME" ? names : Wanted::Anything;
}

Wanted names_of_group(std::string_view group) noexcept {
  if (group == "limit") return Wanted::LimitName;
  if (group == "breaker") return Wanted::BreakerName;
  return group == "bulkhead" ? Wanted::BulkheadName : Wanted::Anything;
}

std::vector<std::string> words_of(std::string_view placeholder) {
  std::vector<std::string> words;
  placeholder = placeholder.substr(0, placeholder.find(':'));  // CLI11 adds the checks behind one
  if (placeholder.find('|') == std::string_view::npos) return words;
  for (std::size_t begin = 0; begin <= placeholder.size();) {
    const std::size_t end = std::min(placeholder.find('|', begin), placeholder.size());
    words.emplace_back(placeholder.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::optional<Shell> shell_of(std::string_view name) noexcept {
  if (name == "bash") return Shell::Bash;
  if (name == "zsh") return Shell::Zsh;
  if (name == "fish") return Shell::Fish;
  return std::nullopt;
}

std::string completion_script(const CommandTree& program, Shell shell) {
  switch (shell) {
    case Shell::Bash:
      return bash_script(program);
    case Shell::Zsh:
      return zsh_script(program);
    default:
      return fish_script(program);
  }
}

}  // namespace cutwater::ctl
