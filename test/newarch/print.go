package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"ggforge/arch/graph"
	"ggforge/arch/parts"
)

// shared are the values of arch/parts that graphs use, by name.
var shared = []struct {
	name  string
	value any
}{
	{"parts.GatedQueryAttention", parts.GatedQueryAttention},
	{"parts.Window", parts.Window},
	{"parts.NeoX", parts.NeoX}, {"parts.Interleaved", parts.Interleaved}, {"parts.LocalNeoX", parts.LocalNeoX},
	{"parts.LocalInterleaved", parts.LocalInterleaved}, {"parts.UnscaledLocalNeoX", parts.UnscaledLocalNeoX},
	{"parts.DefaultLocalNeoX", parts.DefaultLocalNeoX},
	{"parts.QKNorm", parts.QKNorm}, {"parts.MayQKNorm", parts.MayQKNorm},
	{"parts.KeyClamp", parts.KeyClamp}, {"parts.KeyTemperature", parts.KeyTemperature},
	{"parts.ALiBi", parts.ALiBi}, {"parts.KeyALiBi", parts.KeyALiBi},
	{"parts.SwiGLU", parts.SwiGLU}, {"parts.GeGLU", parts.GeGLU}, {"parts.GELUMLP", parts.GELUMLP},
	{"parts.ReLU2MLP", parts.ReLU2MLP},
	{"parts.Router", parts.Router}, {"parts.RouterTopK", parts.RouterTopK}, {"parts.RouterBias", parts.RouterBias},
	{"parts.RouterBiasTopK", parts.RouterBiasTopK}, {"parts.RouterGroups", parts.RouterGroups},
	{"parts.RouterKeys", parts.RouterKeys}, {"parts.LogitSoftCap", parts.LogitSoftCap}, {"parts.OutputNorm", parts.OutputNorm},
	{"parts.EmbeddingNorm", parts.EmbeddingNorm}, {"parts.ScaledEmbedding", parts.ScaledEmbedding},
	{"parts.EncoderRuntime", parts.EncoderRuntime}, {"parts.MLAUnread", parts.MLAUnread},
	{"graph.RMS", graph.RMS}, {"graph.LayerNorm", graph.LayerNorm}, {"graph.Bare", graph.Bare},
}

// sharedModels are whole graphs of arch/parts.
var sharedModels = []struct {
	name  string
	value *graph.Model
}{
	{"parts.LlamaGraph", parts.LlamaGraph}, {"parts.Mistral3Graph", parts.Mistral3Graph},
	{"parts.DeepSeek2Graph", parts.DeepSeek2Graph},
}

// constants are the names of the values of types with constants, in the order of their numbers.
var constants = map[reflect.Type][]string{
	reflect.TypeFor[graph.Presence]():    {"No", "Yes", "May"},
	reflect.TypeFor[graph.Direction]():   {"Causal", "Both"},
	reflect.TypeFor[graph.WindowShape](): {"SlidingWindow", "ChunkedWindow", "SymmetricWindow"},
	reflect.TypeFor[graph.Pairs]():       {"NeoX", "Interleaved"},
	reflect.TypeFor[graph.Sections]():    {"Blocks", "TakingTurn"},
	reflect.TypeFor[graph.Scaling]():     {"ByKeys", "NoScale", "MScale", "MScaleEq"},
	reflect.TypeFor[graph.Gate]():        {"Gated", "NoGate"},
	reflect.TypeFor[graph.Score]():       {"", "Softmax", "Sigmoid", "SoftmaxOfChosen"},
	reflect.TypeFor[graph.Shared]():      {"NoShared", "HasShared", "MayShared", "GatedShared"},
}

// acts are the names of activations without parameters.
var acts = map[graph.Act]string{graph.SiLU: "SiLU", graph.GELU: "GELU", graph.GELUErf: "GELUErf", graph.ReLU: "ReLU",
	graph.ReLU2: "ReLU2", graph.Tanh: "Tanh"}

// sizes are expressions of arch/parts for Dims.
var sizes = map[string]string{parts.SharedWidth: "parts.SharedWidth",
	parts.SharedExpertOrWhole: "parts.SharedExpertOrWhole"}

// modelText returns the source of a graph, as families have it.
func modelText(m *graph.Model) string {
	for _, s := range sharedModels {
		if reflect.DeepEqual(s.value, m) {
			return s.name
		}
	}
	if mixer, ffn, ok := preNorm(m.Layer, "ffn_norm"); ok && reflect.DeepEqual(m, parts.Decoder(m.Norm, mixer, ffn)) {
		return "parts.Decoder(" + fill([]string{value(m.Norm), value(mixer), value(ffn)}) + ")"
	}
	return "&" + structText(reflect.ValueOf(*m))
}

// preNorm returns the parts of pre-norm layers.
func preNorm(steps []graph.Step, norm string) (mixer, ffn graph.Part, ok bool) {
	if len(steps) != 2 {
		return nil, nil, false
	}
	a, ok1 := steps[0].(graph.Residual)
	b, ok2 := steps[1].(graph.Residual)
	if !ok1 || !ok2 || a.Part == nil || b.Part == nil {
		return nil, nil, false
	}
	return a.Part, b.Part, reflect.DeepEqual(steps, parts.PreNormAs(norm, a.Part, b.Part))
}

// value returns the source of a value of package graph.
func value(v any) string {
	if v == nil {
		return "nil"
	}
	for _, s := range shared {
		if reflect.DeepEqual(s.value, v) {
			return s.name
		}
	}
	switch x := v.(type) {
	case graph.Attention:
		switch {
		case reflect.DeepEqual(x, parts.GQA(x.Steps...)):
			return "parts.GQA(" + fill(values1(x.Steps)) + ")"
		case reflect.DeepEqual(x, parts.Bidirectional(x.Steps...)):
			return "parts.Bidirectional(" + fill(values1(x.Steps)) + ")"
		}
	case graph.Choose:
		if text, ok := chooseText(x); ok {
			return text
		}
	case graph.MoE:
		if reflect.DeepEqual(x, parts.Experts(x.Router, x.Shared)) {
			return "parts.Experts(" + value(x.Router) + ", " + value(x.Shared) + ")"
		}
	case []graph.Step:
		if text, ok := stepsText(x); ok {
			return text
		}
	case graph.Parallel:
		if len(x) == 2 && reflect.DeepEqual(graph.Step(x), parts.Parallel(x[0].Pre.Name, x[0].Part, x[1].Pre.Name,
			x[1].Part)) {
			return "parts.Parallel(" + fill([]string{quote(x[0].Pre.Name), value(x[0].Part), quote(x[1].Pre.Name),
				value(x[1].Part)}) + ")"
		}
	case graph.Act:
		if name := acts[x]; name != "" {
			return "graph." + name
		}
	}
	r := reflect.ValueOf(v)
	if names := constants[r.Type()]; names != nil && int(r.Int()) < len(names) {
		return "graph." + names[r.Int()]
	}
	switch r.Kind() {
	case reflect.String:
		if name := sizes[r.String()]; name != "" {
			return name
		}
		if r.Type() == reflect.TypeFor[graph.Where]() || r.Type() == reflect.TypeFor[graph.Has]() {
			return typeName(r.Type()) + "(" + quote(r.String()) + ")"
		}
		return quote(r.String())
	case reflect.Struct:
		return structText(r)
	case reflect.Slice:
		return sliceText(r)
	case reflect.Map:
		return mapText(r)
	case reflect.Int:
		if r.Type() == reflect.TypeFor[graph.OwnKV]() {
			return fmt.Sprintf("graph.OwnKV(%d)", r.Int())
		}
	}
	return fmt.Sprint(v)
}

func quote(s string) string { return fmt.Sprintf("%q", s) }

// values1 returns the sources of the elements of a list.
func values1[T any](list []T) (texts []string) {
	for _, x := range list {
		texts = append(texts, value(x))
	}
	return texts
}

func chooseText(c graph.Choose) (string, bool) {
	if len(c) != 2 || c[1].In != (graph.Every{}) {
		return "", false
	}
	then := []string{value(c[0].Then), value(c[1].Then)}
	if c[0].In == (graph.Recurrent{}) {
		return "parts.RecurrentOr(" + fill(then) + ")", true
	}
	moe, isMoE := c[0].Then.(graph.MoE)
	ffn, isFFN := c[1].Then.(graph.FFN)
	if isMoE && isFFN && reflect.DeepEqual(c, parts.Sparse(moe, ffn)) {
		return "parts.Sparse(" + fill(then) + ")", true
	}
	if reflect.TypeOf(c[0].In) == reflect.TypeFor[graph.Sliding]() {
		return "parts.LocalGlobal(" + fill(append([]string{value(c[0].In)}, then...)) + ")", true
	}
	return "", false
}

// stepsText returns the source of the steps of a layer by a function of arch/parts.
func stepsText(steps []graph.Step) (string, bool) {
	if len(steps) != 2 {
		return "", false
	}
	a, ok := steps[0].(graph.Residual)
	b, ok2 := steps[1].(graph.Residual)
	if !ok || !ok2 || a.Part == nil || b.Part == nil {
		return "", false
	}
	before, after := "", ""
	if a.Scale != "" && a.Scale == b.Scale {
		before, after = "parts.Scaled("+quote(string(a.Scale))+", ", ")"
		a.Scale, b.Scale = "", ""
		steps = []graph.Step{a, b}
	}
	list := fill([]string{value(a.Part), value(b.Part)})
	for _, p := range []struct {
		name  string
		steps []graph.Step
	}{{"PreNorm", parts.PreNorm(a.Part, b.Part)}, {"Sandwich", parts.Sandwich(a.Part, b.Part)},
		{"OutputNormOnly", parts.OutputNormOnly(a.Part, b.Part)}, {"PostLN", parts.PostLN(a.Part, b.Part)}} {
		if reflect.DeepEqual(steps, p.steps) {
			return before + "parts." + p.name + "(" + list + ")" + after, true
		}
	}
	if reflect.DeepEqual(steps, parts.PreNormAs(b.Pre.Name, a.Part, b.Part)) {
		return before + "parts.PreNormAs(" + quote(b.Pre.Name) + ", " + list + ")" + after, true
	}
	return "", false
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		if t.Name() == "" {
			return "[]" + typeName(t.Elem())
		}
	case reflect.String:
		if t.PkgPath() == "" {
			return t.Name()
		}
	}
	return "graph." + t.Name()
}

// structText returns the source of a struct, without fields of value zero.
func structText(r reflect.Value) string {
	var fields []string
	t := r.Type()
	for i := range r.NumField() {
		if f := r.Field(i); !f.IsZero() {
			fields = append(fields, t.Field(i).Name+": "+value(f.Interface()))
		}
	}
	if t == reflect.TypeFor[graph.Not]() || t == reflect.TypeFor[graph.Normalize]() { // the field is embedded
		return typeName(t) + "{" + fields[0] + "}"
	}
	if t == reflect.TypeFor[graph.Norm]() && len(fields) == 1 {
		return "graph.Norm{Name: " + quote(r.Field(0).String()) + "}"
	}
	text := typeName(t) + "{" + fill(fields) + "}"
	if t == reflect.TypeFor[graph.Model]() && len(fields) > 0 {
		return typeName(t) + "{\n" + fill(fields) + ",\n}"
	}
	return text
}

// sliceText returns the source of a list.
func sliceText(r reflect.Value) string {
	var list []string
	for i := range r.Len() {
		text := value(r.Index(i).Interface())
		if r.Type().Elem().Kind() == reflect.Struct { // the type of elements is known
			text = strings.TrimPrefix(text, typeName(r.Type().Elem()))
		}
		list = append(list, text)
	}
	return typeName(r.Type()) + "{" + fill(list) + "}"
}

func mapText(r reflect.Value) string {
	m := map[string]string{}
	for _, key := range r.MapKeys() {
		m[key.String()] = value(r.MapIndex(key).Interface())
	}
	var list []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, quote(key)+": "+m[key])
	}
	return typeName(r.Type()) + "{" + fill(list) + "}"
}

// width is the length at which lines break: gofmt indents them further.
const width = 100

// fill joins the elements of a list, in lines of at most width where they are short enough.
func fill(items []string) string {
	var b strings.Builder
	line := 0
	for i, item := range items {
		first, _, _ := strings.Cut(item, "\n")
		switch {
		case i == 0:
		case line+len(first)+2 > width || strings.Contains(items[i-1], "\n") && strings.Contains(items[i-1], ": "):
			b.WriteString(",\n")
			line = 0
		default:
			b.WriteString(", ")
			line += 2
		}
		b.WriteString(item)
		if at := strings.LastIndexByte(item, '\n'); at >= 0 {
			line = len(item) - at
		} else {
			line += len(item)
		}
	}
	return b.String()
}
