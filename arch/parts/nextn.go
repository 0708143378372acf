package parts

import (
	"ggforge/arch/hparams"
	"ggforge/arch/table"
	"ggforge/gguf"
)

// NextNLayers is the number of layers that predict further tokens and are numbered
// after those of the model: num_nextn_predict_layers, none if the user wants none.
func NextNLayers(c *hparams.View) (int64, error) {
	const key = "num_nextn_predict_layers"
	n, _, err := c.Int(key)
	if err == nil && (n < 0 || n > hparams.MaxBlocks) {
		err = hparams.WrongType(key, "a number of layers", n)
	}
	if c.Options.NextN == hparams.NoNextN {
		n = 0
	}
	return n, err
}

// Numbered is the column NextN of tables with NextNLayers.
var Numbered = &table.NextN{Layers: NextNLayers}

// NextNRow is the number of these layers as config.json has it, 0 too, and
// NextNSome that of models that have some.
var (
	NextNRow = table.Row{Key: "nextn_predict_layers", Derive: func(c *hparams.View) (gguf.Value, bool, error) {
		n, err := NextNLayers(c)
		return table.Uint32Of(n, c.Has("num_nextn_predict_layers") && c.Options.NextN != hparams.NoNextN, err)
	}}
	NextNSome = table.Row{Key: "nextn_predict_layers", Derive: func(c *hparams.View) (gguf.Value, bool, error) {
		n, err := NextNLayers(c)
		return table.Uint32Of(n, n > 0, err)
	}}
)
