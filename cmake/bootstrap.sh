#!/usr/bin/env bash
# Installs what is needed to build and test residua on Debian, Ubuntu and their relatives; only what is missing.
set -euo pipefail

packages=(
    cmake ninja-build g++ pkg-config
    libxsimd-dev libhwy-dev
    libgtest-dev googletest libbenchmark-dev
    libcli11-dev libfmt-dev nlohmann-json3-dev libboost-dev libmpfr-dev
    gnuplot-nox
)
ci_packages=(ccache clang libclang-rt-dev clang-format-19 doxygen g++-aarch64-linux-gnu qemu-user valgrind)
bench_packages=(libeigen3-dev libsleef-dev libdnnl-dev)
matrix_packages=(g++-12 g++-12-aarch64-linux-gnu clang-14 clang-19 qemu-user)

usage() {
    cat <<'EOF'
Usage: cmake/bootstrap.sh [--ci] [--bench] [--matrix] [--help]

Installs the Debian packages that residua's examples, tests and benchmarks need. Packages that are there already are
left alone; when nothing is missing nothing is done and no network is used.

  --ci      also what the whole check (.ci/run) needs: Clang and its sanitizers, clang-format, Doxygen, ccache,
            a compiler for AArch64, emulators, valgrind
  --bench   also the libraries that the benchmarks compare with
  --matrix  also the compilers and the emulator that the preset `matrix` asks for
  --help    this text
EOF
}

fail() {
    printf 'bootstrap.sh: %s\n' "$2" >&2
    exit "$1"
}

for argument in "$@"; do
    case "$argument" in
        --ci) packages+=("${ci_packages[@]}"); ci_packages=() ;;
        --bench) packages+=("${bench_packages[@]}"); bench_packages=() ;;
        --matrix) packages+=("${matrix_packages[@]}"); matrix_packages=() ;;
        -h | --help) usage; exit 0 ;;
        *) fail 2 "unknown option '$argument' (try --help)" ;;
    esac
done

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    printf 'residua needs these, named as Debian names them:\n'
    printf '  %s\n' "${packages[@]}"
    fail 1 'no apt-get and dpkg here: install the packages listed above by other means'
fi

# A package of a foreign architecture does not count. dpkg-query fails when it does not know one of the names: that one
# is then simply absent from the answer.
native=$(dpkg --print-architecture)
declare -A installed=()
while read -r name architecture status; do
    if [[ $status == installed && ($architecture == "$native" || $architecture == all) ]]; then
        installed[$name]=yes
    fi
done < <(dpkg-query -W -f '${Package} ${Architecture} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null || true)

missing=()
for name in "${packages[@]}"; do
    [[ -n ${installed[$name]:-} ]] || missing+=("$name")
done
if ((${#missing[@]} == 0)); then
    exit 0
fi

as_root=()
if ((EUID != 0)); then
    command -v sudo >/dev/null || fail 1 "cannot install ${missing[*]}: not root, and there is no sudo"
    as_root=(sudo)
fi
apt_get() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 "$@" </dev/null
}

printf 'installing: %s\n' "${missing[*]}"
apt_get update || fail 1 'apt-get update failed'
apt_get install --yes --no-install-recommends "${missing[@]}" || fail 1 "could not install ${missing[*]}"
