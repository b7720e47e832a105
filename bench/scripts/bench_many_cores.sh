#!/usr/bin/env bash
# What becomes of the figures on a machine with many cores: several workers, many publishers, far cores?
#
# usage: bench/scripts/bench_many_cores.sh [--plan] [FOLDER]
# Runs the suite on neighbouring cores and, where the machine has more than one last-level cache or NUMA node, on cores of two
# caches and of two nodes, into FOLDER (build/bench/many-cores): near.json, far.json, node.json, machine.txt. Workers and
# publishers that may run anywhere are measured in each, with up to half and all of the cores. --plan says what it would run
# here and runs nothing. Needs what ./dev bench needs; with --peers installed before, they are compared too. The worst exit
# code of the runs.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cpus=${RINGMAIN_BENCH_SYSTEM-/sys/devices/system/cpu}  # a made-up machine, for tests
plan=''
case ${1-} in
  --plan) plan=1 && shift ;;
  -*) sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit 2 ;;
esac
folder=${1-$root/build/bench/many-cores}

# The first core; then the first that shares its last-level cache, the first that does not, and the first of another node.
last_level() { cat "$cpus/cpu$1/cache/index3/shared_cpu_list" 2>/dev/null || echo none; }
thread_of() { cat "$cpus/cpu$1/topology/thread_siblings_list" 2>/dev/null || echo "$1"; }
node_of() { local node=("$cpus/cpu$1/"node[0-9]*) && echo "${node[0]##*/}"; }
given=${RINGMAIN_BENCH_GIVEN-$(taskset -cp $$ | sed 's/.*: //')}
first='' near='' far='' node='' count=0
for cpu in $(tr ',' '\n' <<<"$given" | while IFS=- read -r a b; do seq "$a" "${b:-$a}"; done); do
  count=$((count + 1))
  if [ -z "$first" ]; then
    first=$cpu
  elif [ "$(thread_of "$cpu")" = "$(thread_of "$first")" ]; then
    continue
  elif [ "$(node_of "$cpu")" != "$(node_of "$first")" ]; then
    node=${node:-$cpu}
  elif [ "$(last_level "$cpu")" = "$(last_level "$first")" ]; then
    near=${near:-$cpu}
  else
    far=${far:-$cpu}
  fi
done
[ -n "$near$far$node" ] || { echo "bench_many_cores: this machine has one core; nothing can be said." >&2; exit 1; }

worst=0
measure() {
  local status=0
  echo "── $1: cores $2, $3" >&2
  [ -z "$plan" ] || return 0
  RINGMAIN_BENCH_CORES=$2 "$root/dev" bench --json "$folder/$1.json" --output "$folder/$1" || status=$?
  # 1, a row missed, is worse than 3, inconclusive.
  if [ "$status" != 0 ] && { [ "$worst" = 0 ] || [ "$status" -lt "$worst" ]; }; then worst=$status; fi
}
[ -n "$plan" ] || { mkdir -p "$folder" && { uname -srm; lscpu; numactl --hardware 2>/dev/null || true; } >"$folder/machine.txt"; }
[ -z "$near" ] || measure near "$first,$near" "of one last-level cache"
[ -z "$far" ] || measure far "$first,$far" "of two last-level caches of one node"
[ -z "$node" ] || measure node "$first,$node" "of two nodes"
if [ "$count" -lt 4 ]; then
  echo "bench_many_cores: with $count cores nothing is said of several workers or of contention; on paper:" \
    "bench/scripts/many_cores_on_paper.py" >&2
else
  echo "bench_many_cores: workers up to $((count / 2)), publishers up to $count, anywhere on $count cores" >&2
fi
[ -n "$plan" ] || echo "results: $folder"
exit "$worst"
