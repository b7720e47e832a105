# What does a verb of ./dev need that this machine lacks, and how does it get there?
#
# Sourced by ./dev. It looks for a command or a header and not for the package that has it, so that a
# machine with its own compiler, or a system without apt, is used as it is.

# groups  package  probe  argument: one line for each thing.
needs() {
  cat <<'LIST'
build,library build-essential         command  c++
build,library cmake                   command  cmake
build,library ninja-build             command  ninja
build,library pkg-config              command  pkg-config
build,library libconcurrentqueue-dev  header   concurrentqueue/concurrentqueue.h concurrentqueue/moodycamel/concurrentqueue.h moodycamel/concurrentqueue.h concurrentqueue.h
build   libcli11-dev            header   CLI/CLI.hpp
build,library libsimdjson-dev         header   simdjson.h
build,library zlib1g-dev              header   zlib.h
tests   libgtest-dev            header   gtest/gtest.h
tests   python3                 command  python3
tests   abigail-tools           command  abidiff
tests   lintian                 command  lintian
tests   gdb                     command  gdb
tests   openmpi-bin             command  mpirun.openmpi
tests   libopenmpi-dev          command  mpicc.openmpi
tests   mpich                   command  mpirun.mpich
tests   libmpich-dev            command  mpicc.mpich
python  python3-venv            base     python
python  python3-dev             base     python
python  ccache                  command  ccache
bench   libbenchmark-dev        header   benchmark/benchmark.h
bench   python3                 command  python3
peers   libboost-dev            header   boost/signals2.hpp
peers   libtbb-dev              header   oneapi/tbb/concurrent_queue.h
peers   libsigc++-3.0-dev       module   sigc++-3.0
peers   libzmq3-dev             header   zmq.h
peers   cppzmq-dev              header   zmq.hpp
peers   liblttng-ust-dev        header   lttng/tracepoint.h
peers   libatomic-queue-dev     header   atomic_queue/atomic_queue.h
peers   systemtap-sdt-dev       header   sys/sdt.h
peers   libspdlog-dev           header   spdlog/spdlog.h
peers   python3-matplotlib      python   matplotlib
deb     dpkg-dev                command  dpkg-shlibdeps
clang   clang                   command  clang++
clang   clang-format            command  clang-format-14 clang-format
clang   libclang-rt-14-dev      runtime  thread
clang   llvm                    command  llvm-symbolizer
libcxx  libc++-dev              stdlib   libc++
libcxx  libc++abi-dev           stdlib   libc++
arm     g++-aarch64-linux-gnu   command  aarch64-linux-gnu-g++
arm     qemu-user               command  qemu-aarch64
fortran gfortran                command  gfortran
preload libjemalloc2            library  libjemalloc.so.2
preload libtcmalloc-minimal4    library  libtcmalloc_minimal.so.4
counts  valgrind                command  valgrind
docs    doxygen                 command  doxygen
docs    doxygen-awesome-css     file     /usr/share/doxygen-awesome-css/doxygen-awesome.css
docs    python3-sphinx          python   sphinx
docs    furo                    python   furo
docs    python3-myst-parser     python   myst_parser
models  spin                    command  spin
models  relacy-dev              header   relacy/relacy.hpp
LIST
}

have_command() {
  local name
  for name in "$@"; do command -v "$name" >/dev/null && return 0; done
  return 1
}

have_header() {
  local header
  for header in "$@"; do
    c++ -x c++ -E - >/dev/null 2>&1 <<<"
#if !__has_include(<$header>)
#error absent
#endif" && return 0
  done
  return 1
}

have_library() { [[ $(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null) == *"$1"* ]]; }

have_module() { pkg-config --exists "$1" 2>/dev/null; }

have_python() {
  local python
  for python in python3 /usr/bin/python3; do "$python" -c "import $1" >/dev/null 2>&1 && return 0; done
  return 1
}

have_file() { [ -e "$1" ]; }

have_base() { base_python >/dev/null; }

have_runtime() {
  clang++ -x c++ "-fsanitize=$1" -o /dev/null - >/dev/null 2>&1 <<<'int main() {}'
}

have_stdlib() {
  clang++ -x c++ "-stdlib=$1" -o /dev/null - >/dev/null 2>&1 <<<'#include <string>
int main() { return std::string("x").size() != 1; }'
}

# Prints the packages of the named groups whose command or header is missing.
missing_packages() {
  local wanted groups package probe argument
  wanted=$(printf '|%s' "$@")
  while read -r groups package probe argument; do
    [[ ,$groups, =~ ,(${wanted#|}), ]] || continue
    # shellcheck disable=SC2086 # several names may give the same thing
    "have_$probe" $argument </dev/null || printf '%s ' "$package"
  done < <(needs)
}

# Makes sure that the named groups are installed, or ends with a sentence that says what to do.
need() {
  local missing as_root=() install apt_log
  missing=$(missing_packages "$@")
  missing=${missing% }
  [ -n "$missing" ] || return 0
  if ! command -v apt-get >/dev/null; then
    die "this system has no apt-get; install what these Debian packages hold, then run again (a header elsewhere is found by CPATH): $missing"
  fi
  install="apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=300 $missing"
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null ||
      die "packages are missing, and there is neither root nor sudo here to install them; as root run: $install"
    as_root=(sudo)
  fi
  apt_log=$(mktemp)
  say "dev: installing what is missing here: $missing"
  # shellcheck disable=SC2086 # the list is words
  if ! { lists_present || as_root_run apt-get update; } || ! as_root_run $install; then
    # The machine's package lists may be older than the archive.
    if ! { as_root_run apt-get update && as_root_run $install; }; then
      die "the packages could not be installed; as root run: apt-get update && $install"
    fi
  fi
  rm -f "$apt_log"
  missing=$(missing_packages "$@")
  [ -z "$missing" ] || die "still missing after the installation: ${missing% }; install by hand what they hold."
}

lists_present() { compgen -G "${RINGMAIN_APT_LISTS:-/var/lib/apt/lists}/*_Packages*" >/dev/null; }

as_root_run() {
  ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive "$@" >"$apt_log" 2>&1 ||
    { tail -n 5 "$apt_log" >&2 && return 1; }
}
