package hftest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ggforge/arch"
	"ggforge/arch/config"
)

// Published returns a spec for a published configuration, with small weights: files are config.json and the files next
// to it, by name. Tensors, tokenizer and sizes are from the most similar spec of its class. Sizes become small and
// lists of layers are cut; other keys are unchanged: rope settings, windows, scales, flags, head sizes. Matrices are
// stored as in quantization_config or hf_quant_config.json.
//
// like lists the classes that share a table with a class.
func Published(name string, files map[string][]byte, encoder bool, like func(class string) []string) (*Spec, error) {
	cfg, err := parseObject(infinity.ReplaceAllString(string(files[config.ConfigFile]), `$1"`+infinite+`"`))
	if err != nil {
		return nil, fmt.Errorf("hftest: %s: %w", name, err)
	}
	p := published{config: cfg, encoder: encoder}
	view, err := p.view(cfg)
	if err != nil {
		return nil, err
	}
	p.store.read(cfg, files["hf_quant_config.json"])
	if p.spec = p.nearest(append([]string{fmt.Sprint(first(cfg["architectures"])), view.Class},
		like(view.Class)...)); p.spec == nil {
		return nil, fmt.Errorf("no spec of class %s", view.Class)
	}
	s := *p.spec
	if p.base, err = s.config(Variant{}); err != nil {
		return nil, err
	}
	if has := func(m object) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(m)),
			part.MatchString)
	}; encoder && has(p.base) && !has(cfg) {
		return nil, ErrNoPart
	}
	p.shrink()
	p.renumber(cfg["quantization_config"])
	for i, name := range p.store.ignore {
		p.store.ignore[i] = p.renumbered(name)
	}
	s.Name, s.Config, s.published = name, string(marshal(cfg)), &p
	s.Files = maps.Clone(s.Files)
	if s.Files == nil {
		s.Files = map[string]string{}
	}
	for file, data := range files {
		if file != config.ConfigFile {
			s.Files[file] = string(data)
		}
	}

	if s.storesCodes() {
		p.store.how = nil
	}
	s.DType = p.dtype()
	table, err := s.tensors(cfg)
	if err != nil {
		return nil, err
	}
	p.cutLayers(member(cfg, []string{"quantization_config"}), table)
	s.Config = string(marshal(cfg))
	if file, err := parseObject(s.Files["hf_quant_config.json"]); err == nil {
		p.renumber(file)
		p.cutLayers(member(file, []string{"quantization"}), table)
		s.Files["hf_quant_config.json"] = string(marshal(file))
	}
	return &s, nil
}

var layerNumber = regexp.MustCompile(`\blayers\.(\d+)`)

// renumbered returns the name of a module or a pattern of names: layers after the model's last one come after the
// small model's last one.
func (p *published) renumbered(name string) string {
	return layerNumber.ReplaceAllStringFunc(name, func(s string) string {
		n, err := strconv.Atoi(strings.TrimPrefix(s, "layers."))
		if err != nil || n < p.layers[0] || p.layers[0] == 0 {
			return s
		}
		return "layers." + strconv.Itoa(n-p.layers[0]+p.layers[1])
	})
}

// renumber applies renumbered to all strings and keys in a value.
func (p *published) renumber(v any) {
	switch v := v.(type) {
	case object:
		for key, x := range maps.Clone(v) {
			p.renumber(x)
			delete(v, key)
			v[p.renumbered(key)] = x
		}
	case list:
		for i, x := range v {
			if text, ok := x.(string); ok {
				v[i] = p.renumbered(text)
			}
			p.renumber(x)
		}
	}
}

// cutLayers takes the modules out of quantized_layers that the small model lacks.
func (p *published) cutLayers(q object, table []tensor) {
	layers := member(q, []string{"quantized_layers"})
	for name := range layers {
		if !slices.ContainsFunc(table, func(t tensor) bool { return strings.HasPrefix(t.name, name+".") }) {
			delete(layers, name)
		}
	}
}

// ErrNoPart is the error for configurations without a vision or audio encoder.
var ErrNoPart = errors.New("no vision or audio encoder")

// infinity matches a number that JSON cannot have, and infinite replaces it.
var infinity = regexp.MustCompile(`([:\[,]\s*)Infinity\b`)

const infinite = "@Infinity"

// configJSON returns the bytes of config.json.
func configJSON(cfg object) []byte {
	return bytes.ReplaceAll(marshal(cfg), []byte(`"`+infinite+`"`), []byte("Infinity"))
}

// storesCodes reports whether the table already has quantized matrices.
func (s *Spec) storesCodes() bool {
	return strings.Contains(s.Tensors, "as F8_") || strings.Contains(s.Tensors, "as U8")
}

// published has the state of Published.
type published struct {
	spec    *Spec
	config  object // made small
	base    object // config.json of spec
	encoder bool
	store   store
	layers  [2]int   // number of layers of the language model: as published, made small
	part    bool     // inside a vision or audio encoder's configuration
	gone    []string // names of the table for sizes of a missing part
}

// part matches the keys of configurations of vision and audio encoders.
var part = regexp.MustCompile(`vision|audio|encoder|adapter|projector`)

// view returns the converter's view of a configuration.
func (p *published) view(cfg object) (*config.View, error) {
	parse := arch.ParseConfig
	if p.encoder {
		parse = func(data []byte) (*config.Config, error) { return arch.ParseEncoder("", data) }
	}
	c, err := parse(configJSON(cfg))
	if err != nil {
		return nil, err
	}
	return c.View(config.Options{}), nil
}

// nearest returns the spec with the most keys in common with the configuration, from the first class with specs; nil
// for none. Specs with quantized matrices are for configurations whose quantization is unknown here.
func (p *published) nearest(classes []string) (best *Spec) {
	most := 0
	for _, class := range classes {
		for _, s := range sorted(p.encoder) {
			if s.Class() != class || s.Target != "" || s.Files["hadamard_packing.json"] != "" {
				continue
			}
			base, err := s.config(Variant{})
			if err != nil {
				panic(err)
			}
			n := 1000 + alike(p.config, base)
			for _, key := range []string{"vision_config", "audio_config"} {
				if (base[key] == nil) != (p.config[key] == nil) {
					n -= 200
				}
			}
			if s.storesCodes() != p.store.unknown {
				n -= 300
			}
			if p.config["model_type"] == base["model_type"] {
				n += 10
			}
			if n > most {
				best, most = s, n
			}
		}
		if best != nil {
			return best
		}
	}
	return nil
}

// first returns the first element of a list, nil if there is none.
func first(v any) any {
	if l, _ := v.(list); len(l) > 0 {
		return l[0]
	}
	return nil
}

// alike returns the number of keys that two objects share, minus that of keys that only one has.
func alike(a, b object) (n int) {
	for key, v := range a {
		w, ok := b[key]
		if !ok {
			n--
			continue
		}
		n++
		if v, ok := v.(object); ok && key != "quantization_config" {
			if w, ok := w.(object); ok {
				n += alike(v, w)
			}
		}
	}
	for key := range b {
		if _, ok := a[key]; !ok {
			n--
		}
	}
	return n
}

// kept matches the keys of integers that stay as published: those that are not tensor sizes, and small sizes.
var kept = regexp.MustCompile(
	`position|window|theta|head_dim|head_size|patch|kernel|factor|length|stride|version|seed|image_size|max_seq|(^|_)step|interval|period|offset|` +
		`num_nextn|num_mtp|mtp_num|channels|downsample|per_second|chunk|n_ctx|seq_len|feature|bits|^n_fft|mel_bins|temporal|merge_size|(v|rope|nope)_dim$`)

// keptInParts is kept for vision and audio encoders. It lacks patch and image sizes: tensor shapes depend on them, and
// specs give those shapes as numbers.
var keptInParts = regexp.MustCompile(
	`window|theta|_index|stride|interval|per_second|merge_size|layer_types|select|^n_fft|chunk_length|sampl|softcap|_id$`)

// layerCounts are the names of the number of layers.
var layerCounts = []string{"num_hidden_layers", "n_layer", "n_layers", "num_layers", "depth", "vt_num_hidden_layers",
	"encoder_layers"}

// layerIndices are the keys of lists of layer indices.
var layerIndices = map[string]bool{"mlp_only_layers": true, "deepstack_visual_indexes": true, "full_attn_idxs": true,
	"fullatt_block_indexes": true, "moe_layers": true, "full_attn_layers": true, "kda_layers": true}

// oneBased are the layerIndices that count from 1.
var oneBased = map[string]int{"full_attn_layers": 1, "kda_layers": 1}

// shrink makes the configuration small.
func (p *published) shrink() {
	p.object(p.config, p.base, nil)
	// a missing size would be the model type's default
	if p.config["vocab_size"] == nil && !p.encoder {
		for _, path := range textPaths {
			if text := member(p.config, path); text != nil && text["vocab_size"] == nil {
				if n := p.number(p.base, "vocab_size"); n != nil {
					text["vocab_size"] = n
				}
			}
		}
	}
}

// number returns the number of a key in base, else in the configuration of the spec, also below textPaths.
func (p *published) number(base object, key string) any {
	if v, ok := base[key].(json.Number); ok {
		return v
	}
	for _, path := range append([][]string{nil}, textPaths...) {
		if v, ok := member(p.base, path)[key].(json.Number); ok {
			return v
		}
	}
	return nil
}

// object makes the members of m small; base is the spec's object. above are the numbers of layers of the enclosing
// object: as published, made small.
func (p *published) object(m, base object, above *[2]int) {
	layers := above
	for _, key := range layerCounts {
		n, ok := whole(m[key])
		if !ok {
			continue
		}
		small := n
		if v, ok := whole(p.number(base, key)); ok {
			small = min(n, max(v, kindsOf(m, n)))
		}
		layers = &[2]int{n, small}
		if !p.part {
			p.layers = *layers
		}
		break
	}
	if kinds, ok := m["layers_block_type"].(list); ok && layers == above {
		b, _ := base["num_hidden_layers"].(json.Number)
		small, _ := whole(b)
		layers = &[2]int{len(kinds), min(len(kinds), max(small, kindsOf(m, len(kinds))))}
	}
	for key, v := range m {
		switch v := v.(type) {
		case object:
			if key == "quantization_config" || strings.HasPrefix(key, "rope_") {
				continue
			}
			b, _ := base[key].(object)
			if b == nil && key == "text_config" {
				b = p.base
			}
			in, was := layers, p.part
			if part.MatchString(key) {
				in, p.part = nil, true
			}
			p.object(v, b, in)
			p.part = was
		case json.Number:
			n, ok := whole(v)
			if !ok {
				continue
			}
			if slices.Contains(layerCounts, key) && layers != nil && layers[0] == n {
				m[key] = count(layers[1])
				continue
			}
			m[key] = p.size(key, n, base)
		case string:
			if layers != nil && len(v) == layers[0] && layers[0] > layers[1] &&
				regexp.MustCompile(`^[-A-Z*]+$`).MatchString(v) {
				m[key] = v[:layers[1]]
			}
		case list:
			m[key] = p.list(key, v, base, layers)
		}
	}
}

// size returns the small number for n.
func (p *published) size(key string, n int, base object) any {
	small, ok := whole(p.number(base, key))
	switch {
	case strings.HasSuffix(key, "token_id") || strings.HasSuffix(key, "token_index") || strings.HasSuffix(key, "_id"):
		if vocab, has := whole(p.number(p.base, "vocab_size")); has && n >= vocab {
			if ok {
				return count(small)
			}
			return count(n % vocab)
		}
		return count(n)
	case p.part && ok && !keptInParts.MatchString(key):
		return count(small)
	case !ok, kept.MatchString(key) && !strings.HasSuffix(key, "hidden_size"), small >= n:
		if key == "num_experts_per_tok" || key == "num_experts_per_token" || key == "moe_k" || key == "moe_topk" {
			return count(min(n, 2))
		}
		return count(n)
	}
	if p.store.wide && small >= 32 && key != "vocab_size" && wide.MatchString(key) {
		small = (small + 63) / 64 * 64
	}
	return count(small)
}

// wide matches the keys of row lengths of matrices.
var wide = regexp.MustCompile(`size|dim|inner|ffn|rank`)

// list makes a list small.
func (p *published) list(key string, v list, base object, layers *[2]int) list {
	for i, x := range v {
		switch x := x.(type) {
		case object:
			p.object(x, nil, nil)
		case json.Number:
			if n, ok := whole(x); ok && (strings.HasSuffix(key, "token_id") || strings.HasSuffix(key, "token_ids")) {
				v[i] = p.size("token_id", n, nil)
			}
		}
	}
	if layers == nil || layers[0] <= layers[1] {
		return v
	}
	if b, ok := base[key].(list); ok && len(v) > 0 && len(b) > 0 && len(v) == layers[0] {
		if _, objects := v[0].(object); objects {
			return b // the kinds of layers determine their tensors
		}
	}
	if layerIndices[key] {
		if b, ok := base[key].(list); ok && p.part {
			return b
		}
		return slices.DeleteFunc(v, func(x any) bool {
			n, ok := whole(x)
			return ok && n >= layers[1]+oneBased[key]
		})
	}
	if more := len(v) - layers[0]; more >= 0 && more <= 4 && layers[0] > 4 {
		return v[:layers[1]+more]
	}
	return v
}

// kindsOf returns the least number of layers, up to 12, with all kinds of layers in the lists of an object.
func kindsOf(m object, layers int) int {
	need := 0
	first := func(n int, at func(i int) string) {
		seen := map[string]bool{}
		for i := range n {
			if k := at(i); !seen[k] && i < 12 {
				seen[k] = true
				need = max(need, i+1)
			}
		}
	}
	for _, v := range m {
		switch v := v.(type) {
		case list:
			if len(v) == layers {
				if _, strings := v[0].(string); strings {
					first(len(v), func(i int) string { return fmt.Sprint(v[i]) })
				}
			}
		case string:
			if len(v) == layers {
				first(len(v), func(i int) string { return v[i : i+1] })
			}
		}
	}
	return need
}

func whole(v any) (int, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(string(n))
	return i, err == nil
}

func count(n int) json.Number { return json.Number(strconv.Itoa(n)) }

// dtype is the element type that the configuration names.
func (p *published) dtype() string {
	for _, m := range []object{p.config, member(p.config, []string{"text_config"})} {
		for _, key := range []string{"torch_dtype", "dtype"} {
			switch m[key] {
			case "float16":
				return "F16"
			case "float32":
				return "F32"
			}
		}
	}
	return "BF16"
}

// store is the storage of matrices.
type store struct {
	how     func(module string) string // the name of one of stores, "" for unquantized
	blocks  [2]int64                   // size of the blocks of scales
	ignore  []string
	wide    bool // rows must be whole blocks of 64
	unknown bool // the configuration has a scheme that is not in stores
}

// read reads the storage of matrices from config.json or hf_quant_config.json.
func (p *store) read(cfg object, file []byte) {
	q := member(cfg, []string{"quantization_config"})
	if q == nil {
		m, _ := parseObject(string(file))
		q = member(m, []string{"quantization"})
	}
	if q == nil {
		q = member(cfg, []string{"text_config", "quantization_config"})
	}
	if q == nil {
		return
	}
	for _, key := range []string{"ignore", "modules_to_not_convert", "exclude_modules", "ignored_layers"} {
		names, _ := q[key].(list)
		for _, name := range names {
			p.ignore = append(p.ignore, fmt.Sprint(name))
		}
	}
	algo := func(m object) string {
		switch m["quant_algo"] {
		case "FP8":
			return "fp8"
		case "NVFP4", "W4A16_NVFP4":
			return "nvfp4"
		case "MXFP8":
			return "mxfp8"
		}
		return ""
	}
	how := algo(q)
	switch size, _ := q["weight_block_size"].(list); {
	case how != "":
	case len(size) == 2:
		a, _ := whole(size[0])
		b, _ := whole(size[1])
		how, p.blocks = "blocks", [2]int64{int64(a), int64(b)}
	case q["quant_method"] == "fp8":
		how = "tensor"
	case q["format"] == "float-quantized":
		how = "channel"
	}
	layers := member(q, []string{"quantized_layers"})
	p.unknown = how == "" && layers == nil
	p.wide = strings.Contains(string(marshal(q)), "NVFP4")
	p.how = func(module string) string {
		if slices.ContainsFunc(p.ignore, func(pattern string) bool { return ignores(pattern, module) }) {
			return ""
		}
		for prefix := range layers {
			if module == prefix || strings.HasPrefix(module, prefix+".") {
				return algo(member(layers, []string{prefix}))
			}
		}
		if layers != nil && q["quant_algo"] == "MIXED_PRECISION" {
			return ""
		}
		return how
	}
}

// ignores reports whether a pattern of a list of unquantized modules matches this one: a name or some of its
// components, with stars, or a regular expression.
func ignores(pattern, module string) bool {
	if expr, ok := strings.CutPrefix(pattern, "re:"); ok {
		re, err := regexp.Compile("^(?:" + expr + ")")
		return err == nil && re.MatchString(module)
	}
	if strings.Contains(pattern, "*") {
		ok, err := path.Match(pattern, module)
		return ok && err == nil
	}
	return strings.Contains("."+module+".", "."+pattern+".")
}

// noMatrix matches modules whose weights are never quantized.
var noMatrix = regexp.MustCompile(
	`embed|lm_head|(^|\.)head$|norm|mlp\.gate$|block_sparse_moe\.gate$|ffn\.gate$|mixer\.gate$|moe\.gate$|router|shared_expert_gate|conv1d|vision|visual|multi_modal|mm_projector|positional|\.A_log|indexer\.weights_proj|in_proj_[ab]$|eh_proj|(^|\.)mtp\.fc$`)

// stores are the storage schemes: functions that return the tensors of a quantized matrix with out rows and in columns.
var stores = map[string]func(p *store, module string, out, in int64) []tensor{
	"blocks": func(p *store, module string, out, in int64) []tensor {
		a, b := p.blocks[0], p.blocks[1]
		return []tensor{{name: module + ".weight", shape: []int64{out, in}, dtype: "F8_E4M3"},
			{name: module + ".weight_scale_inv", shape: []int64{(out + a - 1) / a, (in + b - 1) / b}, dtype: "F32",
				fill: "scale"}}
	},
	"tensor": func(_ *store, module string, out, in int64) []tensor {
		return []tensor{{name: module + ".weight", shape: []int64{out, in}, dtype: "F8_E4M3"},
			{name: module + ".weight_scale_inv", dtype: "BF16", fill: "scale"},
			{name: module + ".activation_scale", dtype: "BF16", fill: "scale"}}
	},
	"fp8": func(_ *store, module string, out, in int64) []tensor {
		return []tensor{{name: module + ".weight", shape: []int64{out, in}, dtype: "F8_E4M3"},
			{name: module + ".weight_scale", dtype: "F32", fill: "scale"},
			{name: module + ".input_scale", dtype: "F32", fill: "scale"}}
	},
	"mxfp8": func(_ *store, module string, out, in int64) []tensor {
		return []tensor{{name: module + ".weight", shape: []int64{out, in}, dtype: "F8_E4M3"},
			{name: module + ".weight_scale", shape: []int64{out, in / 32}, dtype: "U8", fill: "scales"}}
	},
	"channel": func(_ *store, module string, out, in int64) []tensor {
		return []tensor{{name: module + ".weight", shape: []int64{out, in}, dtype: "F8_E4M3"},
			{name: module + ".weight_scale", shape: []int64{out, 1}, dtype: "BF16", fill: "scale"}}
	},
	"nvfp4": func(_ *store, module string, out, in int64) []tensor {
		return []tensor{{name: module + ".weight", shape: []int64{out, in / 2}, dtype: "U8"},
			{name: module + ".weight_scale", shape: []int64{out, in / 16}, dtype: "F8_E4M3"},
			{name: module + ".weight_scale_2", dtype: "F32", fill: "scale"},
			{name: module + ".input_scale", dtype: "F32", fill: "scale"}}
	},
}

// stored returns the table with each quantized matrix replaced by its tensors.
func (p *published) stored(table []tensor) []tensor {
	if p.store.how == nil {
		return table
	}
	var all []tensor
	for _, t := range table {
		module, ok := strings.CutSuffix(t.name, ".weight")
		if how := p.store.how(module); ok && how != "" && len(t.shape) == 2 && t.dtype == "" &&
			!noMatrix.MatchString(module) {
			all = append(all, stores[how](&p.store, module, t.shape[0], t.shape[1])...)
			continue
		}
		all = append(all, t)
	}
	return all
}

// lacks reports whether a row of the table belongs to a part that the configuration lacks.
func (p *published) lacks(line string) bool {
	name, expr, ok := strings.Cut(line, "=")
	for _, part := range []string{"vision_config", "audio_config"} {
		if p.config[part] != nil || !strings.Contains(line, part+".") {
			continue
		}
		if ok && !strings.Contains(line, "|") && strings.Contains(expr, part+".") {
			p.gone = append(p.gone, strings.TrimSpace(name))
		}
		return !p.encoder || p.config["vision_config"] != nil || p.config["audio_config"] != nil
	}
	return slices.ContainsFunc(p.gone, func(name string) bool {
		return regexp.MustCompile(`\b`+name+`\b`).MatchString(strings.Join(columns(line)[1:], "|")) ||
			strings.Contains(line, "{"+name+"}")
	})
}
