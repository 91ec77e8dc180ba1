#!/usr/bin/env bash
# Fetches the xsimd and Highway of Debian's suite `stable` into build/newest, for the matrix. Nothing is installed, and the
# machine's own lists of packages are left alone: the suite is looked up where the machine's own packages come from.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

suite=stable
folder=$PWD/build/newest
rm -rf -- "$folder"
mkdir -p -- "$folder"/{lists/partial,cache/archives/partial}

read -r address < <(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
    awk '$1 == "Debian" && $2 == "Debian" && $3 == "main" {print $4}') || {
    printf 'fetch_newest.sh: no packages of Debian here (apt-get update lists them)\n' >&2
    exit 1
}
printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' "$address" "$suite" \
    >"$folder/sources.list"

apt_get() {
    apt-get -q -o Dpkg::Use-Pty=0 -o Dir::Etc::SourceList="$folder/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists="$folder/lists" -o Dir::Cache="$folder/cache" -o APT::Sandbox::User="$(id -un)" \
        -o Acquire::Languages=none "$@" </dev/null
}
apt_get update
(cd -- "$folder" && apt_get download libxsimd-dev libhwy-dev)
for package in "$folder"/*.deb; do
    dpkg -x "$package" "$folder/root"
done
rm -rf -- "$folder/sources.list" "$folder/lists" "$folder/cache"

printf 'cmake --preset matrix -DRESIDUA_MATRIX_NEWEST_XSIMD=%s -DRESIDUA_MATRIX_NEWEST_HIGHWAY=%s\n' \
    "$folder/root/usr/include" "$folder/root/usr/include"
