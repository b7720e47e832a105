#!/usr/bin/env bash
# Build what a machine with a GPU needs, and run the tests that need one. README.md beside this file says what they are.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)

usage() {
  cat <<'TEXT'
usage: tests/gpu/run_all.sh [--group 1|2|3|collectives|completions|nccl|all] [--only ID] [--output DIR] [--build DIR] [--python PYTHON] [--no-build] [--list]

Builds ringmain and the test programs, and runs the tests that need a GPU. Each prints a line: its name, PASS, FAIL or SKIP, and
why. The last line counts them. Results, recordings and reports go to the output folder.

  --group G     one group, of at most eight minutes each, or all of them (default)
  --only ID     one test
  --output DIR  where results.json and the recordings go (default: gpu-results in the build folder)
  --build DIR   where to build (default: build/gpu)
  --python P    the Python with the PyTorch to test (default: python3). Group collectives needs ringmain's package, which is built for
                it if it is 3.11 or newer and has torch, numpy and nanobind; else the group is skipped, and says what is missing.
                So is the one test of group nccl that needs it. Group nccl takes the NCCL of that Python, or lib/libnccl.so.2 of the
                folder that the variable RINGMAIN_NCCL names; two ranks share a GPU from 2.30 on
  --no-build    run what lies in the build folder
  --fakes       run over the libraries that stand in for CUDA's: what of the tests can be
  --ctest       end with 77 if all tests were skipped
  --list        say which tests there are, in which group, and do nothing

Exit status: 0, or 1 if a test failed, 2 for a wrong call or an output folder that cannot be written, 3 if the build failed, 128 and
the signal's number if it was ended by one. Without a GPU nothing is built and all is skipped.
TEXT
}

build="$root/build/gpu"
make=1
python=python3
package=1
runner=()
while [ $# -gt 0 ]; do
  case $1 in
    --help|-h) usage; exit 0 ;;
    --build|--output|--group|--only|--python)
      [ $# -ge 2 ] || { echo "run_all.sh: $1 needs a word after it" >&2; exit 2; }
      case $1 in
        --build) build=$2 ;;
        --python) python=$2 ;;
        *) runner+=("$1" "$2") ;;
      esac
      case $1/$2 in --group/[123] | --only/G*) package=0 ;; esac
      shift ;;
    --no-build) make=0 ;;
    --list) make=0; runner+=("$1") ;;
    --fakes) runner+=("$1"); targets=gpu_fakes ;;
    --ctest) runner+=("$1") ;;
    *) echo "run_all.sh: $1 is not known; --help says what is" >&2; exit 2 ;;
  esac
  shift
done
command -v python3 >/dev/null || { echo "run_all.sh: python3 is needed" >&2; exit 2; }
python=$(command -v "$python") || { echo "run_all.sh: --python names no program that can be run" >&2; exit 2; }

# ringmain's Python package, in a build of its own: where it cannot be built, the other tests are. package.txt says why it was not.
build_package() {
  local why="$build/package.txt" log="$build/package.log"
  rm -f "$why"
  [ ! -d "$root/third_party/python" ] || local -x PYTHONPATH="$root/third_party/python${PYTHONPATH:+:$PYTHONPATH}"
  if ! "$python" "$here/package.py" >"$why"; then return; fi
  if { cmake "${options[@]}" -B "$build/package" -DRINGMAIN_BUILD_TESTS=OFF -DRINGMAIN_BUILD_PYTHON=ON "-DPython_EXECUTABLE=$python" &&
    cmake --build "$build/package" -j "$(nproc)" --target ringmain_python_package ringmain_wait_counter; } >"$log" 2>&1; then
    rm -f "$why"
  else
    echo "FAILED: ringmain's Python package did not build for $python; all of its output is in $log" >"$why"
  fi
}

if [ $make = 1 ] && { [ "${targets:-}" ] || python3 "$here/run_tests.py" --is-there-a-gpu; }; then
  command -v cmake >/dev/null || { echo "run_all.sh: cmake is needed to build; --no-build runs what is built" >&2; exit 3; }
  mkdir -p "$build" || { echo "run_all.sh: nothing can be built in $build; name another folder with --build" >&2; exit 3; }
  log="$build/build.log"
  third="$root/third_party/usr"
  options=(-S "$root" -DCMAKE_BUILD_TYPE=Release -DRINGMAIN_BUILD_EXAMPLES=OFF -DRINGMAIN_HARDENING=OFF)
  command -v ninja >/dev/null && options+=(-G Ninja)
  if [ -d "$third" ]; then
    options+=("-DCMAKE_PREFIX_PATH=$third" -DCMAKE_LIBRARY_ARCHITECTURE=x86_64-linux-gnu)
    export CPATH="$third/include${CPATH:+:$CPATH}" LIBRARY_PATH="$third/lib/x86_64-linux-gnu${LIBRARY_PATH:+:$LIBRARY_PATH}"
    export LD_LIBRARY_PATH="$third/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  fi
  if ! { cmake "${options[@]}" -B "$build" && cmake --build "$build" -j "$(nproc)" --target gpu_all; } >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    echo "run_all.sh: the build failed; all of its output is in $log" >&2
    exit 3
  fi
  [ $package = 0 ] || build_package
fi
if [ -d "$root/third_party/usr" ]; then
  export LD_LIBRARY_PATH="$root/third_party/usr/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi
exec python3 "$here/run_tests.py" --build "$build" --python "$python" ${runner[@]+"${runner[@]}"}
