package quantize

import (
	"cmp"
	"fmt"
	"slices"

	"ggforge/gguf"
	"ggforge/internal/fault"
)

// PlanTensor is a tensor of the input.
type PlanTensor struct {
	Name string
	NE   []int64 // NE[0] is the row length
	Type gguf.Type
}

// PlanOptions says what to make of the tensors. Recipe is required; every other
// zero value is the default.
type PlanOptions struct {
	Recipe *Recipe

	// Pure gives every tensor the recipe's default type.
	Pure bool
	// LeaveOutputTensor keeps output.weight as it is.
	LeaveOutputTensor bool
	// OutputTensorType and TokenEmbeddingType, if not nil, beat the recipe and
	// TensorTypes for output.weight and the token embeddings. OutputTensorType
	// also stands in for the recipe's type for a tied embedding. For
	// per_layer_token_embd.weight a matching rule of TensorTypes beats
	// TokenEmbeddingType.
	OutputTensorType   *gguf.Type
	TokenEmbeddingType *gguf.Type
	// TensorTypes beat the recipe; the first that matches a tensor counts. They
	// have no effect on recipes whose default type is plain floats.
	TensorTypes []TensorTypeRule

	// Importance reports whether there is importance for the tensor of that
	// name. It is nil without an importance matrix, and must be nil for a matrix
	// that has no entries left: some recipes save bits when it is not.
	Importance func(name string) bool
	// AllowRequantize permits tensors that are quantized already to change type.
	AllowRequantize bool
	// KeepOrder keeps the order of the input, for output in the same shards.
	KeepOrder bool
}

// Decision is what becomes of one tensor.
type Decision struct {
	Tensor int // index into the tensors given to Plan
	Name   string
	From   gguf.Type // type in the input
	To     gguf.Type // type in the output; the data is copied if equal to From
	Want   gguf.Type // type before a fallback; equal to To without one
	Reason Reason
}

// Reason says why a tensor gets its type.
type Reason struct {
	Kind ReasonKind
	Text string // details: "1-D", "attn_v, 8 experts"
}

// ReasonKind is the kind of a Reason.
type ReasonKind uint8

// The kinds of reasons.
const (
	Kept       ReasonKind = iota // never converted
	ByRecipe                     // the recipe's rules or default type
	ByOverride                   // an option names the type for this tensor
	ByFallback                   // the row is not whole blocks of the wanted type
)

var reasonKinds = [...]string{Kept: "kept", ByRecipe: "recipe", ByOverride: "override", ByFallback: "fallback"}

// String returns one word: "kept", "recipe", "override", "fallback".
func (k ReasonKind) String() string { return reasonKinds[k] }

// String returns the reason as shown to the user.
func (r Reason) String() string {
	if r.Kind == ByRecipe || r.Kind == ByOverride {
		return r.Kind.String() + " " + r.Text
	}
	return r.Kind.String() + ": " + r.Text
}

// RefusedError says that the plan can be carried out but must not be, as the
// options stand.
type RefusedError struct {
	Tensor string
	Type   gguf.Type
	Msg    string
	Others int // how many further tensors are refused
}

func (e *RefusedError) Error() string {
	s := fmt.Sprintf("tensor %q, type %v: %s", e.Tensor, e.Type, e.Msg)
	if e.Others > 0 {
		s += fmt.Sprintf(" (and %d more tensors)", e.Others)
	}
	return s
}

// Is makes errors.Is(err, ErrRefused) true.
func (e *RefusedError) Is(target error) bool { return target == fault.Refused }

// UnsupportedError says that a tensor cannot be converted as wanted. It is a
// gguf.ErrUnsupported.
type UnsupportedError struct {
	Tensor string
	Type   gguf.Type
	Msg    string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("tensor %q, type %v: %s", e.Tensor, e.Type, e.Msg)
}

// Is makes errors.Is(err, gguf.ErrUnsupported) true.
func (e *UnsupportedError) Is(target error) bool { return target == gguf.ErrUnsupported }

// InputError says that the input lacks, or misstates, what the recipe has to
// know. It is a gguf.ErrBroken.
type InputError struct {
	Object string // the thing: `key "x"`, `tensor "x"`
	Msg    string
}

func (e *InputError) Error() string { return e.Object + ": " + e.Msg }

// Is makes errors.Is(err, gguf.ErrBroken) true.
func (e *InputError) Is(target error) bool { return target == gguf.ErrBroken }

// Plan decides the type of every tensor. The decisions are in output order:
// unless the order is kept, tensors outside of layers first, then by layer, and
// by the bytes of the name inside a layer. meta is the input's metadata.
//
// The errors are *InputError, *UnsupportedError and *RefusedError. The decisions
// are complete also with a *RefusedError, so that they can be shown; with the
// other errors there are none.
func Plan(meta gguf.Metadata, tensors []PlanTensor, opt PlanOptions) ([]Decision, error) {
	m, err := readModel(meta, tensors)
	if err != nil {
		return nil, err
	}
	m.importance = opt.Importance != nil
	p := planner{opt: opt, model: m, seen: map[Role]int64{}}

	out := make([]Decision, 0, len(tensors))
	for _, i := range outputOrder(tensors, opt.KeepOrder) {
		d, err := p.decide(&tensors[i])
		if err != nil {
			return nil, err
		}
		d.Tensor = i
		out = append(out, d)
	}
	if p.refused != nil {
		return out, p.refused
	}
	return out, nil
}

// outputOrder returns the indexes of tensors in output order.
func outputOrder(tensors []PlanTensor, keep bool) []int {
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

// readModel collects what rules see of the model. A missing number of layers is
// an error only where a rule depends on it, so that files of architectures
// without layers can be converted; the reference refuses them.
func readModel(meta gguf.Metadata, tensors []PlanTensor) (*model, error) {
	m := &model{tied: true}
	if v, ok := meta.Get(gguf.KeyArchitecture); ok {
		m.arch, _ = v.Str()
	}
	var err error
	number := func(key string, absent int64) int64 {
		v, ok := meta.Get(gguf.ArchKey(m.arch, key))
		if !ok || err != nil {
			return absent
		}
		// One number per layer is allowed for heads; the first layer stands for all.
		for e := range v.Elems() {
			v = e
			break
		}
		n, ok := v.Int()
		if !ok || n < 0 || n > 1<<31-1 {
			err = &InputError{fmt.Sprintf("key %q", gguf.ArchKey(m.arch, key)), fmt.Sprintf("got %v, want a count", v)}
		}
		return n
	}
	// The reference takes all counts of encoders for 0, whatever the keys say.
	if m.arch != "clip" {
		m.experts = number(expertCountKey, 0)
		m.heads = number(headCountKey, 0)
		m.headsKV = number(headCountKVKey, m.heads)
		m.layers = number(blockCountKey, -1)
		m.predict = number(predictLayersKey, 0)
	}
	for i := range tensors {
		role := roleOf(tensors[i].Name)
		if role&roleVV != 0 {
			m.values++
		}
		if role == RoleOutput {
			m.tied = false
		}
	}
	return m, err
}

// planner holds what passes from one tensor to the next.
type planner struct {
	opt     PlanOptions
	model   *model
	seen    map[Role]int64 // tensors handled by rules, per kind of role
	refused *RefusedError
}

// decide settles one tensor.
func (p *planner) decide(t *PlanTensor) (Decision, error) {
	d := Decision{Name: t.Name, From: t.Type, To: t.Type, Want: t.Type}
	if why := p.kept(t); why != "" {
		d.Reason = Reason{Kept, why}
		return d, nil
	}
	role := roleOf(t.Name)
	fixed, option := p.fixedType(t.Name, role)
	if fixed != nil {
		d.To, d.Want, d.Reason = *fixed, *fixed, Reason{ByOverride, option}
	} else {
		var err error
		if d.Want, d.Reason, err = p.want(t, role); err != nil {
			return d, err
		}
		if _, known := targets[d.Want]; !known {
			return d, noEncoder(t.Name, d.Want)
		}
		var ok bool
		if d.To, ok = fallbackFor(d.Want, t.NE[0]); !ok {
			return d, &UnsupportedError{t.Name, d.Want, misfitText(t, d.Want) + ", and there is no fallback for the type"}
		}
		if d.To != d.Want {
			d.Reason = Reason{ByFallback, misfitText(t, d.Want)}
		}
	}
	return d, p.check(t, &d, role)
}

func misfitText(t *PlanTensor, typ gguf.Type) string {
	return fmt.Sprintf("row of %d is not a multiple of %d (%v)", t.NE[0], typ.BlockLen(), typ)
}

func noEncoder(tensor string, t gguf.Type) error {
	return &UnsupportedError{tensor, t, "tensors cannot be converted to this type"}
}

// kept returns why t is not converted, "" if it is.
func (p *planner) kept(t *PlanTensor) string {
	if p.opt.Recipe.Copy {
		return "recipe " + p.opt.Recipe.Name
	}
	dims := len(t.NE)
	for dims > 1 && t.NE[dims-1] == 1 {
		dims--
	}
	if dims < 2 {
		return "1-D"
	}
	if why := keptName(t.Name); why != "" {
		return why
	}
	if p.opt.LeaveOutputTensor && t.Name == outputName {
		return "--leave-output-tensor"
	}
	return ""
}

// fixedType returns the type that an option fixes for the tensor, and the option.
// Such a type is not subject to fallback.
func (p *planner) fixedType(name string, role Role) (*gguf.Type, string) {
	switch {
	case role == RoleOutput:
		return p.opt.OutputTensorType, "--output-tensor-type"
	case role == RoleEmbd && (name == embdName || p.tensorRule(name) == nil):
		// A tensor rule wins for per-layer embeddings, and for them only. In the
		// reference it does so also where it then has no effect itself.
		return p.opt.TokenEmbeddingType, "--token-embedding-type"
	}
	return nil, ""
}

// tensorRule returns the first tensor rule that matches name, nil without one.
func (p *planner) tensorRule(name string) *TensorTypeRule {
	for i := range p.opt.TensorTypes {
		if r := &p.opt.TensorTypes[i]; r.Match(name) {
			return r
		}
	}
	return nil
}

// want returns the type that tensor rules or the recipe give t.
func (p *planner) want(t *PlanTensor, role Role) (gguf.Type, Reason, error) {
	r := p.opt.Recipe
	if r.Type.Kind() != gguf.KindQuant {
		return r.Type, Reason{ByRecipe, r.Name}, nil
	}
	if tr := p.tensorRule(t.Name); tr != nil {
		return tr.Type, Reason{ByOverride, "--tensor-type " + tr.Pattern}, nil
	}
	if p.opt.Pure {
		return r.Type, Reason{ByRecipe, r.Name + " --pure"}, nil
	}

	if role == RoleEmbd && p.model.tied {
		role = RoleOutput
		if o := p.opt.OutputTensorType; o != nil {
			return *o, Reason{ByOverride, "--output-tensor-type, tied embedding"}, nil
		}
	}
	kind := role
	if role&roleVV != 0 {
		kind = roleVV
	}
	s := site{model: p.model, name: t.Name, role: role, ne: t.NE, seen: p.seen[kind]}
	typ, why := r.choose(&s)
	p.seen[kind]++
	return typ, Reason{ByRecipe, r.Name + ": " + why}, s.err
}

// check finds out whether the conversion d can and may be carried out.
func (p *planner) check(t *PlanTensor, d *Decision, role Role) error {
	if d.To == d.From {
		return nil
	}
	if _, known := targets[d.To]; !known {
		return noEncoder(t.Name, d.To)
	}
	if _, known := targets[d.From]; !known {
		return &UnsupportedError{t.Name, d.From, "tensors of this type cannot be converted"}
	}
	if !fits(d.To, t.NE[0]) {
		return &UnsupportedError{t.Name, d.To, fmt.Sprintf("%s, and %v has no fallback", misfitText(t, d.To), d.Reason)}
	}
	if d.From.Kind() == gguf.KindQuant && !p.opt.AllowRequantize {
		p.refuse(t.Name, d.From, "already quantized; --allow-requantize would requantize it")
		return nil
	}
	switch needs := p.opt.Recipe.needs(d.To, role); {
	case needs && p.opt.Importance == nil:
		p.refuse(t.Name, d.To, "needs an importance matrix")
	case needs && !p.opt.Importance(t.Name):
		p.refuse(t.Name, d.To, "the importance matrix has no entry for this tensor, and the type needs one")
	}
	return nil
}

// refuse records a refusal; the first one is reported.
func (p *planner) refuse(tensor string, t gguf.Type, msg string) {
	if p.refused != nil {
		p.refused.Others++
		return
	}
	p.refused = &RefusedError{Tensor: tensor, Type: t, Msg: msg}
}
