package release

import (
	"context"
	"strings"

	"ggforge/checkpoint"
	"ggforge/publish/card"
	"ggforge/writer"
)

// cardStep makes the model card. People write in it, so neither sums nor manifest list it.
type cardStep struct{ stepBase }

// hasCard reports whether the plan wants a model card.
func (r *Release) hasCard() bool { return r.plan.Card == nil || !r.plan.Card.Off }

func (r *Release) addCard() {
	if r.hasCard() {
		r.add(&cardStep{stepBase{id: id{kindCard, card.FileName}, about: "the model card", as: "card",
			path: card.FileName, fixed: true, edited: true, after: r.listed()}})
	}
}

// Key is empty: the state has no card.
func (s *cardStep) Key() string { return "" }

// Done reports whether the card is up to date outside the sections that people write.
func (s *cardStep) Done(ctx context.Context) (bool, error) {
	_, differs, _, err := s.text(ctx)
	return !differs, err
}

// Make updates the card.
func (s *cardStep) Make(ctx context.Context) error {
	text, differs, warnings, err := s.text(ctx)
	if err != nil {
		return err
	}
	s.r.opt.Warn(warnings...)
	if !differs {
		return nil
	}
	s.r.opt.Note(card.FileName)
	opt := writer.Options{Force: true, Inputs: s.r.source.Files, Check: s.r.unchanged}
	return writer.WriteBytes(ctx, s.full(), []byte(text), opt)
}

// text returns the card for the files of the release, with the sections that people wrote in the present one, and
// whether it differs from that.
func (s *cardStep) text(ctx context.Context) (text string, differs bool, warnings []string, err error) {
	opt := s.r.inputs.card
	opt.Only = []string{}
	for _, f := range s.r.Files() {
		opt.Only = append(opt.Only, f.Name)
	}
	for _, list := range s.r.of(kindSums, kindManifest, kindProvenance, kindSignature) {
		opt.Only = append(opt.Only, list.base().path)
	}
	opt.SignatureKey = s.r.SigningKey
	s.r.describe(&opt)
	c, err := card.Of(ctx, s.r.dir, opt)
	if err != nil {
		return "", false, nil, err
	}
	text, differs, err = c.Update(s.r.opt.Force)
	return text, differs, c.Warnings, err
}

// describe adds what the card says of the inputs.
func (r *Release) describe(opt *card.Options) {
	if _, revision, ok := strings.Cut(r.plan.Source, "@"); ok && checkpoint.IsRemote(r.plan.Source) {
		opt.Revision, _, _ = strings.Cut(revision, "/")
	} else {
		_, opt.Revision = card.CachedModel(r.plan.Source)
	}
	text := func(what string, t *text) {
		if t != nil {
			opt.Inputs = append(opt.Inputs, card.Input{What: what, Name: t.file.Name, Bytes: t.file.Bytes,
				SHA256: t.file.SHA256})
		}
	}
	text("Calibration text", r.inputs.calibration)
	text("Evaluation text", r.inputs.evaluation)
	if c := r.plan.Calibration; c != nil && c.Text != "" {
		opt.Effort = c.effort().String()
	}
}

// Replaceable asks package card whether the present card can be updated.
func (s *cardStep) Replaceable(context.Context) error {
	return card.Writable(s.r.dir, s.r.inputs.card, s.r.opt.Force)
}

// The size of a card is about cardBytes, plus cardFileBytes for each file.
const cardBytes, cardFileBytes = 4000, 250

// Predict estimates the size of a card without sections that people write.
func (s *cardStep) Predict(context.Context, *prediction) error {
	s.item().Bytes = cardBytes + cardFileBytes*int64(len(s.r.of(kindMatrix, kindModel, kindEncoder)))
	return nil
}
