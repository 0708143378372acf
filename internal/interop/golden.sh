#!/bin/sh
# Writes DIR/gollama.sha256: sums of what the reference's tools make of DIR/gollama. The tools run in the chroot ORACLE_ROOT.
#   golden.sh DIR
set -eu
work=$ORACLE_ROOT/srv/golden
rm -rf "$work"
mkdir -p "$work"
cp -r "$1/gollama" "$work/"
cat > "$work/run.sh" <<'S'
set -eu
cd /srv/golden
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 NO_LOCAL_GGUF=1
for t in f16 bf16 f32 q8_0 auto; do
    python3 /usr/share/doc/llama.cpp-tools/scripts/convert_hf_to_gguf.py gollama --outfile gollama-$t.gguf --outtype $t
done
for t in Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q2_K Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K F16 BF16 F32 COPY; do
    llama-quantize gollama-f16.gguf gollama-$t.gguf $t
done
S
chroot "$ORACLE_ROOT" sh /srv/golden/run.sh > "$work/log.txt" 2>&1 || { tail -n 20 "$work/log.txt" >&2; exit 1; }
(cd "$work" && sha256sum gollama-f16.gguf gollama-bf16.gguf gollama-f32.gguf gollama-q8_0.gguf gollama-auto.gguf \
    gollama-[A-Z]*.gguf) > "$1/gollama.sha256"
