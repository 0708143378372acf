package parts

import (
	"encoding/binary"

	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// DraftTarget returns the configuration of a draft model's target model.
func DraftTarget(c *config.View) (*config.View, error) {
	if c.Facts.Target == nil {
		return nil, fault.Errorf(fault.Broken,
			"%s: a draft model needs the configuration of its target model, which is not given",
			config.ConfigFile)
	}
	return c.Facts.Target, nil
}

// DraftHead checks that the output matrix of a draft model has draft_vocab_size rows.
var DraftHead = &table.Transform{Name: "draft-head", Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
	n, ok, err := l.Int("draft_vocab_size")
	if ne := s.NE(); err == nil && ok && (len(ne) != 2 || ne[1] != n) {
		err = fault.Errorf(fault.Broken, "dimensions %s, want a row for each of draft_vocab_size (%d) tokens",
			gguf.Shape(ne), n)
	}
	return s, err
}}

// DraftTokens turns d2t, the differences between ids of the target model and of the draft, into ids of the target
// model.
var DraftTokens = &table.Transform{Name: "draft-tokens",
	Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		n, err := l.Require("draft_vocab_size")
		if err != nil {
			return nil, err
		}
		target, err := DraftTarget(l.View)
		if err != nil {
			return nil, err
		}
		tokens, err := target.Require("vocab_size")
		if err != nil {
			return nil, err
		}
		ne := s.NE()
		if len(ne) != 1 || ne[0] != n || n > tokens {
			return nil, fault.Errorf(fault.Broken,
				"dimensions %s, want one number for each of draft_vocab_size (%d) tokens, of %d of the model",
				gguf.Shape(ne), n, tokens)
		}
		var buf []byte
		raw, err := s.Raw(&buf, 0, 1)
		if err != nil {
			return nil, err
		}
		ids := make([]byte, 0, len(raw))
		seen := map[int64]bool{}
		for i := range n {
			id := int64(binary.LittleEndian.Uint64(raw[8*i:])) + i
			if id < 0 || id >= tokens {
				return nil, fault.Errorf(fault.Broken, "token %d of the draft is %d of the model, want one below %d",
					i, id, tokens)
			}
			if seen[id] {
				return nil, fault.Errorf(fault.Broken,
					"token %d of the draft is %d of the model, and so is another one", i,
					id)
			}
			seen[id] = true
			ids = binary.LittleEndian.AppendUint64(ids, uint64(id))
		}
		return rows.Stored(ne, gguf.TypeI64, ids, nil), nil
	}}
