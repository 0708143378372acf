package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"ggforge/test/hftest"
)

// settings are those of Kimi-K2-Base, a published mixture of experts of 1.03 trillion weights with the layout of
// DeepSeek-V3: https://huggingface.co/moonshotai/Kimi-K2-Base, config.json.
const settings = `{"hidden_size": 7168, "num_hidden_layers": 61, "first_k_dense_replace": 1, "intermediate_size": 18432,
	"moe_intermediate_size": 2048, "n_routed_experts": 384, "n_shared_experts": 1, "num_experts_per_tok": 8, "n_group": 1,
	"topk_group": 1, "num_attention_heads": 64, "num_key_value_heads": 64, "q_lora_rank": 1536, "kv_lora_rank": 512,
	"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 163840,
	"routed_scaling_factor": 2.827, "max_position_embeddings": 131072}`

var layerOf = regexp.MustCompile(`^model\.layers\.(\d+)\.`)

// made is a checkpoint that takes no room: its files have headers, and holes where the weights would be.
type made struct {
	dir              string
	weights, tensors int64
	bytes            int64
	shards           int
}

// makeModel writes the checkpoint: a shard for each layer, and one for the rest, as published, in BF16.
func makeModel(dir string) (*made, error) {
	spec := hftest.Lookup("deepseek_v3")
	small, err := spec.Write(dir, spec.All()[0])
	if err != nil {
		return nil, err
	}
	config, tensors, err := spec.Example(hftest.Variant{Set: settings})
	if err != nil {
		return nil, err
	}
	old, err := filepath.Glob(filepath.Join(small, "*.safetensors*"))
	if err != nil {
		return nil, err
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(small, "config.json"), config, 0o666); err != nil {
		return nil, err
	}
	m := &made{dir: small, tensors: int64(len(tensors))}
	shards := map[int][]hftest.Tensor{}
	for _, t := range tensors {
		at := 0
		if f := layerOf.FindStringSubmatch(t.Name); f != nil {
			at, _ = strconv.Atoi(f[1])
			at++
		}
		shards[at] = append(shards[at], t)
	}
	m.shards = len(shards)
	index := map[string]string{}
	for i := range m.shards {
		name := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, m.shards)
		size, err := m.shard(filepath.Join(small, name), shards[i])
		if err != nil {
			return nil, err
		}
		m.bytes += size
		for _, t := range shards[i] {
			index[t.Name] = name
		}
	}
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"total_size": m.bytes}, "weight_map": index})
	if err != nil {
		return nil, err
	}
	return m, os.WriteFile(filepath.Join(small, "model.safetensors.index.json"), text, 0o666)
}

// shard writes a file of tensors in BF16, those of the router's bias in F32.
func (m *made) shard(path string, tensors []hftest.Tensor) (int64, error) {
	type entry struct {
		DType   string   `json:"dtype"`
		Shape   []int64  `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	header, at := map[string]entry{}, int64(0)
	for _, t := range tensors {
		e := entry{DType: "BF16", Shape: t.Shape}
		n := int64(2)
		if filepath.Ext(t.Name) == ".e_score_correction_bias" {
			e.DType, n = "F32", 4
		}
		weights := int64(1)
		for _, d := range t.Shape {
			weights *= d
		}
		m.weights += weights
		e.Offsets = [2]int64{at, at + n*weights}
		at = e.Offsets[1]
		header[t.Name] = e
	}
	text, err := json.Marshal(header)
	if err != nil {
		return 0, err
	}
	data := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	if err := os.WriteFile(path, data, 0o666); err != nil {
		return 0, err
	}
	return at, os.Truncate(path, int64(len(data))+at)
}
