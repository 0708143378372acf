package release

import (
	"context"

	"ggforge/publish/card"
	"ggforge/writer"
)

// hasCard reports whether the plan wants a model card.
func (r *Release) hasCard() bool { return r.plan.Card == nil || !r.plan.Card.Off }

// addCard adds the model card. It is not in sums and manifest: people write in it.
func (r *Release) addCard() {
	if !r.hasCard() {
		return
	}
	s := &step{id: id{kindCard, card.FileName}, about: "the model card", as: "card", path: card.FileName,
		after: r.of(contents...)}
	s.look = func(ctx context.Context) (bool, error) {
		_, differs, _, err := r.card(ctx)
		return !differs, err
	}
	s.make = func(ctx context.Context) error {
		text, differs, warnings, err := r.card(ctx)
		if err != nil {
			return err
		}
		r.opt.Warn(warnings...)
		if !differs {
			return nil
		}
		r.opt.Note(card.FileName)
		opt := writer.Options{Force: true, Inputs: r.source.Files, Check: r.unchanged}
		return writer.WriteBytes(ctx, r.full(s), []byte(text), opt)
	}
	r.add(s)
}

// card returns the model card of the files of the release, with what is written by hand in the one that is there,
// and whether it differs from that.
func (r *Release) card(ctx context.Context) (text string, differs bool, warnings []string, err error) {
	opt := r.inputs.about
	opt.Only = []string{}
	for _, f := range r.Files() {
		opt.Only = append(opt.Only, f.Name)
	}
	c, err := card.Of(ctx, r.dir, opt)
	if err != nil {
		return "", false, nil, err
	}
	text, differs, err = c.Update(r.opt.Force)
	return text, differs, c.Warnings, err
}
