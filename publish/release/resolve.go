package release

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ggforge/arch/diffusion"
	"ggforge/convert"
	"ggforge/fault"
	"ggforge/internal/text/nearest"
	"ggforge/publish/card"
	"ggforge/publish/naming"
	"ggforge/quantize"
	"ggforge/quantize/allocate"
	"ggforge/quantize/calibrate"
)

// resolved holds the types that a plan names.
type resolved struct {
	recipes  []*quantize.Recipe // of each output
	like     []*quantize.Recipe // for each output, nil for none
	limits   []allocate.AllowedTypes
	via      convert.OutType
	encoders []convert.OutType
}

// resolve checks a plan, and parses its names of types.
func (p *Plan) resolve() (*resolved, error) {
	r := &resolved{via: convert.Auto}
	if p.Output == "" {
		return nil, fault.Errorf(fault.Usage, "%s", p.about("there is no output folder"))
	}
	if len(p.Outputs) == 0 {
		return nil, fault.Errorf(fault.Usage, "%s", p.about("there are no outputs"))
	}
	if p.Template != "" {
		if err := naming.CheckTemplate(p.Template); err != nil {
			return nil, fmt.Errorf("%s: %w", p.about("name_template"), err)
		}
	}
	limits := ""
	for i := range p.Outputs {
		if err := p.resolveOutput(r, &p.Outputs[i], &limits); err != nil {
			return nil, err
		}
	}
	if c := p.Card; c != nil {
		if c.Repository != "" && !card.HubName(c.Repository) {
			return nil, fault.Errorf(fault.Usage, "%s is %q, want ORG/NAME", p.about("card.repository"), c.Repository)
		}
		if slices.Contains(c.Contexts, 0) {
			return nil, fault.Errorf(fault.Usage, "%s has 0, want numbers of tokens", p.about("card.contexts"))
		}
	}
	var err error
	if p.Via != "" {
		if r.via, err = convert.ParseOutType(p.Via); err != nil {
			return nil, fmt.Errorf("%s: %w", p.about("via"), err)
		}
	}
	for _, name := range p.Encoders {
		t, err := convert.ParseOutType(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.about("towers"), err)
		}
		r.encoders = append(r.encoders, t)
	}
	return r, p.checkCalibration()
}

// resolveOutput adds an output. limits has the Types of the outputs before it, which must be the same for all.
func (p *Plan) resolveOutput(r *resolved, o *Output, limits *string) error {
	fail := func(format string, args ...any) error {
		return fault.Errorf(fault.Usage, "%s: "+format, append([]any{p.place(o)}, args...)...)
	}
	recipe := func(name string) (*quantize.Recipe, error) {
		if r, ok := quantize.LookupRecipe(name); ok {
			return r, nil
		}
		var names []string
		for _, r := range quantize.Recipes() {
			names = append(names, r.Name)
		}
		return nil, fail("unknown type %q%s", name, nearest.Hint(name, names))
	}
	main, err := recipe(o.Type)
	if err != nil {
		return err
	}
	var like *quantize.Recipe
	if o.Like != "" {
		if like, err = recipe(o.Like); err != nil {
			return err
		}
	}
	n := 0
	for _, set := range []bool{o.BPW > 0, o.Size > 0, o.Like != "", o.KLD > 0} {
		if set {
			n++
		}
	}
	switch {
	case n > 1:
		return fail("want only one of bpw, size, like and kld")
	case n == 0 && o.Types != "":
		return fail("types goes with one of bpw, size, like and kld")
	case n == 0:
	case o.KLD > 0 && !p.calibrated():
		return fail("the divergence of outputs is that over a text: want calibration.text")
	case p.Split > 0:
		return fail("types of tensors cannot be chosen for shards: want no split")
	case *limits != "" && o.Types != "" && o.Types != *limits:
		return fail("types is %s here and %s above: want the same for all outputs", o.Types, *limits)
	}
	if o.Types != "" && *limits == "" {
		*limits = o.Types
		l, err := allocate.ParseAllowedTypes(o.Types)
		if err != nil {
			return fmt.Errorf("%s: types: %w", p.place(o), err)
		}
		r.limits = append(r.limits, l)
	}
	if strings.Trim(o.Name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") != "" ||
		len(o.Name) > 16 {
		return fail("name is %q, want at most 16 letters, digits and underscores", o.Name)
	}
	r.recipes, r.like = append(r.recipes, main), append(r.like, like)
	return nil
}

// calibrated reports whether there is a calibration text.
func (p *Plan) calibrated() bool { return p.Calibration != nil && p.Calibration.Text != "" }

// checkTargets refuses outputs whose types cannot be chosen: by a text, of which a language model needs one, or by errors
// of weights, as those of image and video models.
func (r *Release) checkTargets(context.Context) error {
	if r.plan.calibrated() || diffusion.Has(r.source.Metadata.Architecture()) {
		return nil
	}
	for i := range r.plan.Outputs {
		if o := &r.plan.Outputs[i]; o.choosesTypes() {
			return fault.Errorf(fault.Usage, "%s: types of tensors are chosen by a text: want calibration.text",
				r.plan.place(o))
		}
	}
	return nil
}

// checkCalibration refuses keys of the calibration that exclude each other.
func (p *Plan) checkCalibration() error {
	c := p.Calibration
	switch {
	case c == nil:
		return nil
	case (c.Text == "") == (c.Matrix == ""):
		return fault.Errorf(fault.Usage, "%s", p.about("calibration: want one of text and matrix"))
	case c.Matrix != "" && (c.effort() != calibrate.EffortMatrix || c.Chunk > 0 || c.Chunks > 0 || c.ProcessOutput):
		return fault.Errorf(fault.Usage, "%s",
			p.about("calibration: effort, chunk, chunks and process_output go with text"))
	}
	return nil
}
