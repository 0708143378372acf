package convert

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ggforge/arch"
	"ggforge/arch/config"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/checkpoint/ggml"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model"
	"ggforge/model/digest"
	"ggforge/rows"
)

// OldOptions has the settings that files of package ggml lack.
type OldOptions struct {
	Name        string  // default: the file's
	Description string  // default: the input's format
	Context     int64   // positions; default 2048
	Epsilon     float64 // of the norms; default 5e-6
	Grouped     int64   // query heads per key head; default: from the tensors
}

// The defaults of OldOptions. Source: convert_llama_ggml_to_gguf.py of llama.cpp.
const (
	oldContext = 2048
	oldEpsilon = 5e-6
)

// oldNames maps the tensor names of a Llama file before GGUF, of the model and of each layer, to GGUF names.
var oldNames = struct{ model, layer map[string]string }{
	map[string]string{"tok_embeddings": "token_embd", "norm": "output_norm", "output": "output"},
	map[string]string{
		"attention_norm": "attn_norm", "attention.wq": "attn_q", "attention.wk": "attn_k", "attention.wv": "attn_v",
		"attention.wo": "attn_output",
		"ffn_norm":     "ffn_norm", "feed_forward.w1": "ffn_gate", "feed_forward.w2": "ffn_down",
		"feed_forward.w3": "ffn_up",
	},
}

// oldName returns the GGUF name of a tensor, "" if it has none.
func oldName(name string, layers uint32) string {
	base, ok := strings.CutSuffix(name, ".weight")
	if !ok {
		return ""
	}
	if to := oldNames.model[base]; to != "" {
		return to + ".weight"
	}
	rest, ok := strings.CutPrefix(base, "layers.")
	bid, rest, _ := strings.Cut(rest, ".")
	if to := oldNames.layer[rest]; ok && to != "" && table.IsLayerBelow(bid, int64(layers)) {
		return "blk." + bid + "." + to + ".weight"
	}
	return ""
}

// OpenOld returns a file of package ggml as a GGUF model, and warnings. The caller closes the model. The weights are
// unchanged.
func OpenOld(path string, opt OldOptions) (*model.Model, []string, error) {
	f, err := ggml.Open(path)
	if err != nil {
		return nil, nil, err
	}
	m, warnings, err := fromOld(f, opt)
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, warnings, nil
}

func fromOld(f *ggml.File, opt OldOptions) (*model.Model, []string, error) {
	s := f.Sizes
	if s.Layer > config.MaxBlocks {
		return nil, nil, fault.Errorf(fault.Broken, "%d layers, want at most %d", s.Layer, config.MaxBlocks)
	}
	m := &model.Model{Path: f.Path, Files: []string{f.Path},
		Inputs: []digest.Input{{Role: model.SourceRole, Name: filepath.Base(f.Path), Path: f.Path}}, Shards: 1,
		Converted: true, Release: f.Close, Check: f.Unchanged}
	have := map[string]*ggml.Tensor{}
	var shapes []shape.Tensor
	var lost []string
	for i := range f.Tensors {
		t := &f.Tensors[i]
		name := oldName(t.Name, s.Layer)
		if name == "" {
			lost = append(lost, t.Name)
			continue
		}
		have[name] = t
		m.Tensors = append(m.Tensors, model.New(name, rows.Stored(t.NE, t.Type, t.Data(), t.Reader())))
		m.Bytes += t.Type.RowBytes(t.NE[0]) * gguf.Rows(t.NE)
		shapes = append(shapes, shape.Tensor{Name: name, From: t.Name, NE: t.NE})
	}
	if len(lost) > 0 {
		return nil, nil, fault.Errorf(fault.Unsupported,
			"%d tensors have no place in architecture llama with %d layers:%s", len(lost), s.Layer, fault.Lines(lost))
	}
	var missing []string
	for name, to := range oldNames.model {
		if have[to+".weight"] == nil {
			missing = append(missing, name+".weight")
		}
	}
	for n := range s.Layer {
		for name, to := range oldNames.layer {
			if have[fmt.Sprintf("blk.%d.%s.weight", n, to)] == nil {
				missing = append(missing, fmt.Sprintf("layers.%d.%s.weight", n, name))
			}
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return nil, nil, fault.Errorf(fault.Broken, "%d tensors are missing for %d layers:%s", len(missing), s.Layer,
			fault.Lines(missing))
	}
	grouped, context, epsilon := opt.Grouped, opt.Context, opt.Epsilon
	if grouped == 0 {
		if k := have["blk.0.attn_k.weight"].NE; len(k) == 2 && int64(s.Embd)%k[1] == 0 {
			grouped = int64(s.Embd) / k[1]
		}
	}
	if grouped == 0 || int64(s.Head)%grouped != 0 {
		return nil, nil, fault.Errorf(fault.Broken, "%d heads are not a multiple of %d for each key head",
			s.Head, grouped)
	}
	if context == 0 {
		context = oldContext
	}
	if epsilon == 0 {
		epsilon = oldEpsilon
	}
	if s.Embd%s.Head != 0 {
		return nil, nil, fault.Errorf(fault.Broken, "%d elements are not a multiple of %d heads", s.Embd, s.Head)
	}
	ff := have["blk.0.ffn_gate.weight"].NE
	name, description := opt.Name, opt.Description
	if name == "" {
		name = filepath.Base(f.Path)
	}
	if description == "" {
		description = fmt.Sprintf("converted from legacy %v %s format", f.Format, ggml.FileTypes[s.FileType])
	}
	for _, kv := range []struct {
		key   string
		value gguf.Value
	}{
		{gguf.KeyArchitecture, gguf.String("llama")},
		{"general.name", gguf.String(name)},
		{"general.description", gguf.String(description)},
		{gguf.KeyFileType, gguf.Uint32(s.FileType)},
		{"llama.context_length", gguf.Uint32(uint32(context))},
		{"llama.embedding_length", gguf.Uint32(s.Embd)},
		{"llama.block_count", gguf.Uint32(s.Layer)},
		{"llama.feed_forward_length", gguf.Uint32(uint32(ff[len(ff)-1]))},
		{"llama.rope.dimension_count", gguf.Uint32(s.Embd / s.Head)},
		{"llama.attention.head_count", gguf.Uint32(s.Head)},
		{"llama.attention.head_count_kv", gguf.Uint32(uint32(int64(s.Head) / grouped))},
		{"llama.attention.layer_norm_rms_epsilon", gguf.Float32(float32(epsilon))},
	} {
		m.Metadata.Set(kv.key, kv.value)
	}
	if err := oldVocab(m, f.Tokens); err != nil {
		return nil, nil, err
	}
	a, err := arch.LookupGGUF("llama")
	if err != nil {
		return nil, nil, err
	}
	errs, _ := a.Check(m.Metadata, shapes, nil)
	if err := table.Joined(errs); err != nil {
		return nil, nil, err
	}
	var warnings []string
	if opt.Epsilon == 0 {
		warnings = append(warnings,
			fmt.Sprintf("the file does not say the epsilon of its norms: taken as %g; that of Llama 1 is 1e-06, of "+
				"Llama 2 1e-05", oldEpsilon))
	}
	if opt.Context == 0 {
		warnings = append(warnings,
			fmt.Sprintf("the file has no context length: taken as %d; that of Llama 2 is 4096",
				oldContext))
	}
	if f.Format.Name == "GGML" {
		warnings = append(warnings,
			"the file has no scores of its tokens: texts are split in another way than the model knows")
	}
	return m, warnings, nil
}

// oldVocab adds the vocabulary to the metadata. The first three tokens are the unknown token, BOS and EOS, whatever
// their texts; then come the bytes.
func oldVocab(m *model.Model, tokens []ggml.Token) error {
	const (
		normal, unknown, control, single = 1, 2, 3, 6 // types of tokens
		firstByte, lastByte              = 3, 258
	)
	special := []string{"<unk>", "<s>", "</s>"}
	if len(tokens) < len(special) {
		return fault.Errorf(fault.Broken, "a vocabulary of %d tokens, want at least %d", len(tokens), len(special))
	}
	var texts, scores, kinds []gguf.Value
	for i, t := range tokens {
		kind := int32(normal)
		switch {
		case i == 0:
			t.Text, kind = special[i], unknown
		case i < len(special):
			t.Text, kind = special[i], control
		case t.Text == "":
			kind = control
		case i >= firstByte && i <= lastByte && len(t.Text) == 1:
			t.Text, kind = fmt.Sprintf("<0x%02X>", t.Text[0]), single
		default:
			t.Text = strings.ReplaceAll(t.Text, " ", "\u2581")
		}
		texts, scores, kinds = append(texts, gguf.String(t.Text)), append(scores, gguf.Float32(t.Score)),
			append(kinds, gguf.Int32(kind))
	}
	for _, kv := range []struct {
		key   string
		value gguf.Value
	}{
		{"tokenizer.ggml.model", gguf.String("llama")},
		{"tokenizer.ggml.pre", gguf.String("default")},
		{"tokenizer.ggml.tokens", gguf.Array(gguf.StringType, texts...)},
		{"tokenizer.ggml.scores", gguf.Array(gguf.Float32Type, scores...)},
		{"tokenizer.ggml.token_type", gguf.Array(gguf.Int32Type, kinds...)},
		{"tokenizer.ggml.unknown_token_id", gguf.Uint32(0)},
		{"tokenizer.ggml.bos_token_id", gguf.Uint32(1)},
		{"tokenizer.ggml.eos_token_id", gguf.Uint32(2)},
	} {
		m.Metadata.Set(kv.key, kv.value)
	}
	return nil
}
