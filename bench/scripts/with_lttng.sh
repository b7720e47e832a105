#!/usr/bin/env bash
# Runs a command beside a private LTTng session in snapshot mode that wants ringmain_bench's
# tracepoints:  with_lttng.sh COMMAND…
#
# The daemon, its folder and the session are for this command alone and end with it. As root, whose
# daemon has one place for the whole machine, all of it happens in a mount namespace of its own. Exit
# status: the command's; 125 where the session cannot be had, and one sentence says why.
set -u
refuse() { echo "with_lttng.sh: $1" >&2; exit 125; }

[ $# -ge 1 ] || { echo "usage: with_lttng.sh COMMAND…" >&2; exit 2; }
for tool in lttng lttng-sessiond; do
  command -v "$tool" >/dev/null || refuse "$tool was not found; on Debian: apt-get install lttng-tools"
done
if [ "$(id -u)" = 0 ] && [ -z "${RINGMAIN_BENCH_LTTNG_INSIDE-}" ]; then
  unshare --mount true 2>/dev/null || refuse "as root it needs a mount namespace, which is refused here; run it as another user"
  RINGMAIN_BENCH_LTTNG_INSIDE=1 exec unshare --mount --propagation private "${BASH:-bash}" "$0" "$@"
fi

home=$(mktemp -d "${TMPDIR:-/tmp}/ringmain-lttng-XXXXXX") || refuse "no folder can be made in ${TMPDIR:-/tmp}"
run=$home/.lttng
if [ -n "${RINGMAIN_BENCH_LTTNG_INSIDE-}" ]; then
  mount -t tmpfs none /run && mount -t tmpfs none /dev/shm || { rm -rf "$home"; refuse "tmpfs cannot be mounted"; }
  run=/run/lttng
fi
export LTTNG_HOME=$home
clean_up() {
  [ -z "${daemon-}" ] || { kill "$daemon" && wait "$daemon"; } 2>/dev/null
  rm -rf "$home"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

lttng-sessiond --no-kernel >"$home/log" 2>&1 &
daemon=$!
for _ in $(seq 100); do
  lttng --no-sessiond list >/dev/null 2>&1 && break
  kill -0 "$daemon" 2>/dev/null || refuse "the session daemon ended: $(tail -n 1 "$home/log")"
  sleep 0.05
done
{
  lttng --no-sessiond create ringmain_bench --snapshot --output "$home/out" &&
    lttng enable-channel --userspace --subbuf-size 256K --num-subbuf 4 bench &&
    lttng enable-event --userspace --channel bench 'ringmain_bench:*' &&
    lttng start
} >"$home/said" 2>&1 || refuse "the session was refused: $(tail -n 1 "$home/said")"

RINGMAIN_BENCH_LTTNG=$run "$@"
status=$?
lttng destroy ringmain_bench >/dev/null 2>&1
exit "$status"
