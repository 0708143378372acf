#!/usr/bin/env bash
# Downloads a release for this machine and unpacks it, if its SHA-256 sum is right.
#   install.sh VERSION FOLDER
# VERSION may be latest: the last release.
# GGFORGE_RELEASES is where releases are: https://github.com/OWNER/REPOSITORY/releases/download.
# GGFORGE_SHA256 is the sum that the archive must have (default: the sum in the release's own SHA256SUMS).
set -euo pipefail
version=${1:?version, such as 1.2.3} folder=${2:?folder}
releases=${GGFORGE_RELEASES:?address of the releases}
if [ "$version" = latest ]; then
    page=$(curl --fail --silent --show-error --location --retry 3 --output /dev/null --write-out '%{url_effective}' "${releases%/download}/latest") || page=
    case $page in
    */tag/v[0-9]*) version=${page##*/tag/} ;;
    *) echo "install.sh: ${releases%/download} has no release yet: build the commands with make build" >&2; exit 4 ;;
    esac
fi
version=${version#v}
case $version in
*[!0-9A-Za-z.-]* | '') echo "install.sh: $version: want a version such as 1.2.3" >&2; exit 2 ;;
esac

case ${RUNNER_OS:-$(uname -s)} in
Linux) os=linux end=tar.gz ;;
macOS | Darwin) os=darwin end=tar.gz ;;
Windows | MINGW* | MSYS*) os=windows end=zip ;;
*) echo "install.sh: no release for ${RUNNER_OS:-$(uname -s)}" >&2; exit 4 ;;
esac
case ${RUNNER_ARCH:-$(uname -m)} in
X64 | x86_64) arch=amd64 ;;
ARM64 | arm64 | aarch64) arch=arm64 ;;
*) echo "install.sh: no release for ${RUNNER_ARCH:-$(uname -m)}" >&2; exit 4 ;;
esac

name=ggforge_${version}_${os}_$arch
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
get() { curl --fail --silent --show-error --location --retry 3 --output "$tmp/$1" "$releases/v$version/$1"; }
get "$name.$end"
want=${GGFORGE_SHA256:-}
if [ -z "$want" ]; then
    get SHA256SUMS
    want=$(awk -v file="$name.$end" '$2 == file {print $1}' "$tmp/SHA256SUMS")
fi
if command -v sha256sum > /dev/null; then
    found=$(sha256sum < "$tmp/$name.$end")
else
    found=$(shasum -a 256 < "$tmp/$name.$end")
fi
found=${found%% *}
if [ "$found" != "$want" ]; then
    echo "install.sh: $name.$end: SHA-256 sum $found, want ${want:-one in SHA256SUMS}" >&2
    exit 3
fi
mkdir -p "$folder"
case $end in
tar.gz) tar -xzf "$tmp/$name.$end" -C "$tmp" ;;
zip) unzip -q "$tmp/$name.$end" -d "$tmp" ;;
esac
cp -R "$tmp/$name/." "$folder"
