# Where does the time of ./dev test go? Each phase is measured, and a table at the end shows its minutes.
#
# Sourced by ./dev.

# Forgets what an earlier run measured.
phases_begin() {
  phases="$root/build/phases.txt"
  mkdir -p "${phases%/*}"
  : >"$phases"
}

# Runs a command, in a shell of its own, as the phase that the first argument names. If no table was begun, it just runs the command.
phase() {
  local name=$1 began=${EPOCHREALTIME/[.,]/} measured used status=0
  shift
  if [ -z "${phases-}" ]; then
    "$@"
    return
  fi
  measured=$phases.times
  (
    trap 'times >"$measured"' EXIT
    "$@"
  ) || status=$?
  # The second line of `times` is about the command's processes: user and system, each as 0m0.000s.
  local took user='' system=''
  { read -r _ && read -r user system; } <"$measured" 2>/dev/null || true
  took=$(((${EPOCHREALTIME/[.,]/} - began) / 1000))
  used=$(($(milliseconds "${user:-0m0.000s}") + $(milliseconds "${system:-0m0.000s}")))
  printf '%s|%s|%s|\n' "$name" "$took" "$used" >>"$phases"
  rm -f "$measured"
  return "$status"
}

# 1m2.345s as 62345.
milliseconds() {
  local minutes=${1%%m*} seconds=${1#*m}
  seconds=${seconds%s}
  printf '%s' "$((minutes * 60000 + 10#${seconds%[.,]*} * 1000 + 10#${seconds#*[.,]}))"
}

# Adds what ctest says of each label in its output $2, of the preset $1: the time of the tests, one after the other.
phases_add_labels() {
  local line
  while read -r line; do
    [[ $line =~ ^([^ ]+)\ +=\ +([0-9]+)\.([0-9]+)\ sec\*proc\ \(([0-9]+)\ tests?\)$ ]] || continue
    printf '%s|||%s\n' "  $1: ${BASH_REMATCH[1]}, ${BASH_REMATCH[4]} tests" \
      "$((BASH_REMATCH[2] * 1000 + 10#${BASH_REMATCH[3]:0:2} * 10))" >>"$phases"
  done <"$2"
}

# Prints the table: how long each phase took, how long processors worked for it, and how long the tests of a label take alone.
phases_table() {
  local name took used alone whole=0 whole_used=0
  printf '%-44s %10s %12s %10s\n' "where the time went" minutes processor "one by one"
  while IFS='|' read -r name took used alone; do
    printf '%-44s %10s %12s %10s\n' "$name" "$(in_minutes "$took")" "$(in_minutes "$used")" "$(in_minutes "$alone")"
    whole=$((whole + ${took:-0})) whole_used=$((whole_used + ${used:-0}))
  done <"$phases"
  printf '%-44s %10s %12s\n\n' all "$(in_minutes "$whole")" "$(in_minutes "$whole_used")"
}

# Milliseconds as minutes with two decimals; an empty text stays empty.
in_minutes() {
  [ -z "$1" ] || printf '%d.%02d' "$(($1 / 60000))" "$(($1 % 60000 / 600))"
}
