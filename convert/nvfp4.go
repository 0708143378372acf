package convert

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/checkpoint/precision"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
	"ggforge/rows"
)

// quantizationFile has the settings of NVIDIA's Model Optimizer, which config.json may lack.
const quantizationFile = "hf_quant_config.json"

// quantized returns the settings of the weights' quantization: quantization_config, with the algorithms of the model
// and of its modules from quantizationFile if it lacks them.
func (j *Job) quantized(cfg *config.View) (config.Object, error) {
	said := cfg.Sub("quantization_config")
	if said.Members() == nil {
		said = cfg.Sub("compression_config") // the key of older versions of compressed-tensors
	}
	if !config.IsNo(said.Value("quant_algo")) && !config.IsNo(said.Value("quantized_layers")) {
		return said, nil
	}
	data, err := j.modelDir().ReadFile(quantizationFile)
	if errors.Is(err, fs.ErrNotExist) {
		return said, nil
	}
	if err != nil {
		return said, err
	}
	v, err := pyjson.Parse(data)
	if err != nil {
		return said, fault.Errorf(fault.Broken, "%s: %w", quantizationFile, err)
	}
	o, ok := v.(*pyjson.Object)
	if !ok {
		return said, fault.Errorf(fault.Broken, "%s: want an object, found %s", quantizationFile, pyjson.Describe(v))
	}
	m := maps.Clone(said.Members())
	if m == nil {
		m = map[string]any{}
	}
	all := o.Map()
	if _, ok := m["quant_method"]; !ok {
		producer, _ := all["producer"].(map[string]any)
		name, _ := producer["name"].(string)
		m["quant_method"] = strings.ToLower(name)
	}
	more, _ := all["quantization"].(map[string]any)
	for _, key := range []string{"quant_algo", "quant_method", "format", "config_groups", "quantized_layers"} {
		if v, ok := more[key]; ok {
			m[key] = v
		}
	}
	merged, _ := config.ObjectIn(quantizationFile, m)
	return merged, nil
}

// isNVFP4 reports whether the settings name NVFP4 for any weights.
func (j *Job) isNVFP4() bool {
	ends := func(v any) bool { s, _ := v.(string); return strings.HasSuffix(s, "NVFP4") }
	if algo, _ := j.model.quantization.Value("quant_algo").(string); algo == "NVFP4" || algo == "W4A16_NVFP4" {
		return true
	}
	if format, _ := j.model.quantization.Value("format").(string); format == "nvfp4-pack-quantized" {
		return true
	}
	groups := j.model.quantization.Under("config_groups")
	for name := range groups.Members() {
		if groups.Under(name).Members()["format"] == "nvfp4-pack-quantized" {
			return true
		}
	}
	layers := j.model.quantization.Under("quantized_layers")
	for name := range layers.Members() {
		if ends(layers.Under(name).Members()["quant_algo"]) {
			return true
		}
	}
	return false
}

// divide separates the outputs that are copied as NVFP4 blocks, which come before all others, in the order of their
// last tensors. Experts are joined after the number of experts of config.json; without a count that the reference
// reads, after the rest. With MXFP4.First, outputs of MXFP4 blocks are treated likewise.
func (j *Job) divide(cfg *config.View, outputs []table.Output) (moved, others []table.Output, err error) {
	all := func(o table.Output, scheme string) bool {
		return !slices.ContainsFunc(o.From, func(i int) bool { return j.model.weights[i].Scheme() != scheme })
	}
	var packed []table.Output
	mxfp4, _ := table.Find[table.MXFP4](j.Arch)
	for _, o := range outputs {
		switch {
		case all(o, "nvfp4"):
			moved = append(moved, o)
		case mxfp4.First && all(o, "mxfp4"):
			packed = append(packed, o)
		default:
			others = append(others, o)
		}
	}
	slices.SortStableFunc(packed, func(a, b table.Output) int {
		return cmp.Or(cmp.Compare(a.Layer.Bid, b.Layer.Bid), strings.Compare(a.Row.HF, b.Row.HF))
	})
	if len(moved) == 0 {
		return packed, others, nil
	}
	// the reference's keys; the model's row may read another key
	counts, _ := config.ObjectIn(cfg.FileName(), cfg.Members())
	experts, _, err := counts.Int("num_local_experts", "num_experts")
	if err != nil {
		return nil, nil, err
	}
	place := func(o table.Output) int {
		if n := int64(len(o.From) / max(len(o.Row.Parts), 1)); n > 1 && (experts < 1 || n < experts) {
			return len(j.model.weights) + slices.Min(o.From)
		}
		return slices.Max(o.From)
	}
	slices.SortStableFunc(moved, func(a, b table.Output) int { return cmp.Compare(place(a), place(b)) })
	return append(moved, packed...), others, nil
}

// factors are the scales of NVFP4 weights and of their inputs: one number, or one per expert; nil for 1.
type factors struct{ weight, input []float32 }

func (f factors) any() bool { return f.weight != nil || f.input != nil }

// multiply removes the outputs of table.FactorOf whose weights are copied with scales, and keeps their numbers.
func (j *Job) multiply(moved, others []table.Output) (left []table.Output, err error) {
	for _, o := range others {
		of, ok := o.Row.Kind.(table.FactorOf)
		name := strings.ReplaceAll(string(of), "{bid}", strconv.FormatInt(o.Layer.Bid, 10))
		i := -1
		if ok {
			i = slices.IndexFunc(moved, func(m table.Output) bool {
				return slices.Contains(m.Row.Outputs(m.Layer.Bid,
					m.Suffix), name)
			})
		}
		if i < 0 {
			left = append(left, o)
			continue
		}
		factored := 0
		for _, from := range moved[i].From {
			weight, _, _, err := j.model.weights[from].Factors()
			if err != nil {
				return nil, err
			}
			factored += len(weight)
		}
		w := &j.model.weights[o.From[0]]
		src, err := source(w, gguf.TypeF32)
		if err != nil {
			return nil, err
		}
		experts := moved[i].Experts()
		switch ne := src.NE(); {
		case factored == 0:
			left = append(left, o)
			continue
		case int64(factored) != experts || len(ne) != 1 || ne[0] != experts || experts > config.MaxParts:
			return nil, fault.Errorf(fault.Broken,
				"%s: tensor %q: dimensions %s, want a factor for each of %d experts, of which %d have one of their own",
				w.First().File, w.Name, gguf.Shape(ne), experts, factored)
		}
		list := make([]float32, experts)
		if err := rows.Decode(src, list, new([]byte), 0, 1); err != nil {
			return nil, err
		}
		if j.numbers.scaleFactors == nil {
			j.numbers.scaleFactors = map[string][]float32{}
		}
		j.numbers.scaleFactors[name] = list
	}
	return left, nil
}

// factorsOf returns the factors of an output, multiplied by times; times is nil for 1.
func factorsOf(o *table.Output, weights []precision.Weight, times []float32) (f factors, err error) {
	first := &weights[o.From[0]]
	if len(o.From) == 1 {
		f.weight, f.input, _, err = first.Factors()
		multiply(f.weight, times)
		if one(f.weight) {
			f.weight = nil
		}
		if one(f.input) {
			f.input = nil
		}
		return f, err
	}
	perExpert := max(len(o.Row.Parts), 1)
	experts := strings.Contains(o.Row.HF, "{xid}")
	found := false
	for i, from := range o.From {
		weight, input, ok, err := weights[from].Factors()
		if err != nil {
			return f, err
		}
		found = found || ok
		if len(weight) > 1 || len(input) > 1 {
			return f, fault.Errorf(fault.Unsupported,
				"%s: tensor %q: several factors of a tensor that is joined with others", weights[from].First().File,
				weights[from].Name)
		}
		w, in := single(weight), single(input)
		if !experts && i > 0 || i%perExpert != 0 {
			last := len(f.weight) - 1
			if w != f.weight[last] || in != f.input[last] {
				t := weights[from].First()
				return f, fault.Errorf(fault.Unsupported,
					"%s: tensor %q: factor %v, that of inputs %v; it is joined with tensors that have %v and %v",
					t.File, t.Name, w, in, f.weight[last], f.input[last])
			}
			continue
		}
		f.weight, f.input = append(f.weight, w), append(f.input, in)
	}
	multiply(f.weight, times)
	if !found || ones(f.weight) {
		f.weight = nil
	}
	if !found || ones(f.input) {
		f.input = nil
	}
	return f, nil
}

// multiply multiplies list by times, element by element; nil times is 1.
func multiply(list, times []float32) {
	for i := range times {
		list[i] *= times[i]
	}
}

// single returns the only number in list, 1 for none.
func single(list []float32) float32 {
	if len(list) == 0 {
		return 1
	}
	return list[0]
}

// one reports whether a list is the number 1, by the reference's rule for a single tensor.
func one(list []float32) bool {
	return len(list) == 0 || len(list) == 1 && math.Abs(float64(list[0])-1) < 1e-6
}

// ones is one for stacked experts. Source: allclose of NumPy, with an absolute
// tolerance of 1e-6 and a relative one of 1e-5.
func ones(list []float32) bool {
	return !slices.ContainsFunc(list, func(f float32) bool { return !(math.Abs(float64(f)-1) <= 1e-6+1e-5) })
}

// tensors returns the tensors of the file next to a weight.
func (f factors) tensors(weight, from string) (list []Tensor) {
	base := strings.TrimSuffix(weight, ".weight")
	if f.weight != nil {
		list = append(list, Tensor{Name: base + ".scale", From: from, Source: rows.Float32s(f.weight)})
	}
	if f.input != nil {
		list = append(list, Tensor{Name: base + ".input_scale", From: from, Source: rows.Float32s(f.input)})
	}
	return list
}

// activations returns the metadata of the NVFP4 weights whose inputs are not quantized to 4 bits. It checks that the
// modules in the settings exist.
func (j *Job) activations() (gguf.Metadata, error) {
	layers := j.model.quantization.Under("quantized_layers")
	algos := map[string]string{}
	modules := map[string]bool{}
	without := func(name string) string { return strings.ReplaceAll(name, "language_model.", "") }
	if len(layers.Members()) > 0 && len(j.Plan) > 0 {
		for _, s := range j.in.stores {
			for _, t := range s.Tensors() {
				for name := without(t.Name); ; {
					i := strings.LastIndexByte(name, '.')
					if i < 0 || modules[name[:i]] {
						break
					}
					name = name[:i]
					modules[name] = true
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(layers.Members())) {
			if !modules[without(name)] {
				return nil, fault.Errorf(fault.Broken, "quantized_layers: no tensor is of module %q", name)
			}
			algos[without(name)], _ = layers.Under(name).Members()["quant_algo"].(string)
		}
	}
	global, _ := j.model.quantization.Value("quant_algo").(string)
	var names []string
	for _, t := range j.Plan {
		if t.Source.Type() != gguf.TypeNVFP4 {
			continue
		}
		algo := global
		for name := j.module(t); name != ""; {
			if a, ok := algos[name]; ok {
				algo = a
				break
			}
			name = name[:max(strings.LastIndexByte(name, '.'), 0)]
		}
		if algo == "W4A16_NVFP4" {
			names = append(names, t.Name)
		}
	}
	if names == nil {
		return nil, nil
	}
	slices.Sort(names)
	return gguf.Metadata{
		{Key: "general.tensor_extra.name", Value: gguf.Strings(names)},
		{Key: "general.tensor_extra.prec_a4", Value: gguf.Bools(make([]bool, len(names)))},
	}, nil
}

// module returns the name of a planned weight's module in the settings; for experts, of all experts of the layer.
func (j *Job) module(t Tensor) string {
	name := strings.TrimSuffix(strings.ReplaceAll(t.From, "language_model.", ""), "_packed")
	name = strings.TrimSuffix(name, ".weight")
	before, after, ok := strings.Cut(name, ".experts.")
	number, proj, ok2 := strings.Cut(after, ".")
	if _, err := strconv.ParseUint(number, 10, 31); !ok || !ok2 || err != nil || len(t.Source.NE()) < 3 {
		return name
	}
	return before + ".experts." + proj
}
