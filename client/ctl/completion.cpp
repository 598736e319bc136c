// SPDX-License-Identifier: Apache-2.0
#include "ctl/completion.hpp"

#include <algorithm>
#include <functional>

namespace cutwater::ctl {
namespace {

/// Asked for names while somebody types: short, quiet, and nothing when nobody answers.
std::string names_command(const std::string& program) {
  return program + " --timeout 200ms limit list 2>/dev/null | sed -n '2,$s/ .*//p'";
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

/// The loop both bash and zsh find the command by; $1 is the array's name, $2 its last index.
std::string path_loop(const CommandTree& program, const char* array, const char* begin,
                      const char* end) {
  std::string out = "  local path='' word i\n";
  out += std::string("  for ((i = ") + begin + "; i < " + end + "; i++)); do\n";
  out += std::string("    word=${") + array + "[i]}\n";
  out += "    case \"$path/$word\" in\n      " + joined(paths_of(program), "|") +
         ") path=$path/$word ;;\n    esac\n  done\n";
  return out;
}

// ---- bash ---------------------------------------------------------------------------------------

std::string bash_value(Wanted wanted, const std::vector<std::string>& words,
                       const std::string& program) {
  switch (wanted) {
    case Wanted::File:
      return "COMPREPLY=($(compgen -f -- \"$cur\")); return";
    case Wanted::LimitName:
      return "COMPREPLY=($(compgen -W \"$(" + names_command(program) + ")\" -- \"$cur\")); return";
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
  out += path_loop(program, "COMP_WORDS", "1", "COMP_CWORD");
  std::vector<const CommandOption*> values;
  each_value(program, values);
  out += "  case $prev in\n";
  for (const CommandOption* option : values) {
    out += "    " + joined(option->names, "|") + ") " +
           bash_value(option->value, option->words, program.name) + " ;;\n";
  }
  out += "  esac\n  case $path in\n";
  const auto branch = [&](const CommandTree& at, const std::string& path) {
    std::vector<std::string> words;
    for (const CommandTree& child : at.children) words.push_back(child.name);
    for (const std::string& name : option_names(at)) words.push_back(name);
    out += "    " + quoted(path) + ")\n      words=" + quoted(joined(words, " ")) + "\n";
    if (at.first == Wanted::LimitName && !path.empty()) {
      out += "      [[ $prev == " + quoted(at.name) + " ]] && words+=\" $(" +
             names_command(program.name) + ")\"\n";
    } else if (at.first == Wanted::File) {
      out += "      COMPREPLY=($(compgen -f -- \"$cur\"))\n";
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
      return "compadd -- ${(f)\"$(" + names_command(program) + ")\"}; return";
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
  out += path_loop(program, "words", "2", "CURRENT");
  std::vector<const CommandOption*> values;
  each_value(program, values);
  out += "  case $prev in\n";
  for (const CommandOption* option : values) {
    out += "    " + joined(option->names, "|") + ") " +
           zsh_value(option->value, option->words, program.name) + " ;;\n";
  }
  out += "  esac\n  case $path in\n";
  const auto branch = [&](const CommandTree& at, const std::string& path) {
    out += "    " + quoted(path) + ")\n      list=(";
    for (const CommandTree& child : at.children) out += " " + described(child.name, child.help);
    for (const CommandOption& option : at.options) {
      for (const std::string& name : option.names) out += " " + described(name, option.help);
    }
    out += " )\n";
    if (at.first == Wanted::File) out += "      _files\n";
    if (at.first == Wanted::LimitName) {
      out += "      [[ $prev == " + quoted(at.name) + " ]] && compadd -- ${(f)\"$(" +
             names_command(program.name) + ")\"}\n";
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
  else if (option.value == Wanted::LimitName)
    out += " -x -a " + fish_quoted("(" + names_command(program) + ")");
  else if (option.value != Wanted::Nothing) out += " -x";
  return out + " -d " + fish_quoted(option.help.substr(0, option.help.find('\n'))) + "\n";
}

std::string fish_script(const CommandTree& program) {
  const std::string at = "__" + program.name + "_at";
  std::string out = "# fish completion of " + program.name + "; load it with\n#   " + program.name +
                    " completion fish | source\nfunction " + at +
                    "\n  set -l path ''\n  for word in (commandline -opc)[2..-1]\n"
                    "    switch $path/$word\n      case " +
                    joined(paths_of(program), " ") +
                    "\n        set path $path/$word\n    end\n  end\n  test \"$path\" = \"$argv\"\n"
                    "end\ncomplete -c " +
                    program.name + " -f\n";
  for (const CommandOption& option : program.options) out += fish_option(program.name, "", option);
  const auto branch = [&](const CommandTree& command, const std::string& path) {
    const std::string condition = " -n " + fish_quoted(at + " '" + path + "'");
    for (const CommandTree& child : command.children) {
      out += "complete -c " + program.name + condition + " -a " + child.name + " -d " +
             fish_quoted(child.help.substr(0, child.help.find('\n'))) + "\n";
    }
    if (path.empty()) return;
    if (command.first == Wanted::File) out += "complete -c " + program.name + condition + " -F\n";
    if (command.first == Wanted::LimitName) {
      out += "complete -c " + program.name + condition + " -a " +
             fish_quoted("(" + names_command(program.name) + ")") + "\n";
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

Wanted wanted_by(std::string_view placeholder) noexcept {
  if (placeholder == "FILE" || placeholder == "LOG" || placeholder == "DIR") return Wanted::File;
  return placeholder == "NAME" ? Wanted::LimitName : Wanted::Anything;
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
