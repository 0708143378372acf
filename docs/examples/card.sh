#!/bin/sh
# Draws the card of a release as the hub shows it, on a wide screen and on a telephone:
#   card.sh README.md PICTURE.png [NARROW.png]
# It takes cmark-gfm and chromium, from PATH or from the root folder ORACLE_ROOT.
set -eu
card=$1 wide=$2 narrow=${3:-}
work=$(mktemp -d "${ORACLE_ROOT:-}/tmp/card.XXXXXX")
trap 'rm -rf "$work"' EXIT
in=${work#"${ORACLE_ROOT:-}"}
run() { if [ -n "${ORACLE_ROOT:-}" ]; then chroot "$ORACLE_ROOT" "$@"; else "$@"; fi; }
sed '1{/^---$/!b};1,/^---$/d' "$card" > "$work/card.md" # without front matter
{
    cat <<'EOF'
<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><style>
body { font: 16px/1.5 "DejaVu Sans", sans-serif; color: #1f2328; max-width: 860px; margin: 0 auto; padding: 16px; background: #fff }
h1, h2 { border-bottom: 1px solid #d1d9e0; padding-bottom: .3em }
table { border-collapse: collapse; display: block; overflow: auto; font-size: 14px }
td, th { border: 1px solid #d1d9e0; padding: 5px 10px } tr:nth-child(2n) { background: #f6f8fa }
code { background: #eff1f3; padding: .15em .35em; border-radius: 5px; font-size: 87% } a { color: #0969da; text-decoration: none }
pre { background: #f6f8fa; padding: 14px; border-radius: 6px; overflow: auto } pre code { background: none; padding: 0 }
</style><body>
EOF
    run cmark-gfm -e table -e autolink -e strikethrough "$in/card.md"
} > "$work/card.html"
draw() { # width, height, picture
    run chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size="$1,$2" \
        --screenshot="$in/card.png" "file://$in/card.html" > /dev/null 2>&1
    cp "$work/card.png" "$3"
}
draw 1000 3900 "$wide"
[ -z "$narrow" ] || draw 400 5200 "$narrow"
