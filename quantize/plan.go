package quantize

import (
	"cmp"
	"fmt"
	"slices"

	"ggforge/arch/diffusion"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model"
)

// PlanOptions configures Plan. Recipe is required; every other zero value is the default.
type PlanOptions struct {
	Recipe *Recipe

	// Pure gives every tensor the recipe's default type.
	Pure bool
	// LeaveOutputTensor keeps output.weight as it is.
	LeaveOutputTensor bool
	// OutputTensorType and TokenEmbeddingType, if not nil, override the recipe and TensorTypes for output.weight and
	// the token embeddings. OutputTensorType also replaces the recipe's type for a tied embedding. For
	// per_layer_token_embd.weight a matching rule of TensorTypes overrides TokenEmbeddingType.
	OutputTensorType   *gguf.Type
	TokenEmbeddingType *gguf.Type
	// TensorTypes override the recipe; the first rule that matches a tensor applies. They have no effect on recipes
	// whose default type is a float type.
	TensorTypes []TensorTypeRule

	// AllowRequantize permits quantized tensors to change type.
	AllowRequantize bool
	// PruneLayers lists layers to remove, in any order. The layers after them are renumbered. Rules and tensor types
	// are applied to the new names, but with the old number of layers.
	PruneLayers []int64
	// Reference follows llama.cpp where ggforge deviates from it on purpose.
	Reference bool

	// The following are set by Prepare.

	// Importance reports whether there is importance for the tensor of that name and dimensions, like
	// imatrix.Matrix.Check. It is nil without an importance matrix, and must be nil for a matrix without entries: some
	// recipes choose smaller types when it is set.
	Importance func(name string, ne []int64) (ok bool, warning, err error)
	// KeepOrder keeps the order of the input, for output in the same shards.
	KeepOrder bool
}

// Planned is the result of Plan.
type Planned struct {
	Decisions   []Decision // in output order
	Compromises []Compromise

	traits *traits
	image  *diffusion.Model // nil for other models
	layers renumbering      // nil if no layer is pruned
}

// Plan decides the name and type of every tensor. The decisions are in output order: unless the order is kept, as it is
// for image models, tensors outside layers first, then by layer, and within a layer by the bytes of the name. meta is the
// input's metadata.
//
// The errors are *InputError, *UnsupportedError, and errors of kind ErrRefused, *RefusedError among them. With an
// ErrRefused the plan is complete all the same, so that it can be shown; with other errors it is nil.
func Plan(meta gguf.Metadata, tensors []model.Tensor, opt PlanOptions) (*Planned, error) {
	if opt.Reference && opt.Recipe.Own {
		return nil, fault.Errorf(fault.Usage, "recipe %s is ours: llama.cpp has none of that name whose bytes could be written",
			opt.Recipe.Name)
	}
	image := diffusion.ByName(meta.Architecture())
	if image != nil {
		if len(opt.PruneLayers) > 0 {
			return nil, fault.Errorf(fault.Unsupported, "layers of an image or video model (%s) cannot be pruned: its "+
				"blocks have no common names", image.Name)
		}
		opt.Pure = opt.Pure && !opt.Reference // which ignores it for these
		var err error
		if opt.Recipe, err = opt.Recipe.forImage(image); err != nil {
			return nil, err
		}
	}
	order := outputOrder(tensors, opt.KeepOrder || image != nil)
	names := make([]string, 0, len(order)) // after pruning
	out := &Planned{image: image}
	if len(opt.PruneLayers) > 0 {
		for _, i := range order {
			names = append(names, tensors[i].Name)
		}
		out.layers = renumber(names, opt.PruneLayers, opt.Reference)
		if err := out.layers.check(opt.PruneLayers); err != nil {
			return nil, err
		}
		names = names[:0]
	}
	left := order[:0]
	for _, i := range order {
		if name, ok := out.layers.name(tensors[i].Name); ok {
			names = append(names, name)
			left = append(left, i)
		}
	}

	var err error
	if out.traits, err = readTraits(meta, names); err != nil {
		return nil, err
	}
	out.traits.importance = opt.Importance != nil
	given := len(opt.TensorTypes)
	opt.TensorTypes = slices.Concat(opt.TensorTypes, opt.Recipe.given)
	p := planner{opt: opt, image: image, given: given, traits: out.traits, seen: map[Role]int64{},
		rulesUsed: make([]bool, len(opt.TensorTypes))}
	for k, i := range left {
		d, err := p.decide(&tensors[i], names[k])
		if err != nil {
			return nil, err
		}
		d.Tensor, d.NE = i, tensors[i].NE
		if image != nil {
			d.NE = imageDims(image, d.Name, d.NE)
		}
		out.Decisions = append(out.Decisions, d)
	}
	out.Compromises = p.compromises(out)
	return out, p.refusal()
}

// outputOrder returns the indexes of tensors in output order.
func outputOrder(tensors []model.Tensor, keep bool) []int {
	order := make([]int, len(tensors))
	for i := range order {
		order[i] = i
	}
	if !keep {
		slices.SortStableFunc(order, func(a, b int) int {
			x, y := tensors[a].Name, tensors[b].Name
			return cmp.Or(cmp.Compare(layerOf(x), layerOf(y)), cmp.Compare(x, y))
		})
	}
	return order
}

// Metadata keys below the architecture's name.
const (
	blockCountKey    = "block_count"
	predictLayersKey = "nextn_predict_layers"
	expertCountKey   = "expert_count"
	headCountKey     = "attention.head_count"
	headCountKVKey   = "attention.head_count_kv"
)

// readTraits collects the properties of the model that rules depend on. A missing number of layers is an error only
// where a rule depends on it, so that architectures without layers can be quantized; the reference refuses them.
func readTraits(meta gguf.Metadata, names []string) (*traits, error) {
	m := &traits{tied: true}
	if v, ok := meta.Get(gguf.KeyArchitecture); ok {
		m.arch, _ = v.Str()
	}
	var err error
	number := func(key string, absent int64) int64 {
		v, ok := meta.Get(gguf.ArchKey(m.arch, key))
		if !ok || err != nil {
			return absent
		}
		// head counts may be arrays with one number per layer: the first applies to all layers
		for e := range v.Elems() {
			v = e
			break
		}
		n, ok := v.Int()
		if !ok || n < 0 || n > 1<<31-1 {
			err = &InputError{fmt.Sprintf("key %q", gguf.ArchKey(m.arch, key)),
				fmt.Sprintf("got %s, want a count", v.Short())}
		}
		return n
	}
	// The reference takes all counts of encoders as 0, regardless of the keys.
	if m.arch != "clip" {
		m.experts = number(expertCountKey, 0)
		m.heads = number(headCountKey, 0)
		m.headsKV = number(headCountKVKey, m.heads)
		m.layers = number(blockCountKey, -1)
		m.predict = number(predictLayersKey, 0)
	}
	for _, name := range names {
		role := roleOf(name)
		if role&roleVV != 0 {
			m.values++
		}
		if role == RoleOutput {
			m.tied = false
		}
	}
	return m, err
}
