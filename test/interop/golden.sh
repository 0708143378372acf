#!/bin/sh
# Writes golden files under DEST, the root of this repository or of a copy of it, anew with the reference's tools in the
# chroot ORACLE_ROOT. The README of each testdata folder lists the files of its step.
#   golden.sh DEST [STEP ...]    STEP: pipeline tokenizer general jinja rope torchmath defaults matrices recipes quants tables unicode
#                                encode arch lora (all of them without one), and realmatrix, whose last digits depend on the CPU
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dest=$(cd "$1" && pwd)
shift
in=${INTEROP_WORK:-/srv/interop}/golden # inside the chroot
work=$ORACLE_ROOT$in
rm -rf "$work"
mkdir -p "$work"
cp -r "$here/oracle" "$work/oracle"

# run DIR COMMAND: runs a shell command in a folder of the chroot; what it prints is kept for the case of an error.
# PyTorch uses its AVX2 code, as for the existing goldens: sums and powers depend on it.
run() {
    chroot "$ORACLE_ROOT" env -C "$in/$1" HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 TRANSFORMERS_VERBOSITY=error NO_LOCAL_GGUF=1 PYTHONDONTWRITEBYTECODE=1 \
        ATEN_CPU_CAPABILITY=avx2 \
        sh -euc "$2" > "$work/log.txt" 2>&1 || { tail -n 20 "$work/log.txt" >&2; exit 1; }
}

# Converts the real model to every output type and quantizes it by every recipe that needs no importance matrix.
pipeline() {
    cp -r "$dest/test/testdata/gollama" "$work/"
    run . '
        for t in f16 bf16 f32 q8_0 auto; do
            python3 /usr/share/doc/llama.cpp-tools/scripts/convert_hf_to_gguf.py gollama --outfile gollama-$t.gguf --outtype $t
        done
        for t in Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q2_K Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K F16 BF16 F32 COPY; do
            llama-quantize gollama-f16.gguf gollama-$t.gguf $t
        done'
    (cd "$work" && sha256sum gollama-f16.gguf gollama-bf16.gguf gollama-f32.gguf gollama-q8_0.gguf gollama-auto.gguf \
        gollama-[A-Z]*.gguf) > "$dest/test/testdata/gollama.sha256"
}

tokenizer() {
    cp -r "$dest/tokenizer/testdata" "$work/tokenizer"
    run tokenizer 'python3 make_golden.py ../oracle; python3 make_classes.py ../oracle'
    cp -r "$work/tokenizer/cases.json" "$work/tokenizer/classes.json" "$work/tokenizer"/small-* "$dest/tokenizer/testdata/"
}

general() {
    cp -r "$dest/convert/general/testdata" "$work/general"
    run general 'python3 make_golden.py .'
    cp "$work/general"/*.json "$dest/convert/general/testdata/"
}

jinja() {
    cp -r "$dest/internal/text/jinja/testdata" "$work/jinja"
    run jinja 'python3 make_golden.py golden.json'
    cp "$work/jinja/golden.json" "$dest/internal/text/jinja/testdata/"
}

rope() {
    cp -r "$dest/arch/parts/testdata" "$work/rope"
    run rope 'python3 make_golden.py > llama3.tsv'
    cp "$work/rope/llama3.tsv" "$dest/arch/parts/testdata/"
}

torchmath() {
    cp -r "$dest/internal/kernel/torchmath/testdata" "$work/torchmath"
    run torchmath 'python3 make_golden.py > pow.tsv; python3 make_exp.py > exp.tsv; python3 make_erfinv.py > erfinv.tsv
        python3 make_softplus.py > softplus.tsv; python3 make_bilinear.py > bilinear.tsv; python3 make_trig.py sin > sin.tsv; python3 make_trig.py cos > cos.tsv; python3 make_positions.py > positions.tsv'
    cp "$work/torchmath/"*.tsv "$dest/internal/kernel/torchmath/testdata/"
}

# The model types are those of the file; DEFAULTS names more, separated by blanks.
defaults() {
    cp "$here/defaults.py" "$work/"
    types=$({ sed -n 's/^"\([^"]*\)": {.*/\1/p' "$dest/arch/config/defaults.json"; printf '%s\n' ${DEFAULTS:-}; } | LC_ALL=C sort -u | tr '\n' ' ')
    run . "python3 defaults.py $types > defaults.json"
    cp "$work/defaults.json" "$dest/arch/config/"
}

# quant FOLDER: copies the scripts that make the inputs of the quantizers.
quant() {
    mkdir -p "$work/$1"
    cp "$dest/quants/testdata"/*.py "$work/$1/"
}

matrices() {
    quant matrices
    cp "$dest/quantize/testdata"/*.py "$work/matrices/"
    run matrices 'python3 imatrix_golden.py imatrix_golden.json --samples samples'
    cp "$work/matrices/imatrix_golden.json" "$dest/quantize/testdata/"
    cp "$work/matrices/samples"/* "$dest/imatrix/testdata/"
    samples
}

realmatrix() {
    quant realmatrix
    cp "$dest/imatrix/testdata/imatrix_real.py" "$work/realmatrix/"
    run realmatrix 'python3 imatrix_real.py'
    for f in dat gguf; do
        cp "$work/realmatrix/real.$f" "$dest/imatrix/testdata/imatrix_real.$f"
    done
    samples
}

# samples lists the contents of the importance matrices.
samples() {
    cp -r "$dest/imatrix/testdata" "$work/samples"
    run samples 'python3 make_samples.py . > samples.txt'
    cp "$work/samples/samples.txt" "$dest/imatrix/testdata/"
}

recipes() {
    mkdir "$work/recipes"
    cp "$dest/quantize/testdata/recipe_golden.py" "$work/recipes/"
    run recipes 'python3 recipe_golden.py recipe_golden.json'
    gzip -9nc "$work/recipes/recipe_golden.json" > "$dest/quantize/testdata/recipe_golden.json.gz"
}

quants() {
    quant quants
    run quants 'python3 quant_golden.py quant_golden.json; python3 random_blocks.py > random_blocks.json; python3 reference_golden.py'
    cp "$work/quants/quant_golden.json" "$work/quants/quant_golden.bin.gz" "$work/quants/random_blocks.json" "$work/quants/reference_golden.json" "$dest/quants/testdata/"
}

# The lookup tables of the formats, from which go generate ./quants/... makes Go.
tables() {
    quant tables
    run tables 'python3 quant_tables.py quant_tables.json'
    cp "$work/tables/quant_tables.json" "$dest/test/gen/grids/"
    (cd "$dest" && go generate ./quants/...)
}

unicode() {
    cp -r "$dest/tokenizer/internal/uni" "$work/uni"
    run uni 'python3 make_tables.py'
    cp "$work/uni/tables.txt" "$work/uni/lower.txt" "$dest/tokenizer/internal/uni/"
    cp "$dest/tokenizer/vocab/make_tables.py" "$work/"
    run . 'python3 make_tables.py > chars.txt'
    cp "$work/chars.txt" "$dest/tokenizer/vocab/"
}

# tests ARGUMENT ...: runs the tests that write goldens, with the commands in GGFORGE_BIN.
tests() {
    (cd "$dest" && go test -count=1 -timeout 100m ./test/interop "$@")
}

encode() {
    GOLDEN=write tests -run 'EncodeGolden|VocabGolden|IDsGolden'
}

# SPEC names the specs of test/hftest (a pattern, or "new" for those without a golden).
arch() {
    tests -run TestArchGolden -golden "${SPEC:-*}"
}

# Adapters of the specs that test/hftest lists.
lora() {
    tests -run TestAdapterGolden -golden '*'
}

if [ $# = 0 ]; then
    set -- pipeline tokenizer general jinja rope torchmath defaults matrices recipes quants tables unicode encode arch lora
fi
for step; do
    echo "golden: $step"
    "$step"
done
rm -rf "$work"
