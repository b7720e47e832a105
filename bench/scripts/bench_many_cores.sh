#!/usr/bin/env bash
# What becomes of the figures on a machine with many cores: several workers, many publishers, far cores?
#
# usage: bench/scripts/bench_many_cores.sh [FOLDER]
# Runs the suite on neighbouring cores and, where the machine has more than one NUMA node or last-level cache, on cores far
# apart, into FOLDER (build/bench/many-cores): near.json, far.json, machine.txt. Needs what ./dev bench needs; with --peers
# installed before, they are compared too. The worst exit code of the runs.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
case ${1-} in -*) sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit 2 ;; esac
folder=${1-$root/build/bench/many-cores}
mkdir -p "$folder"
{ uname -srm; lscpu; numactl --hardware 2>/dev/null || true; } >"$folder/machine.txt"

# The first core, its first neighbour that shares the last-level cache, and the first that does not.
last_level() { cat "/sys/devices/system/cpu/cpu$1/cache/index3/shared_cpu_list" 2>/dev/null || echo none; }
thread_of() { cat "/sys/devices/system/cpu/cpu$1/topology/thread_siblings_list" 2>/dev/null || echo "$1"; }
first='' near='' far=''
for cpu in $(taskset -cp $$ | sed 's/.*: //' | tr ',' '\n' | while IFS=- read -r a b; do seq "$a" "${b:-$a}"; done); do
  if [ -z "$first" ]; then
    first=$cpu
  elif [ "$(thread_of "$cpu")" = "$(thread_of "$first")" ]; then
    continue
  elif [ "$(last_level "$cpu")" = "$(last_level "$first")" ]; then
    near=${near:-$cpu}
  else
    far=${far:-$cpu}
  fi
done
[ -n "$near$far" ] || { echo "bench_many_cores: this machine has one core; nothing can be said." >&2; exit 1; }

worst=0
measure() {
  local status=0
  echo "── $1: cores $2" >&2
  RINGMAIN_BENCH_CORES=$2 "$root/dev" bench --json "$folder/$1.json" --output "$folder/$1" || status=$?
  # 1, a row missed, is worse than 3, inconclusive.
  if [ "$status" != 0 ] && { [ "$worst" = 0 ] || [ "$status" -lt "$worst" ]; }; then worst=$status; fi
}
[ -z "$near" ] || measure near "$first,$near"
[ -z "$far" ] || measure far "$first,$far"
echo "results: $folder"
exit "$worst"
