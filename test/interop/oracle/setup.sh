#!/bin/bash
# Make (or complete) the chroot in which the reference converter runs.
#   setup.sh [ROOT]        default $ORACLE_ROOT, else /opt/oracle
# Needs root, debootstrap and a Debian mirror ($MIRROR).  Safe to run again; a chroot that
# already has the packages is only checked.
set -eu
ROOT=${1:-${ORACLE_ROOT:-/opt/oracle}}
# the Debian mirror that this machine itself uses (its main archive: the URI that ends in /debian)
MIRROR=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Component: main' | sort -u | grep -E '/debian/?$' | head -n 1)}
[ -n "$MIRROR" ] || { echo "setup.sh: no Debian mirror found; set MIRROR" >&2; exit 2; }
SUITE=${SUITE:-sid}
PKGS="llama.cpp-tools llama.cpp-tools-extra python3-gguf python3-torch python3-transformers
      python3-safetensors python3-tokenizers python3-sentencepiece python3-protobuf python3-yaml"

if [ ! -x "$ROOT/usr/bin/dpkg" ] && [ ! -x "$ROOT/bin/dpkg" ]; then
    command -v debootstrap >/dev/null || { apt-get update || true; apt-get install -y --no-install-recommends debootstrap; }
    mkdir -p "$ROOT"
    # an archive copy can be older than its Release file allows; debootstrap checks that since 1.0.124
    debootstrap --help 2>/dev/null | grep -q -- --no-check-valid-until && NOCHECK=--no-check-valid-until || NOCHECK=
    debootstrap --variant=minbase $NOCHECK "$SUITE" "$ROOT" "$MIRROR"
fi

mkdir -p "$ROOT/etc/apt/apt.conf.d"
cat > "$ROOT/etc/apt/apt.conf.d/99oracle" <<'C'
Acquire::Check-Valid-Until "false";
APT::Install-Recommends "false";
C
# the proxy and mirror settings of this machine, where it has any
for f in /etc/apt/apt.conf.d/*proxy* /etc/resolv.conf; do
    [ -f "$f" ] && mkdir -p "$ROOT$(dirname "$f")" && cp -L "$f" "$ROOT$f"
done
# some Python and torch start-up code wants /proc and /dev
mountpoint -q "$ROOT/proc" || mount -t proc proc "$ROOT/proc" 2>/dev/null || true
[ -c "$ROOT/dev/urandom" ] || mount --rbind /dev "$ROOT/dev" 2>/dev/null || true

need=
for p in $PKGS; do
    chroot "$ROOT" dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || need="$need $p"
done
if [ -n "$need" ]; then
    chroot "$ROOT" apt-get update
    # shellcheck disable=SC2086
    chroot "$ROOT" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $need
fi
mkdir -p "$ROOT/srv"
chroot "$ROOT" dpkg-query -W -f '${Package} ${Version}\n' $PKGS
chroot "$ROOT" test -f /usr/share/doc/llama.cpp-tools/scripts/convert_hf_to_gguf.py
echo "ready: $ROOT"
