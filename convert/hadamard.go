package convert

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/checkpoint"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
)

// hadamardFile lists the weights of a model that were multiplied by Hadamard matrices; at run time, the inputs of these
// weights are transformed. The weights stay unchanged; the file's content becomes metadata.
const hadamardFile = "hadamard_packing.json"

// fold is the content of hadamardFile. Source: the keys and conditions of llama.cpp's converter.
type fold struct {
	block   int64
	signs   bool
	widths  []int32 // ascending
	values  []int32 // signs, for each width as many
	tied    bool
	weights []folded
}

// folded is a tensor of the checkpoint.
type folded struct {
	name   string
	lookup bool // an embedding: rows are transformed back after the lookup
}

// readFold reads hadamardFile, nil without one. As in the reference, only a regular
// file counts.
func readFold(files *checkpoint.Dir) (*fold, error) {
	st, err := files.Stat(hadamardFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, nil
	}
	data, err := files.ReadFile(hadamardFile)
	if err != nil {
		return nil, err
	}
	v, err := pyjson.Parse(data)
	if err != nil {
		return nil, fault.Errorf(fault.Broken, "%s: %w", hadamardFile, err)
	}
	o, _ := v.(*pyjson.Object)
	if o == nil {
		return nil, fault.Errorf(fault.Broken, "%s: want an object, found %s", hadamardFile, pyjson.Describe(v))
	}
	f, err := parseFold(o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", hadamardFile, err)
	}
	return f, nil
}

// integer returns v as a whole number; ok is false for others.
func integer(v any) (n int64, ok bool) {
	i, ok := pyjson.Integer(v)
	if !ok || !i.IsInt64() {
		return 0, false
	}
	return i.Int64(), true
}

func parseFold(o *pyjson.Object) (*fold, error) {
	f := &fold{}
	want := func(key string, found any, want string) error {
		return fault.Errorf(fault.Unsupported, "%s is %s, want %s", key, pyjson.Describe(found), want)
	}
	version, _ := integer(o.Get("schema_version"))
	if version < 1 || version > 3 {
		return nil, want("schema_version", o.Get("schema_version"), "1, 2 or 3")
	}
	if o.Get("kind") != "hadamard-weight-fold" {
		return nil, want("kind", o.Get("kind"), `"hadamard-weight-fold"`)
	}
	if o.Get("status") != "requires-matching-runtime" {
		return nil, want("status", o.Get("status"), `"requires-matching-runtime"`)
	}
	transform, _ := o.Get("transform").(*pyjson.Object)
	if transform == nil {
		return nil, want("transform", o.Get("transform"), "an object")
	}
	var ok bool
	if f.block, ok = integer(transform.Get("block_size")); !ok || f.block < 1 || f.block > 1<<20 ||
		f.block&(f.block-1) != 0 {
		return nil, want("transform.block_size", transform.Get("block_size"), "a power of two")
	}
	if transform.Get("name") != "normalized-signed-sylvester-walsh-hadamard" {
		return nil, want("transform.name", transform.Get("name"), `"normalized-signed-sylvester-walsh-hadamard"`)
	}
	switch transform.Get("sign_mode") {
	case "identity":
	case "explicit":
		f.signs = true
		if err := f.readSigns(o.Get("signs")); err != nil {
			return nil, err
		}
	default:
		return nil, want("transform.sign_mode", transform.Get("sign_mode"), `"identity" or "explicit"`)
	}
	switch tied := o.Get("tied_output").(type) {
	case nil:
	case bool:
		f.tied = tied
	default:
		return nil, want("tied_output", tied, "true or false")
	}
	if f.tied != (version == 3) {
		return nil, fault.Errorf(fault.Broken,
			"schema_version is %d and tied_output %v: 3 goes with true, others with false", version, f.tied)
	}
	list, _ := o.Get("tensors").([]any)
	if len(list) == 0 {
		return nil, want("tensors", o.Get("tensors"), "a list")
	}
	for i, v := range list {
		t, _ := v.(*pyjson.Object)
		name, ok := t.Get("name").(string)
		if !ok {
			return nil, fault.Errorf(fault.Broken, "tensors[%d] has no name", i)
		}
		if axis, ok := integer(t.Get("axis")); !ok || axis != -1 {
			return nil, want("axis of "+strconv.Quote(name), t.Get("axis"), "-1")
		}
		role := t.Get("role")
		switch role {
		case nil, "fold-before-matmul", "inverse-after-lookup":
		default:
			return nil, want("role of "+strconv.Quote(name), role, `"fold-before-matmul" or "inverse-after-lookup"`)
		}
		f.weights = append(f.weights, folded{name, role == "inverse-after-lookup"})
	}
	return f, nil
}

// readSigns reads the sign vectors, one per length.
func (f *fold) readSigns(v any) error {
	o, _ := v.(*pyjson.Object)
	if o.Empty() {
		return fault.Errorf(fault.Broken, "signs is %s, want vectors by their widths", pyjson.Describe(v))
	}
	vectors := map[int64][]any{}
	for name, v := range o.Map() {
		width, err := strconv.ParseInt(name, 10, 32)
		list, _ := v.([]any)
		if err != nil || width < 1 || width%f.block != 0 || int64(len(list)) != width || vectors[width] != nil {
			return fault.Errorf(fault.Broken,
				"signs[%q]: %d numbers, want as many as the width says, a multiple of block_size %d", name,
				len(list), f.block)
		}
		vectors[width] = list
		f.widths = append(f.widths, int32(width))
	}
	slices.Sort(f.widths)
	for _, width := range f.widths {
		for i, v := range vectors[int64(width)] {
			n, ok := integer(v)
			if !ok || n != 1 && n != -1 {
				return fault.Errorf(fault.Broken, "signs[%d][%d] is %s, want 1 or -1", width, i, pyjson.Describe(v))
			}
			f.values = append(f.values, int32(n))
		}
	}
	return nil
}

// names returns the names of folded tensors, without "language_model.".
func (f *fold) names() map[string]bool {
	if f == nil {
		return nil
	}
	names := map[string]bool{}
	for _, w := range f.weights {
		names[strings.ReplaceAll(w.name, "language_model.", "")] = true
	}
	return names
}

// foldedTensors are the tensors for which runtimes transform the inputs, in architectures whose graph says so.
var foldedTensors = regexp.MustCompile(
	`^(output|blk\.\d+\.(attn_(q|k|v|qkv|gate|output)|ffn_(gate|up|down)(_exps|_shexp)?|ffn_gate_up_exps|ssm_out))\.weight$`)

// foldedArchs returns the architectures in which runtimes transform the inputs, sorted.
func foldedArchs() []string {
	return slices.DeleteFunc(slices.Sorted(slices.Values(graph.Names())), func(s string) bool {
		return !graph.Of(s).Folds
	})
}

// foldPairs returns the metadata of folded weights.
func (j *Job) foldPairs(cfg *config.View) (m gguf.Metadata, err error) {
	f := j.model.fold
	if f == nil {
		return nil, nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", hadamardFile, err)
		}
	}()
	if archs := foldedArchs(); !slices.Contains(archs, j.Arch.Name) {
		return nil, fault.Errorf(fault.Unsupported,
			"programs do not transform the activations of architecture %s, want one of %s", j.Arch.Name,
			strings.Join(archs, ", "))
	}
	var weights, inverse []string
	for _, w := range f.weights {
		name, err := j.foldedName(cfg, w.name)
		if err != nil {
			return nil, err
		}
		switch {
		case w.lookup && name != "token_embd.weight":
			return nil, fault.Errorf(fault.Unsupported,
				"tensor %q becomes %q: only that of token_embd.weight is undone after a row has been looked up",
				w.name, name)
		case w.lookup:
			inverse = append(inverse, name)
		case !foldedTensors.MatchString(name):
			return nil, fault.Errorf(fault.Unsupported, "tensor %q becomes %q: programs do not transform its inputs",
				w.name, name)
		default:
			weights = append(weights, name)
		}
	}
	if weights, err = j.foldFused(weights); err != nil {
		return nil, err
	}
	tie, _ := cfg.Value("tie_word_embeddings").(bool)
	switch {
	case f.tied && (len(inverse) != 1 || !tie):
		return nil, fault.Errorf(fault.Broken,
			"tied_output: want tie_word_embeddings, and the embedding among the tensors, once")
	case f.tied && slices.ContainsFunc(j.Plan, func(t Tensor) bool { return t.Name == "output.weight" }):
		return nil, fault.Errorf(fault.Broken, "tied_output, but the checkpoint has an output matrix of its own")
	case !f.tied && len(inverse) > 0 && tie:
		return nil, fault.Errorf(fault.Broken,
			"a folded embedding that is the output matrix, too: want schema_version 3 and tied_output")
	}
	set := func(key string, v gguf.Value) { m.Set("prism.hadamard."+key, v) }
	version, mode := uint32(1), "identity"
	if f.tied {
		version = 2
		set("tied_output", gguf.Bool(true))
	}
	if f.signs {
		mode = "explicit"
	}
	set("version", gguf.Uint32(version))
	set("block_size", gguf.Uint32(uint32(f.block)))
	set("transform", gguf.String("normalized-sylvester-walsh-hadamard"))
	set("axis", gguf.String("input-last-dimension"))
	set("sign_mode", gguf.String(mode))
	if len(weights) > 0 { // the reference writes no empty arrays
		set("weight_names", gguf.Strings(weights))
	}
	if f.signs {
		set("sign_widths", gguf.Int32s(f.widths))
		set("sign_values", gguf.Int32s(f.values))
	}
	if len(inverse) > 0 {
		set("inverse_weight_names", gguf.Strings(inverse))
	}
	if slices.ContainsFunc(weights, func(name string) bool { return strings.HasSuffix(name, ".ssm_out.weight") }) &&
		strings.HasPrefix(j.Arch.Name, "qwen35") {
		nk, _, nv, _, err := parts.DeltaHeads(cfg)
		if err != nil {
			return nil, err
		}
		if nk != nv { // see spreadColumns
			set("gdn_v_grouped", gguf.Bool(true))
		}
	}
	return m, nil
}

// foldedName returns the name in the file of a folded tensor; the name of experts may lack the number, for all of them.
func (j *Job) foldedName(cfg *config.View, name string) (string, error) {
	for _, name := range []string{name, strings.Replace(name, ".experts.", ".experts.0.", 1)} {
		layout, err := j.Arch.Layout(cfg, []string{name})
		if err != nil {
			return "", err
		}
		if len(layout.Outputs) == 1 {
			o := layout.Outputs[0]
			if outputs := o.Row.Outputs(o.Layer.Bid, o.Suffix); len(outputs) == 1 {
				return outputs[0], nil
			}
		}
	}
	return "", fault.Errorf(fault.Broken, "tensor %q has no place of its own in architecture %s", name, j.Arch.Name)
}

// foldFused replaces the names of Q, K and V in layers with a fused QKV tensor; it comes last.
func (j *Job) foldFused(names []string) ([]string, error) {
	if !j.options.FuseQKV || j.Arch.Fused&table.FusedQKV == 0 {
		return names, nil
	}
	var fused []int64
	for _, t := range j.Plan {
		rest, ok := strings.CutPrefix(t.Name, "blk.")
		bid, rest, _ := strings.Cut(rest, ".")
		if n, err := strconv.ParseInt(bid, 10, 64); ok && err == nil && rest == "attn_qkv.weight" {
			fused = append(fused, n)
		}
	}
	slices.Sort(fused)
	for _, bid := range fused {
		prefix := "blk." + strconv.FormatInt(bid, 10) + "."
		parts := []string{prefix + "attn_q.weight", prefix + "attn_k.weight", prefix + "attn_v.weight"}
		left := slices.DeleteFunc(slices.Clone(names), func(s string) bool { return slices.Contains(parts, s) })
		switch len(names) - len(left) {
		case 0:
		case len(parts):
			names = append(left, prefix+"attn_qkv.weight")
		default:
			return nil, fault.Errorf(fault.Unsupported,
				"query, key and value of layer %d are fused, but not all of them are folded", bid)
		}
	}
	return names, nil
}
