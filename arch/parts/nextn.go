package parts

import (
	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/gguf"
)

// NextNLayers is the number of MTP layers, which are numbered after the model's layers: num_nextn_predict_layers, 0
// if the user wants none.
func NextNLayers(c *config.View) (int64, error) {
	const key = "num_nextn_predict_layers"
	n, _, err := c.Int(key)
	if err == nil && (n < 0 || n > config.MaxBlocks) {
		err = config.WrongType(key, "a number of layers", n)
	}
	if c.Options.NextN == config.NoNextN {
		n = 0
	}
	return n, err
}

// NumberedNextN is the column NextN of tables with NextNLayers.
var NumberedNextN = &table.NextN{Layers: NextNLayers}

// BlocksWithNextN is the number of layers with these, for tables whose users have no
// choice, and BlocksRow its key.
func BlocksWithNextN(c *config.View) (int64, error) {
	n, err := c.BoundedBlockCount(0)
	if err != nil {
		return 0, err
	}
	more, err := NextNLayers(c)
	return n + more, err
}

var BlocksRow = table.Row{Key: table.KeyBlockCount, Derive: func(c *config.View) (gguf.Value, bool, error) {
	n, err := BlocksWithNextN(c)
	return table.Uint32Of(n, true, err)
}}

// NextNRow is the number of these layers as config.json has it, 0 too, and
// NextNSome that of models that have some.
var (
	NextNRow = table.Row{Key: "nextn_predict_layers", Derive: func(c *config.View) (gguf.Value, bool, error) {
		n, err := NextNLayers(c)
		return table.Uint32Of(n, c.Has("num_nextn_predict_layers") && c.Options.NextN != config.NoNextN, err)
	}}
	NextNSome = table.Row{Key: "nextn_predict_layers", Derive: func(c *config.View) (gguf.Value, bool, error) {
		n, err := NextNLayers(c)
		return table.Uint32Of(n, n > 0, err)
	}}
)
