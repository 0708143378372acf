package release

import (
	"context"

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
	c, err := card.Of(ctx, s.r.dir, opt)
	if err != nil {
		return "", false, nil, err
	}
	text, differs, err = c.Update(s.r.opt.Force)
	return text, differs, c.Warnings, err
}

// Replaceable asks package card whether the present card can be updated.
func (s *cardStep) Replaceable(context.Context) error {
	return card.Writable(s.r.dir, s.r.inputs.card, s.r.opt.Force)
}

// The size of a card is about cardBytes, plus cardFileBytes for each file.
const cardBytes, cardFileBytes = 2000, 200

// Predict estimates the size of a card without sections that people write.
func (s *cardStep) Predict(context.Context, *prediction) error {
	s.item().Bytes = cardBytes + cardFileBytes*int64(len(s.r.of(kindMatrix, kindModel, kindEncoder)))
	return nil
}
