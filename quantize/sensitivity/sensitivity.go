// Package sensitivity measures the KL divergence of a model when only some of its tensors are quantized: for each group
// of tensors and each type. Recipes are made from such tables.
//
// Nothing is written. Tensors are encoded and decoded when they are read, and all variants share the layers before
// their first difference (eval.CompareVariants). Figures have the same bits as those of a written file.
package sensitivity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model"
	"ggforge/quantize"
)

// Group is a way to group tensors that are quantized together.
type Group string

// The groups. A tensor outside of layers is one by itself in each.
const (
	ByTensor Group = "tensor"
	ByRole   Group = "role"  // those of the same name in all layers: attn_v, ffn_down_exps
	ByLayer  Group = "layer" // those of a layer
)

// Groups are all groups.
var Groups = []Group{ByTensor, ByRole, ByLayer}

// All is the group of all tensors that can be quantized, measured besides the others: the sum of their figures if these
// were independent.
const All = "all"

// of returns the name of a tensor's group.
func (g Group) of(name string) string {
	rest, ok := strings.CutPrefix(name, "blk.")
	layer, role, ok2 := strings.Cut(rest, ".")
	role = strings.TrimSuffix(role, ".weight")
	switch {
	case !ok || !ok2:
		return strings.TrimSuffix(name, ".weight")
	case g == ByRole:
		return role
	case g == ByLayer:
		return "blk." + layer
	}
	return "blk." + layer + "." + role
}

// Options are the options of Measure.
type Options struct {
	Types []gguf.Type
	Group Group
	// Matrix is the path of an importance matrix, "" for none.
	Matrix string
	// AllowRequantize permits tensors that are quantized already to change type.
	AllowRequantize bool
	// Memory bounds the streams of models that run together, see eval.Variants.
	Memory int64
	// Run is the text.
	Run eval.Run
}

// Table is the result of Measure.
type Table struct {
	Rows []Row
	// Skipped are the groups that cannot be converted to a type.
	Skipped []Skipped
	// Warnings are the compromises of package quantize.
	Warnings []string
}

// Row is a group of tensors that have another type, all others being as in the base.
type Row struct {
	Group   string   `json:"group"`
	Type    string   `json:"type"` // as asked for
	Tensors []string `json:"tensors"`
	// Types are the types that the tensors get, if some differ from Type: rows that are not
	// whole blocks of it.
	Types     []string `json:"types,omitempty"`
	Weights   int64    `json:"weights"`
	BPW       float64  `json:"bpw"` // bits per weight of the group
	Bytes     int64    `json:"bytes"`
	BaseBytes int64    `json:"base_bytes"`
	// Divergence is the mean of KL(base ‖ model), in nats per token, with one standard
	// error.
	Divergence      float64 `json:"kld"`
	DivergenceError float64 `json:"kld_error"`
	// PerByte is Divergence divided by the bytes that the group saves; nil if it saves none.
	PerByte *float64 `json:"kld_per_saved_byte"`
	// LogRatio is ln of the model's perplexity divided by the base's.
	LogRatio      float64 `json:"ln_ppl_ratio"`
	LogRatioError float64 `json:"ln_ppl_ratio_error"`
	// Top is the share of tokens that both find the most probable.
	Top float64 `json:"same_top"`
}

// Skipped is a group that cannot have a type, and why.
type Skipped struct {
	Group  string `json:"group"`
	Type   string `json:"type"`
	Reason string `json:"reason"`
}

// candidate is a row that is being measured.
type candidate struct {
	job  *quantize.Job
	only map[string]bool // names
	row  Row
}

// Measure measures a model. Rows are sorted by KL divergence per saved byte, the largest first; those that save nothing
// come last.
func Measure(ctx context.Context, m *model.Model, opt Options) (*Table, error) {
	if !slices.Contains(Groups, opt.Group) {
		return nil, fault.Errorf(fault.Usage, "groups by %q, want one of %v", opt.Group, Groups)
	}
	base, err := eval.New(m)
	if err != nil {
		return nil, err
	}
	var recipes []*quantize.Recipe
	for _, t := range opt.Types {
		recipes = append(recipes, &quantize.Recipe{Name: t.String(), Type: t})
	}
	if len(recipes) == 0 {
		return nil, fault.Errorf(fault.Usage, "no types to measure")
	}
	batch, refused := quantize.PrepareBatch(ctx, m, recipes, quantize.Options{
		PlanOptions: quantize.PlanOptions{Pure: true, AllowRequantize: opt.AllowRequantize}, Matrix: opt.Matrix,
	})
	if batch == nil {
		return nil, refused
	}
	defer batch.Close()
	t := &Table{}
	var candidates []*candidate
	for i, job := range batch.Jobs {
		candidates = append(candidates, t.plan(job, opt.Types[i], opt.Group)...)
		for _, c := range job.Compromises {
			if w := c.String(); !slices.Contains(t.Warnings, w) {
				t.Warnings = append(t.Warnings, w)
			}
		}
	}
	if len(candidates) == 0 {
		return nil, cmp.Or(refused, fault.Errorf(fault.Refused, "%s: no tensor can be converted to %v",
			m.Path, opt.Types))
	}
	err = eval.CompareVariants(ctx, base, eval.Variants{
		N: len(candidates), Memory: opt.Memory,
		Model: func(i int) (*model.Model, error) {
			c := candidates[i]
			return c.job.Model(func(d *quantize.Decision) bool { return c.only[d.Name] })
		},
	}, opt.Run, func(i int, c *eval.Comparison) error {
		candidates[i].row.measured(c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, c := range candidates {
		t.Rows = append(t.Rows, c.row)
	}
	slices.SortStableFunc(t.Rows, func(a, b Row) int { return cmp.Compare(b.rank(), a.rank()) })
	return t, m.Unchanged()
}

// rank orders rows.
func (r *Row) rank() float64 {
	if r.PerByte == nil {
		return math.Inf(-1)
	}
	return *r.PerByte
}

// plan returns the candidates of a type, and notes the groups that cannot have it.
func (t *Table) plan(job *quantize.Job, typ gguf.Type, group Group) []*candidate {
	by := map[string]*candidate{}
	var list []*candidate
	refused := map[string]error{}
	for i := range job.Decisions {
		d := &job.Decisions[i]
		if d.To == d.From {
			continue
		}
		name := group.of(d.Name)
		if d.Refused != nil {
			if refused[name] == nil {
				refused[name] = d.Refused
				t.Skipped = append(t.Skipped, Skipped{name, typ.String(), reason(d.Refused)})
			}
			continue
		}
		if by[name] == nil {
			by[name] = newCandidate(job, name, typ)
			list = append(list, by[name])
		}
		by[name].add(d)
	}
	list = slices.DeleteFunc(list, func(c *candidate) bool { return refused[c.row.Group] != nil })
	if len(list) < 2 {
		return list
	}
	all := newCandidate(job, All, typ)
	for i := range job.Decisions {
		if d := &job.Decisions[i]; d.To != d.From && refused[group.of(d.Name)] == nil {
			all.add(d)
		}
	}
	return append(list, all)
}

// reason describes why a tensor cannot have a type.
func reason(err error) string {
	if e := (*quantize.RefusedError)(nil); errors.As(err, &e) {
		return fmt.Sprintf("tensor %q: %s", e.Tensor, e.Msg)
	}
	return err.Error()
}

func newCandidate(job *quantize.Job, name string, typ gguf.Type) *candidate {
	return &candidate{job, map[string]bool{}, Row{Group: name, Type: typ.String()}}
}

// add adds a tensor to the group.
func (c *candidate) add(d *quantize.Decision) {
	c.only[d.Name] = true
	ne := c.job.Input.Tensors[d.Tensor].NE
	r := &c.row
	r.Tensors = append(r.Tensors, d.Name)
	if to := d.To.String(); to != r.Type && !slices.Contains(r.Types, to) {
		r.Types = append(r.Types, to)
	}
	r.Weights += gguf.Rows(ne) * gguf.RowLen(ne)
	r.Bytes += gguf.DataBytes(d.To, ne)
	r.BaseBytes += gguf.DataBytes(d.From, ne)
	r.BPW = 8 * float64(r.Bytes) / float64(r.Weights)
}

func (r *Row) measured(c *eval.Comparison) {
	r.Divergence, r.DivergenceError = c.Divergence.Mean, c.Divergence.Error
	r.LogRatio, r.LogRatioError, r.Top = c.LogRatio.Mean, c.LogRatio.Error, c.Top.Mean
	if saved := r.BaseBytes - r.Bytes; saved > 0 {
		per := r.Divergence / float64(saved)
		r.PerByte = &per
	}
}
