package allocate

import (
	"fmt"
	"slices"
	"strings"

	"ggforge/arch/diffusion"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/text/nearest"
	"ggforge/model"
	"ggforge/quantize"
	"ggforge/quants"
)

// AllowedTypes lists the candidate types of tensors.
type AllowedTypes struct {
	Pattern string // of names, "" for all
	Types   []gguf.Type
	rule    quantize.TensorTypeRule
}

// String returns the list as ParseAllowedTypes reads it.
func (l AllowedTypes) String() string {
	var b strings.Builder
	if l.Pattern != "" {
		b.WriteString(l.Pattern + "=")
	}
	for i, t := range l.Types {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(t.String())
	}
	return b.String()
}

// ParseAllowedTypes reads "TYPE,TYPE" or "PATTERN=TYPE,TYPE", with a pattern as for
// quantize.CompileTensorRule.
func ParseAllowedTypes(s string) (l AllowedTypes, err error) {
	list := s
	if pattern, rest, ok := strings.Cut(s, "="); ok {
		if l.rule, err = quantize.CompileTensorRule(pattern + "=f32"); err != nil {
			return l, err
		}
		l.Pattern, list = pattern, rest
	}
	for name := range strings.SplitSeq(list, ",") {
		t, ok := gguf.ParseType(name)
		if !ok {
			return l, fault.Errorf(fault.Usage, "types %q: unknown type %q, want TYPE,TYPE or PATTERN=TYPE,TYPE%s", s,
				name, nearest.Hint(name, gguf.TypeNames()))
		}
		if !quants.Lookup(t).CanQuantize() {
			return l, fault.Errorf(fault.Unsupported, "types %q: tensors cannot be converted to %v", s, t)
		}
		if !slices.Contains(l.Types, t) {
			l.Types = append(l.Types, t)
		}
	}
	return l, nil
}

// defaultTypes are the candidate types without AllowedTypes: the first list whose types all fit a tensor's rows.
var defaultTypes = [][]gguf.Type{
	{gguf.TypeQ2_K, gguf.TypeQ3_K, gguf.TypeIQ4_XS, gguf.TypeQ4_K, gguf.TypeQ5_K, gguf.TypeQ6_K, gguf.TypeQ8_0},
	{gguf.TypeIQ4_NL, gguf.TypeQ4_1, gguf.TypeQ5_0, gguf.TypeQ5_1, gguf.TypeQ8_0},
	{gguf.TypeF16},
}

// imageTypes is defaultTypes for image models: types that all of their loaders have.
var imageTypes = [][]gguf.Type{
	{gguf.TypeQ2_K, gguf.TypeQ3_K, gguf.TypeQ4_K, gguf.TypeQ5_K, gguf.TypeQ6_K, gguf.TypeQ8_0},
	{gguf.TypeQ4_0, gguf.TypeQ4_1, gguf.TypeQ5_0, gguf.TypeQ5_1, gguf.TypeQ8_0},
	{gguf.TypeF16},
}

// Candidates returns the tensors that a job would convert and whose types no option fixes, with their candidate types:
// those of the first list whose pattern matches, else defaultTypes or imageTypes. They are valid until the job is closed.
func Candidates(j *quantize.Job, allowed []AllowedTypes) ([]Candidate, error) {
	used := make([]bool, len(allowed))
	var all []Candidate
	for i := range j.Decisions {
		d := &j.Decisions[i]
		if d.Reason.Kind == quantize.Kept || d.Reason.Kind == quantize.ByOverride {
			continue
		}
		c := Candidate{Tensor: d.Tensor, Name: d.Name}
		lists := defaultTypes
		if diffusion.Has(j.Input.Architecture()) {
			lists = imageTypes
		}
		if k := slices.IndexFunc(allowed, func(l AllowedTypes) bool {
			return l.Pattern == "" ||
				l.rule.Match(d.Name)
		}); k >= 0 {
			used[k], lists = true, [][]gguf.Type{allowed[k].Types}
		}
		for _, list := range lists {
			if slices.ContainsFunc(list, func(t gguf.Type) bool {
				return t.BlockLen() > 32 &&
					j.Input.Tensors[d.Tensor].NE[0]%t.BlockLen() != 0
			}) && len(lists) > 1 {
				continue
			}
			for _, t := range list {
				if rows := j.Encoded(d, t); rows != nil {
					c.Types, c.Rows = append(c.Types, t), append(c.Rows, rows)
				}
			}
			if len(c.Types) > 0 {
				break
			}
		}
		if len(c.Types) == 0 {
			return nil, fault.Errorf(fault.Refused,
				"%s: tensor %q with rows of %d values can have none of the types %v",
				j.Input.Path, d.Name, j.Input.Tensors[d.Tensor].NE[0], lists)
		}
		all = append(all, c)
	}
	for k, ok := range used {
		if !ok {
			return nil, fault.Errorf(fault.Refused,
				"types %q: the pattern matches no tensor to convert, or earlier patterns match all of them",
				allowed[k].Pattern)
		}
	}
	if len(all) == 0 {
		return nil, fault.Errorf(fault.Refused,
			"%s: options fix the types of all tensors, or none is converted: nothing to choose", j.Input.Path)
	}
	return all, nil
}

// Assignment is a type for each candidate.
type Assignment struct {
	Types  []gguf.Type
	Losses []float64 // of each
	Loss   float64   // their sum
	Bytes  int64     // of the candidates' data, as counted
	// Within bounds how much smaller Loss (for MinimizeBytes: Bytes) could be; 0 if it is the minimum.
	Within float64
}

// Sizer counts the bytes of tensor data, each tensor rounded up to a multiple of Align.
type Sizer struct{ Align int64 }

func (s Sizer) bytes(t gguf.Type, ne []int64) int64 {
	return gguf.Align(gguf.DataBytes(t, ne), max(1, s.Align))
}

// Bytes returns the bytes of candidates with the types that a job gives them.
func (s Sizer) Bytes(j *quantize.Job, candidates []Candidate) (sum int64) {
	for i := range j.Decisions {
		d := &j.Decisions[i]
		if slices.ContainsFunc(candidates, func(c Candidate) bool { return c.Tensor == d.Tensor }) {
			sum += s.bytes(d.To, j.Input.Tensors[d.Tensor].NE)
		}
	}
	return sum
}

// MinimizeLoss returns the types with the least predicted loss that take at most limit bytes. least is the number of
// bytes of the smallest types; ok is false if they exceed limit.
func MinimizeLoss(m *model.Model, candidates []Candidate, losses [][]float64, s Sizer, limit int64) (a Assignment,
	least int64, ok bool) {
	groups := make([][]option, len(candidates))
	for k, c := range candidates {
		smallest := int64(-1)
		for t, typ := range c.Types {
			n := s.bytes(typ, m.Tensors[c.Tensor].NE)
			groups[k] = append(groups[k], option{float64(n), losses[k][t]})
			if smallest < 0 || n < smallest {
				smallest = n
			}
		}
		least += smallest
	}
	found, ok := leastLoss(groups, float64(limit))
	if !ok {
		return a, least, false
	}
	return assignment(candidates, losses, groups, found, func(o option) int64 { return int64(o.cost) }), least, true
}

// MinimizeBytes returns the smallest types whose predicted loss is at most limit. least is the smallest loss of all
// types; ok is false if it exceeds limit.
func MinimizeBytes(m *model.Model, candidates []Candidate, losses [][]float64, s Sizer, limit float64) (a Assignment,
	least float64, ok bool) {
	groups := make([][]option, len(candidates))
	for k, c := range candidates {
		for t, typ := range c.Types {
			groups[k] = append(groups[k], option{losses[k][t], float64(s.bytes(typ, m.Tensors[c.Tensor].NE))})
		}
		least += slices.Min(losses[k])
	}
	found, ok := leastLoss(groups, limit)
	if !ok {
		return a, least, false
	}
	return assignment(candidates, losses, groups, found, func(o option) int64 { return int64(o.loss) }), least, true
}

func assignment(candidates []Candidate, losses [][]float64, groups [][]option, found solution,
	bytes func(option) int64) Assignment {
	a := Assignment{Within: found.within}
	for k, t := range found.chosen {
		a.Types, a.Losses = append(a.Types, candidates[k].Types[t]), append(a.Losses, losses[k][t])
		a.Loss += losses[k][t]
		a.Bytes += bytes(groups[k][t])
	}
	return a
}

// Rules returns the rules that give candidates these types.
func (a *Assignment) Rules(candidates []Candidate) ([]quantize.TensorTypeRule, error) {
	var rules []quantize.TensorTypeRule
	for k, c := range candidates {
		r, err := quantize.CompileTensorRule(fmt.Sprintf("%s=%s", Pattern(c.Name), a.Types[k]))
		if err != nil {
			return nil, err
		}
		for i, other := range rules {
			if other.Match(c.Name) {
				return nil, fault.Errorf(fault.Unsupported, "tensors %q and %q: no pattern distinguishes these names",
					candidates[i].Name, c.Name)
			}
		}
		rules = append(rules, r)
	}
	return rules, nil
}
