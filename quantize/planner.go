package quantize

import (
	"errors"
	"fmt"
	"slices"

	"ggforge/arch/diffusion"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model"
	"ggforge/quants"
)

// planner holds the state that passes from one tensor to the next.
type planner struct {
	opt    PlanOptions
	traits *traits
	image  *diffusion.Model // nil for other models
	seen   map[Role]int64   // tensors handled by rules, per kind of role

	given     int    // the first of opt.TensorTypes that is the recipe's
	rulesUsed []bool // which of opt.TensorTypes have given a type
	usedOut   bool   // the same for the other options
	usedEmbd  bool
	usedLeave bool

	uncovered []string // names of tensors that could use importance and have none
	misfits   []string // entries of the matrix that do not fit, as messages
	refused   []error
}

// decide settles one tensor, which is called name in the output.
func (p *planner) decide(t *model.Tensor, name string) (Decision, error) {
	d := Decision{Name: name, From: t.Type, To: t.Type, Want: t.Type}
	if !t.Type.Known() && !p.opt.Recipe.Copy {
		return d, &UnsupportedError{name, t.Type,
			"the type is not known: such tensors can be copied, with a recipe that copies all"}
	}
	if why := p.kept(t, name); why != "" {
		d.Reason = Reason{Kept, why}
		return d, nil
	}
	role := roleOf(name)
	if p.image != nil {
		if err := checkImageName(p.image, t, name); err != nil {
			return d, err
		}
		role = imageRole(name)
	}
	fixed, option := p.fixedType(name, role)
	if fixed != nil {
		d.To, d.Want, d.Reason = *fixed, *fixed, Reason{ByOverride, option}
	} else {
		var err error
		if d.Want, d.Reason, err = p.want(t, name, role); err != nil {
			return d, err
		}
		if !quants.Lookup(d.Want).CanQuantize() {
			return d, noEncoder(name, d.Want)
		}
		ok := true
		if d.To = d.Want; p.image == nil {
			d.To, ok = fallbackFor(d.Want, t.NE[0])
		} else if !fits(d.Want, t.NE[0]) {
			d.To = gguf.TypeF16
		}
		if !ok {
			return d, &UnsupportedError{name, d.Want, misfitText(t, d.Want) + ", and there is no fallback for the type"}
		}
		if d.To != d.Want {
			d.Reason = Reason{ByFallback, misfitText(t, d.Want)}
		}
	}
	return d, p.check(t, &d, role)
}

func misfitText(t *model.Tensor, typ gguf.Type) string {
	return fmt.Sprintf("row of %d is not a multiple of %d (%v)", t.NE[0], typ.BlockLen(), typ)
}

func noEncoder(tensor string, t gguf.Type) error {
	return &UnsupportedError{tensor, t, "tensors cannot be converted to this type"}
}

// kept returns why t is not converted, "" if it is.
func (p *planner) kept(t *model.Tensor, name string) string {
	if p.opt.Recipe.Copy {
		return "recipe " + p.opt.Recipe.Name
	}
	if p.image != nil {
		if why := keptImage(p.image, name, t.NE); why != "" {
			return why
		}
		return p.keptOutput(name)
	}
	dims := len(t.NE)
	for dims > 1 && t.NE[dims-1] == 1 {
		dims--
	}
	if dims < 2 {
		return "1-D"
	}
	if why := keptName(name); why != "" {
		return why
	}
	return p.keptOutput(name)
}

// keptOutput returns why an output head is not converted, "" if it is.
func (p *planner) keptOutput(name string) string {
	if p.opt.LeaveOutputTensor && name == outputName {
		p.usedLeave = true
		return "output tensor left as it is"
	}
	return ""
}

// fixedType returns the type that an option fixes for the tensor, and the option.
// Such a type is not subject to fallback.
func (p *planner) fixedType(name string, role Role) (*gguf.Type, string) {
	switch {
	case role == RoleOutput && p.opt.OutputTensorType != nil:
		p.usedOut = true
		return p.opt.OutputTensorType, "output tensor type"
	case role == RoleEmbd && p.opt.TokenEmbeddingType != nil && (name == embdName || p.tensorRule(name) < 0):
		// A tensor rule wins for per-layer embeddings, and for them only. In the
		// reference it does so also where it then has no effect itself.
		p.usedEmbd = true
		return p.opt.TokenEmbeddingType, "token embedding type"
	}
	return nil, ""
}

// tensorRule returns the index of the first tensor rule that matches name, -1
// without one.
func (p *planner) tensorRule(name string) int {
	return slices.IndexFunc(p.opt.TensorTypes, func(r TensorTypeRule) bool { return r.Match(name) })
}

// want returns the type that tensor rules or the recipe give t.
func (p *planner) want(t *model.Tensor, name string, role Role) (gguf.Type, Reason, error) {
	r := p.opt.Recipe
	if r.Type.Kind() != gguf.KindQuant {
		return r.Type, Reason{ByRecipe, r.Name}, nil
	}
	if i := p.tensorRule(name); i >= 0 {
		p.rulesUsed[i] = true
		tr := p.opt.TensorTypes[i]
		if i >= p.given {
			return tr.Type, Reason{ByRecipe, r.Name + ": given type"}, nil
		}
		return tr.Type, Reason{ByOverride, "tensor rule " + tr.Pattern}, nil
	}
	if p.opt.Pure {
		return r.Type, Reason{ByRecipe, r.Name + ", pure"}, nil
	}

	if role == RoleEmbd && p.traits.tied {
		role = RoleOutput
		if o := p.opt.OutputTensorType; o != nil {
			p.usedOut = true
			return *o, Reason{ByOverride, "output tensor type, tied embedding"}, nil
		}
	}
	kind := role
	if role&roleVV != 0 && p.image == nil {
		kind = roleVV
	}
	s := site{traits: p.traits, name: name, role: role, ne: t.NE, seen: p.seen[kind]}
	typ, why := r.choose(&s)
	p.seen[kind]++
	return typ, Reason{ByRecipe, r.Name + ": " + why}, s.err
}

// check finds out whether the conversion d can and may be carried out, and
// whether with importance.
func (p *planner) check(t *model.Tensor, d *Decision, role Role) error {
	if d.To == d.From {
		return nil
	}
	if !quants.Lookup(d.To).CanQuantize() {
		return noEncoder(d.Name, d.To)
	}
	if !quants.Lookup(d.From).CanDequantize() {
		return &UnsupportedError{d.Name, d.From, "tensors of this type cannot be converted"}
	}
	if !fits(d.To, t.NE[0]) {
		return &UnsupportedError{d.Name, d.To, fmt.Sprintf("%s, and %v has no fallback", misfitText(t, d.To), d.Reason)}
	}
	if d.From.Kind() == gguf.KindQuant && !p.opt.AllowRequantize {
		p.refuse(d, fault.Permits("AllowRequantize",
			&RefusedError{Tensor: d.Name, Type: d.From, Msg: "already quantized"}))
		return nil
	}
	needs := p.opt.Recipe.needs(d.To, role)
	if p.opt.Importance == nil {
		if needs {
			p.refuse(d, &RefusedError{Tensor: d.Name, Type: d.To, Msg: "needs an importance matrix"})
		}
		return nil
	}
	ok, warning, err := p.opt.Importance(t.Name, t.NE)
	switch {
	case err != nil:
		p.refuse(d, err)
		return nil
	case warning != nil:
		p.misfits = append(p.misfits, warning.Error())
	}
	d.Importance = ok && quants.Lookup(d.To).Importance() != quants.ImportanceIgnored
	if ok {
		return nil
	}
	if needs {
		p.refuse(d, &RefusedError{Tensor: d.Name, Type: d.To,
			Msg: "the importance matrix has no entry for this tensor, and the type needs one"})
	}
	// Calibration does not see embeddings, nor output heads unless asked to.
	if warning == nil && quants.Lookup(d.To).Importance() != quants.ImportanceIgnored &&
		role&(RoleOutput|RoleEmbd) == 0 {
		p.uncovered = append(p.uncovered, d.Name)
	}
	return nil
}

// refuse records why a conversion is refused.
func (p *planner) refuse(d *Decision, err error) {
	p.refused, d.Refused = append(p.refused, err), err
}

// refusal returns the first refusal, with the number of all.
func (p *planner) refusal() error {
	if len(p.refused) == 0 {
		return nil
	}
	if e := (*RefusedError)(nil); errors.As(p.refused[0], &e) {
		e.Others = len(p.refused) - 1
	}
	return p.refused[0]
}

// compromises lists the results that differ from the options.
func (p *planner) compromises(out *Planned) (all []Compromise) {
	var fallbacks []string
	for _, d := range out.Decisions {
		if d.To != d.Want {
			fallbacks = append(fallbacks, fmt.Sprintf("%s (%v instead of %v)", d.Name, d.To, d.Want))
		}
	}
	add := func(bad bool, text string, names ...string) {
		if bad {
			all = append(all, Compromise{text, names})
		}
	}
	add(fallbacks != nil, "rows that are not whole blocks of the wanted type", fallbacks...)
	for i, used := range p.rulesUsed {
		add(!used, fmt.Sprintf("tensor rule %v has no effect on any tensor", p.opt.TensorTypes[i]))
	}
	const none = " has no effect: no such tensor is converted"
	add(p.opt.OutputTensorType != nil && !p.usedOut, "output tensor type"+none)
	add(p.opt.TokenEmbeddingType != nil && !p.usedEmbd, "token embedding type"+none)
	add(p.opt.LeaveOutputTensor && !p.usedLeave && !p.opt.Recipe.Copy,
		"leaving the output tensor as it is has no effect: there is no tensor "+outputName)
	if out.layers != nil {
		none := out.layers.missing(p.opt.PruneLayers)
		add(none != nil, "layers to prune that the model does not have", none...)
	}
	for _, m := range p.misfits {
		add(true, m+": quantized without")
	}
	add(p.uncovered != nil, "tensors without an entry in the importance matrix", p.uncovered...)
	return all
}
