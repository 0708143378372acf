package hftest

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
)

// Adapted are the specs with a golden of an adapter: one for each kind of mapping of a pair (permuted, split, joined,
// stacked, transposed), and specs whose adapter has more than pairs, or another order than names, or a draft model as
// its base.
var Adapted = []string{"llama", "gpt2", "mixtral", "qwen3_moe", "phi3", "bloom", "gemma2", "internlm2", "muse-glimmer",
	"minimax_01", "deepseek-ocr", "granite_switch", "dflash"}

// AdapterConfig is the adapter_config.json of WriteAdapter.
const AdapterConfig = `{"peft_type": "LORA", "r": 4, "lora_alpha": 8, "base_model_name_or_path": "acme/base"}`

// notLinear are parts of names of matrices for which PEFT makes no pairs: embeddings, vision and audio encoders, and
// parameters that are no layer's weight.
var notLinear = []string{"emb", "wte", "wpe", "norm", "ln_", "conv", "relative_attention_bias", "position", "time_",
	"token_type", "visual", "vision", "audio"}

// WriteAdapter makes an adapter in the directory dir, with a pair for every linear layer
// of the checkpoint in base but those of the weights without, and returns how many
// there are.
func WriteAdapter(dir, base string, without ...string) (pairs int, err error) {
	ck, err := safetensorstest.OpenDir(base)
	if err != nil {
		return 0, err
	}
	defer ck.Close()
	var list []safetensorstest.Tensor
	for _, w := range ck.Tensors() {
		module, ok := strings.CutSuffix(w.Name, ".weight")
		plain := slices.Contains([]safetensors.DType{safetensors.F32, safetensors.F16, safetensors.BF16}, w.DType)
		if !ok || !plain || module == "shared" || // the embedding of T5
			len(w.Shape) != 2 || slices.Contains(without, w.Name) ||
			slices.ContainsFunc(notLinear, func(part string) bool { return strings.Contains(module, part) }) {
			continue
		}
		in, out := w.Shape[1], w.Shape[0]
		if strings.Contains(module, ".c_") && filepath.Base(base) == "gpt2" { // stored transposed
			in, out = out, in
		}
		list = append(list, loraSide("base_model.model."+module+".lora_A.weight", 4, in),
			loraSide("base_model.model."+module+".lora_B.weight", out, 4))
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(dir, "adapter_config.json"), []byte(AdapterConfig), 0o666); err != nil {
		return 0, err
	}
	return len(list) / 2, safetensorstest.Write(filepath.Join(dir, "adapter_model.safetensors"), list, nil)
}

// loraSide returns matrix A or B of a pair, with numbers that depend on its name.
func loraSide(name string, shape ...int64) safetensorstest.Tensor {
	data := make([]byte, 0, 4*shape[0]*shape[1])
	h := fnv.New32a()
	h.Write([]byte(name))
	for i := range shape[0] * shape[1] {
		v := float32((i*2654435761+int64(h.Sum32()))%2003-1001) / 1024 // exact, whatever the machine
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return safetensorstest.Tensor{Name: name, DType: safetensors.F32, Shape: shape, Data: data}
}
