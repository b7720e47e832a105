// Source: "Programmable Completion" in bash's manual. Nothing of the package bash-completion is
// needed; where it is loaded, it completes the command of `ringmain run`.
#include "cli/completion_script.hpp"

namespace ringmain::cli {
namespace {

constexpr const char* kHead =
    R"bash(# Completion of ringmain for bash: made by 'ringmain completion bash' from its own verbs and options.

# What may follow the verb $1: words for verbs, options, those of them that take a value as --name:KIND, operands.
_ringmain_verb() {
  verbs= options= takes=' ' operands= runs=
  case $1 in
)bash";

constexpr const char* kTail = R"bash(  esac
}

# Fills COMPREPLY with what is of the kind $1, or among its words =a,b, and begins with $2.
_ringmain_values() {
  local what name names= file=
  case $1 in
    source | sink)
      while read -r what name _; do
        [[ $what == "$1" ]] || continue
        case $name in
          *:FILE) names+=" ${name%FILE}" && [[ $2 != "${name%FILE}"* ]] || file=yes ;;
          *) names+=" ${name%%[:[]*}" ;;
        esac
      done < <("${words[0]}" providers 2>/dev/null)
      if [[ $file ]]; then
        mapfile -t COMPREPLY < <(compgen -P "${2%%:*}:" -f -- "${2#*:}")
        compopt -o filenames 2>/dev/null  # so that spaces in them are escaped
      else
        mapfile -t COMPREPLY < <(compgen -W "$names" -- "$2")
        [[ ${COMPREPLY[0]-} != *: ]] || compopt -o nospace 2>/dev/null
      fi ;;
    files) mapfile -t COMPREPLY < <(compgen -f -- "$2") && compopt -o filenames 2>/dev/null ;;
    folders) mapfile -t COMPREPLY < <(compgen -d -- "$2") && compopt -o filenames 2>/dev/null ;;
    =*) mapfile -t COMPREPLY < <(compgen -W "${1//[=,]/ }" -- "$2") ;;
  esac
}

# The command of 'ringmain run', whose first word is $1 in COMP_WORDS.
_ringmain_command() {
  if declare -F _command_offset >/dev/null; then
    _command_offset "$1"
  elif ((COMP_CWORD == $1)); then
    mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
  else
    compopt -o default 2>/dev/null
  fi
}

_ringmain() {
  local verbs options takes operands runs path= word typed pending= over= asked= kind line i=1
  local words=() places=() piece=${COMP_WORDS[COMP_CWORD]}
  COMPREPLY=()
  # bash divides words at = and :, too; a word begins where a space was.
  line=${COMP_LINE:0:COMP_POINT}
  for ((i = 0; i <= COMP_CWORD; ++i)); do
    if ((i == 0)) || [[ $line == [[:space:]]* ]]; then
      line=${line#"${line%%[![:space:]]*}"}
      words+=("${COMP_WORDS[i]}") places+=("$i")
    else
      words[-1]+=${COMP_WORDS[i]}
    fi
    line=${line#"${COMP_WORDS[i]}"}
  done
  typed=${words[-1]}

  _ringmain_verb ''
  for ((i = 1; i < ${#words[@]} - 1; ++i)); do
    word=${words[i]}
    if [[ $pending ]]; then
      pending=
    elif [[ $verbs ]]; then
      [[ " $verbs " == *" $word "* ]] || return 0
      if [[ $word == help ]]; then
        asked=yes
      else
        path+="${path:+ }$word"
        _ringmain_verb "$path"
      fi
    elif [[ ! $over && $word == -- ]]; then
      over=yes
    elif [[ ! $over && $word == -?* ]]; then
      [[ $takes != *" $word:"* ]] || pending=$word
    elif [[ $runs ]]; then
      _ringmain_command "${places[i]}"
      return 0
    fi
  done

  [[ ! $asked || $verbs ]] || return 0
  if [[ ! $pending && ! $over && $typed == --*=* ]]; then
    pending=${typed%%=*} typed=${typed#*=}
  fi
  if [[ $pending ]]; then
    [[ $takes == *" $pending:"* ]] || return 0
    kind=${takes#*" $pending:"}
    _ringmain_values "${kind%% *}" "$typed"
  elif [[ ! $over && $typed == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$typed")
  elif [[ $verbs ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$verbs" -- "$typed")
  elif [[ $runs ]]; then
    _ringmain_command "${places[-1]}"
    return 0
  else
    local all=()
    for kind in $operands; do
      COMPREPLY=()
      _ringmain_values "$kind" "$typed"
      all+=("${COMPREPLY[@]}")
    done
    COMPREPLY=("${all[@]}")
  fi
  # Only what comes after the last = or : of the word is replaced.
  case $piece in = | :) piece= ;; esac
  if [[ $piece == *"$typed" ]]; then
    COMPREPLY=("${COMPREPLY[@]/#/"${piece%"$typed"}"}")
  else
    COMPREPLY=("${COMPREPLY[@]#"${typed%"$piece"}"}")
  fi
}
complete -F _ringmain ringmain
)bash";

std::string kind_word(const Suggested& what) {
  constexpr const char* kKinds[] = {"", "files", "folders", "source", "sink"};
  if (!what.words.empty()) return "=" + joined(what.words, ",");
  return kKinds[what.kind];
}

std::string table_of(const Verb& program, const VerbPath& path) {
  const Verb& verb = *path.back();
  std::string options, takes, verbs;
  for (const Option& option : options_of(verb)) {
    options += (options.empty() ? "" : " ") + std::string(option.name);
    if (!option.value.empty())
      takes += " " + std::string(option.name) + ":" + kind_word(suggested(option));
  }
  for (const Choice& choice : choices_of(verb))
    verbs += (verbs.empty() ? "" : " ") + std::string(choice.name);
  std::string made = "    " + quoted(joined(path, " ")) + ")\n";
  if (!verbs.empty()) made += "      verbs=" + quoted(verbs) + "\n";
  made += "      options=" + quoted(options) + "\n";
  if (!takes.empty()) made += "      takes=" + quoted(takes + " ") + "\n";
  if (verb.runs_command) made += "      runs=yes\n";
  if (verb.verbs.empty() && !verb.runs_command) {
    const Suggested operands = suggested(program, verb);
    std::string kinds = operands.words.empty() ? "" : "=" + joined(operands.words, ",");
    const std::string other = kind_word({{}, operands.kind});
    if (!other.empty()) kinds += (kinds.empty() ? "" : " ") + other;
    if (!kinds.empty()) made += "      operands=" + quoted(kinds) + "\n";
  }
  return made + "      ;;\n";
}

}  // namespace

std::string bash_completion(const Verb& program) {
  std::string made = kHead;
  for (const VerbPath& path : verbs_below({&program})) made += table_of(program, path);
  return made + kTail;
}

}  // namespace ringmain::cli
