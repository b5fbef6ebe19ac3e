#!/usr/bin/env bash
# Cross-compiles all rooms for arm64 and runs the unit tests of base, tensor, kernels and ops under qemu: ci/arm64.sh [RESULT_XML]
set -u -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. ci/lib.sh

result=${1:-$top/build/results/ctest-arm64.xml}
sysroot=$cache/arm64
packages="libhwy-dev libgtest-dev libgmock-dev libfmt-dev libcli11-dev nlohmann-json3-dev
  prometheus-cpp-dev libcpp-httplib-dev libyaml-cpp-dev libssl-dev libcrypt-dev libbrotli-dev zlib1g-dev"

need_packages $build_packages $arm64_packages

# Debian's arm64 packages are unpacked beside, not installed: apt with lists of its own needs neither root nor a second
# architecture on the machine.
fetch_sysroot() {
  rm -rf "$sysroot.new" && mkdir -p "$sysroot.new/apt/lists/partial" "$sysroot.new/apt/archives/partial" || return 1
  local apt=(-o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::Lists="$sysroot.new/apt/lists"
    -o Dir::Cache="$sysroot.new/apt" -o APT::Sandbox::User=root -o Acquire::Languages=none -o Debug::NoLocking=1)
  apt-get "${apt[@]}" -q update
  # What the development packages link to has the version in its name; the C and C++ runtimes come with the compiler.
  local package shared
  shared=$(apt-cache "${apt[@]}" depends --recurse --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances \
    $packages | grep -E '^(lib(hwy|fmt|gtest|gmock|prometheus-cpp-core|cpp-httplib|yaml-cpp|ssl3|crypt1|brotli1)|zlib1g)' | sort -u)
  (cd "$sysroot.new/apt/archives" && apt-get "${apt[@]}" -q download $(printf '%s\n' $packages $shared | sort -u)) || return 1
  for package in "$sysroot.new"/apt/archives/*.deb; do dpkg -x "$package" "$sysroot.new" || return 1; done
  # One folder of libraries, as on a merged system, where links from the one to the other hold.
  if [ -d "$sysroot.new/lib/aarch64-linux-gnu" ]; then
    cp -a "$sysroot.new/lib/aarch64-linux-gnu/." "$sysroot.new/usr/lib/aarch64-linux-gnu/" || return 1
    local link
    find "$sysroot.new/usr/lib/aarch64-linux-gnu" -maxdepth 1 -lname '/*' | while read -r link; do
      ln -sf "$(basename "$(readlink "$link")")" "$link"
    done
  fi
  rm -rf "$sysroot.new/apt" "$sysroot"
  mv "$sysroot.new" "$sysroot"
  echo "$stamp" >"$sysroot/stamp"
}
stamp=$({ declare -f fetch_sysroot; echo $packages; } | sha256sum)
if [ "$(cat "$sysroot/stamp" 2>/dev/null)" != "$stamp" ]; then
  note "unpacking arm64 packages"
  logged "$cache/logs/arm64.log" fetch_sysroot || exit 1
fi

ccache_settings
logged build/logs/arm64-configure.log cmake --preset arm64 -DNPU_ARM64_SYSROOT="$sysroot" || exit 1
# Every library and program, and the tests that run here.
targets=($(cmake --build --preset arm64 --target help | sed -n 's/^\(lib_[a-z_0-9]*\|npu_core\|anynpu\|anynpu-monitor\|npu-smi\|hccn_tool\|\(base\|tensor\|kernels\|ops_core\|ops\)_test\):.*/\1/p'))
logged build/logs/arm64-build.log cmake --build --preset arm64 -j "$(build_jobs)" --target "${targets[@]}" || exit 1
mkdir -p "$(dirname "$result")"
# qemu-user answers each madvise with success: what memory is there cannot be asked (docs/limits.md).
ctest --test-dir build/arm64 -R '^(base|tensor|kernels|ops_core|ops)\.' -E '^base\.Reach\.' -j "$(nproc)" --output-on-failure --output-junit "$result.raw" \
  >build/logs/arm64-ctest.log 2>&1
grep -A40 '\*\*\*\(Failed\|Timeout\|Exception\)' build/logs/arm64-ctest.log | head -n 100
[ -s "$result.raw" ] || { tail -n 20 build/logs/arm64-ctest.log; exit 1; }
# The rooms get a name of their own in the summary.
sed 's/ name="\(base\|tensor\|kernels\|ops_core\|ops\)\./ name="arm64-\1./' "$result.raw" >"$result" && rm "$result.raw"
