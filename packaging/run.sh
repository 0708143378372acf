#!/usr/bin/env bash
# Runs the commands for the action: quantizes MODEL to TYPES in OUTPUT, or converts it if there are none, checks the files
# and lists them. The inputs are in the environment, so that no shell interprets them.
set -euo pipefail
: "${MODEL:?a checkpoint or a GGUF file}" "${OUTPUT:?a folder}"
mkdir -p "$OUTPUT"
read -r -a types <<< "${TYPES:-}"
read -r -a flags <<< "${FLAGS:-}"
if [ ${#types[@]} = 0 ]; then
    ggconv ${flags[@]+"${flags[@]}"} --outfile "$OUTPUT" "$MODEL"
else
    ggquant ${flags[@]+"${flags[@]}"} --out-dir "$OUTPUT" "$MODEL" "${types[@]}"
fi
shopt -s nullglob
files=("$OUTPUT"/*.gguf)
for f in "${files[@]}"; do
    ggtool verify "$f"
done
if [ -n "${GITHUB_OUTPUT:-}" ]; then
    {
        echo 'files<<END-OF-FILES'
        printf '%s\n' "${files[@]}"
        echo END-OF-FILES
    } >> "$GITHUB_OUTPUT"
fi
