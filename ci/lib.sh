# Shell functions that ./demo, ./test and .ci/run share: progress lines, Debian packages, Python environments. Bash.
# Nothing here needs root, make or a compiler to be there; what is missing is installed by apt when root, otherwise named.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${ANYNPU_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/anynpu}

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
  bold=$'\e[1m' dim=$'\e[2m' red=$'\e[31m' green=$'\e[32m' plain=$'\e[0m'
else
  bold='' dim='' red='' green='' plain=''
fi

step() { printf '%s==> %s%s\n' "$bold" "$*" "$plain"; }
note() { printf '%s    %s%s\n' "$dim" "$*" "$plain"; }
die() {
  printf '%serror:%s %s\n' "$red" "$plain" "$*" >&2
  exit 1
}

# Runs a command with its output in a log file; while a person watches, the last line is shown in place. A failure prints
# the end of the log.
logged() {
  local log=$1 status
  shift
  mkdir -p "$(dirname "$log")"
  if [ -t 1 ]; then
    "$@" >"$log" 2>&1 &
    local pid=$! line
    while kill -0 "$pid" 2>/dev/null; do
      line=$(tail -n 1 "$log" 2>/dev/null | tr -d '\r\033' | cut -c1-100)
      printf '\r\e[K%s    %s%s' "$dim" "$line" "$plain"
      sleep 0.3
    done
    printf '\r\e[K'
    wait "$pid"
  else
    "$@" >"$log" 2>&1 </dev/null
  fi
  status=$?
  if [ $status -ne 0 ]; then
    tail -n 40 "$log" >&2
    printf '%serror:%s %s failed; all of its output is in %s\n' "$red" "$plain" "$1" "$log" >&2
  fi
  return $status
}

# What a build needs, and what Python environments need. One list for ./test, ./demo and CI.
build_packages="g++ cmake ninja-build ccache git pkg-config python3 libhwy-dev libfmt-dev libcli11-dev nlohmann-json3-dev
  prometheus-cpp-dev libcpp-httplib-dev libyaml-cpp-dev libssl-dev libcrypt-dev"
test_packages="libgtest-dev libgmock-dev libbenchmark-dev iproute2 tmux prometheus chromium"
python_packages="python3-venv python3-dev"
arm64_packages="g++-aarch64-linux-gnu qemu-user-static"

missing_packages() {
  local p
  for p in "$@"; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || echo "$p"
  done
}

# Makes sure that Debian packages are installed.
need_packages() {
  command -v dpkg-query >/dev/null || die "this script installs with apt (Debian, Ubuntu); elsewhere install: $*"
  local missing
  missing=$(missing_packages "$@" | xargs)
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    die "these packages are missing: $missing
       install them once with: sudo apt-get update && sudo apt-get install -y $missing"
  fi
  note "installing $missing"
  export DEBIAN_FRONTEND=noninteractive
  # Lists may be stale or absent; one refresh, whose failure for a foreign source does not matter.
  logged "$cache/logs/apt-update.log" apt-get update -q || true
  logged "$cache/logs/apt.log" apt-get install -y -q --no-install-recommends $missing || die "apt-get could not install: $missing"
}

# find_python VERSION...: the first interpreter of these versions that can make environments: on PATH, of pyenv, or of uv.
find_python() {
  local version candidate
  for version in "$@"; do
    for candidate in "python$version" "$HOME/.pyenv/versions/$version".*/bin/python3 "$(uv python find "$version" 2>/dev/null)"; do
      if "$candidate" -c "import sys, venv, ensurepip; sys.exit('%d.%d' % sys.version_info[:2] != '$version')" >/dev/null 2>&1; then
        command -v "$candidate"
        return 0
      fi
    done
  done
  return 1
}

# The Python for an environment: one of these versions, where none is found the distribution's own with apt.
# ANYNPU_BASE_PYTHON overrides the choice for torch 2.13.0.
base_python() {
  [ -z "${ANYNPU_BASE_PYTHON:-}" ] || { command -v "$ANYNPU_BASE_PYTHON"; return; }
  find_python 3.11 3.12 3.10 3.13 && return 0
  need_packages $python_packages >&2 && find_python 3.11 3.12 3.10 3.13
}

# On x86-64 PyPI's torch is the CUDA build (several GB). When no torch wheel lies in pip's own find-links, the public index
# of CPU builds is asked too, if it can be reached; the version with +cpu wins there by the rules of pip.
cpu_index=https://download.pytorch.org/whl/cpu
install_requirements() {
  local python=$1 requirements=$2 alone plain_list
  if [ "$(uname -m)" = x86_64 ] && [ -z "${PIP_EXTRA_INDEX_URL:-}" ] && grep -q '^torch==' "$requirements" &&
    ! "$python" -m pip install -q --dry-run --no-index --no-deps "$(grep -m1 '^torch==' "$requirements")" >/dev/null 2>&1; then
    if "$python" -c "import urllib.request as u; u.urlopen('$cpu_index/torch/', timeout=20)" 2>/dev/null; then
      note "torch comes from its public index of CPU builds; set PIP_EXTRA_INDEX_URL to take another"
      export PIP_EXTRA_INDEX_URL=$cpu_index
    else
      note "the public index of CPU builds of torch cannot be reached: PyPI's torch is several GB"
    fi
  fi
  # "# alone": the wheel asks for one exact build of torch (2.9.0+cpu) that not every index has.
  alone=$(sed -n 's/ *# alone.*//p' "$requirements")
  plain_list=$(mktemp)
  grep -v '# alone' "$requirements" >"$plain_list"
  "$python" -m pip install --disable-pip-version-check --no-input -r "$plain_list" &&
    { [ -z "$alone" ] || "$python" -m pip install --disable-pip-version-check --no-input --no-deps $alone; }
  local status=$?
  rm -f "$plain_list"
  return $status
}

# python_env DIR REQUIREMENTS PYTHON: an environment that is kept until the requirements or the Python change.
python_env() {
  local dir=$1 requirements=$2 python=$3 stamp
  stamp=$({ "$python" -VV; cat "$requirements"; } | sha256sum | cut -c1-16)
  [ "$(cat "$dir/.anynpu-stamp" 2>/dev/null)" = "$stamp" ] && return 0
  note "Python environment $dir ($("$python" -V)); the first time this downloads torch"
  rm -rf "$dir"
  "$python" -m venv "$dir" || die "venv could not make $dir"
  logged "$cache/logs/pip-$(basename "$dir").log" install_requirements "$dir/bin/python" "$requirements" || die "pip could not install $requirements"
  echo "$stamp" >"$dir/.anynpu-stamp"
}

# Threads a build may use: cores, but at least 1.5 GB of memory for each compiler.
build_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/MemAvailable/ {print int($2 / 1500000)}' /proc/meminfo)
  [ "$memory" -ge 1 ] || memory=1
  echo $((cores < memory ? cores : memory))
}

# Compilations are kept between checkouts: absolute paths are made relative for the cache. The compiler's name counts too:
# pip's build would otherwise call another one than CMake does by itself.
ccache_settings() {
  export CC=${CC:-cc} CXX=${CXX:-c++}
  export CCACHE_BASEDIR=$top CCACHE_NOHASHDIR=1 CCACHE_COMPILERCHECK=content
  : "${CCACHE_MAXSIZE:=4G}"
  export CCACHE_MAXSIZE
}
