# Which Python runs the tests of the Python package? That of a virtual environment below build/, made once for each list of
# packages.
#
# Sourced by ./dev, after packages.bash.

# The first interpreter that the package can be built with, in an environment of its own.
base_python() {
  local python
  for python in python3 /usr/bin/python3; do
    "$python" - >/dev/null 2>&1 <<'PYTHON' && printf '%s' "$python" && return 0
import ensurepip, os, sys, sysconfig, venv
sys.exit(sys.version_info < (3, 11) or not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))
PYTHON
  done
  return 1
}

# Sets $python to the interpreter of build/venv; with --no-torch to that of build/venv-without-torch, and with --torch=VERSION
# to that of build/venv-torch-VERSION, which differs only in its PyTorch.
environment() {
  local folder="$root/build/venv" packages='' package base log version=${1-}
  version=${version#--no-torch} version=${version#--torch=}
  [ "${1-}" != --no-torch ] || folder+=-without-torch
  [ -z "$version" ] || folder+=-torch-$version
  while read -r package; do
    case ${1-}/$package in
      */'#'* | */ | --no-torch/torch*) continue ;;
      --torch=*/torch==*) package=torch==$version ;;
    esac
    packages+="${packages:+ }$package"
  done <"$root/tools/python_packages.txt"
  python=$folder/bin/python
  if [ "$(cat "$folder/packages.txt" 2>/dev/null)" = "$packages" ] && "$python" -c '' 2>/dev/null; then return 0; fi
  base=$(base_python) ||
    die "the Python package needs Python 3.11 or newer with its headers, venv and pip (Debian: python3-venv, python3-dev)."
  say "dev: making build/${folder##*/}: $packages"
  rm -rf "$folder"
  mkdir -p "${folder%/*}"
  log="$folder.log"
  # shellcheck disable=SC2086 # the list is words
  if ! "$base" -m venv "$folder" >"$log" 2>&1 || ! "$python" -m pip install --quiet $packages >>"$log" 2>&1; then
    if [ -n "$version" ] && [[ $(cat "$log") == *"No matching distribution found for torch=="* ]]; then
      rm -rf "$folder"
      die "pip finds no torch $version for this Python; 'pip index versions torch' lists what there is, and PIP_INDEX_URL says where it looks."
    fi
    tail -n 5 "$log" >&2
    die "build/${folder##*/} could not be filled; see build/${log##*/}, say where packages come from (PIP_INDEX_URL, PIP_FIND_LINKS), or leave torch out: ./dev test --no-torch"
  fi
  printf '%s\n' "$packages" >"$folder/packages.txt"
}

# Fills build/cuda-headers, or says why it cannot: by the interpreter of build/venv, which has pip.
cuda_headers() { "$python" "$root/tools/cuda_headers.py" "$root/tools/cuda_headers.txt" "$root/build/cuda-headers"; }

# Fills build/nccl/VERSION, or says why it cannot; without a version that of the tests.
nccl_wheel() { "$python" "$root/tools/nccl_wheels.py" "$root/tools/nccl_wheels.txt" "$root/build/nccl" "$@"; }
