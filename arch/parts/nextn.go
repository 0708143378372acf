package parts

import (
	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/gguf"
)

// NextNLayers returns the number of MTP layers, which are numbered after the model's layers: num_nextn_predict_layers,
// 0 if the user leaves them out.
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

// NumberedNextN is the NextN of tables with NextNLayers.
var NumberedNextN = &table.NextN{Layers: NextNLayers}

// BlocksWithNextN returns the number of layers, MTP layers included, for tables that cannot leave these out; BlocksRow
// is its row.
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

// NextNRow writes the number of MTP layers of config.json, even 0; NextNSome writes numbers above 0 only.
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
