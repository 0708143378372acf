package parts

import (
	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// padOf has the default pad_token_id by model type.
var padOf = map[string]int64{"roberta": 1, "xlm-roberta": 1, "camembert": 1, "jina_embeddings_v3": 1}

// PositionOffset returns the first used position, pad_token_id + 1.
func PositionOffset(c *config.View) (int64, error) {
	if !c.Present("pad_token_id") {
		if pad, ok := padOf[c.KnownType()]; ok {
			return pad + 1, nil
		}
	}
	pad, ok, err := c.Int("pad_token_id")
	if err != nil || !ok {
		return 0, err
	}
	if pad < 0 || pad > config.MaxWidth {
		return 0, config.WrongType("pad_token_id", "a token", pad)
	}
	return pad + 1, nil
}

// FromPadding removes the rows of unused positions.
var FromPadding = &table.Transform{Name: "from-padding",
	Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		offset, err := PositionOffset(l.View)
		if err != nil || offset == 0 {
			return s, err
		}
		ne := s.NE()
		if len(ne) != 2 {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want a matrix", gguf.Shape(ne))
		}
		return rows.Slice(s, 1, offset, ne[1])
	}}
