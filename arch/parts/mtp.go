package parts

import (
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/table"
)

// The MTP layers of Qwen3-Next and later Qwen models. Source: the mixin for them of the reference's Qwen classes.

// MTPNames rename the tensors of MTP layers to names like those of the model's layers.
var MTPNames = func() (list []table.Rename) {
	for _, mtp := range []string{"mtp.", "model.mtp."} {
		list = append(list,
			table.Rename{Prefix: mtp + "layers.", With: "model.layers.{bid}.", AfterModel: true},
			table.Rename{Prefix: mtp + "fc.", With: "model.layers.{bid}.eh_proj.", AfterModel: true},
			table.Rename{Prefix: mtp + "pre_fc_norm_embedding.", With: "model.layers.{bid}.enorm.", AfterModel: true},
			table.Rename{Prefix: mtp + "pre_fc_norm_hidden.", With: "model.layers.{bid}.hnorm.", AfterModel: true},
			table.Rename{Prefix: mtp + "norm.", With: "model.layers.{bid}.shared_head.norm.", AfterModel: true})
	}
	return list
}()

// QwenNextN describes these layers.
var QwenNextN = &table.NextN{Layers: QwenMTP, Prefixes: []string{"mtp.", "model.mtp."}}

// QwenMTP returns the number of MTP layers: from the config, else from the tensors; 0 if the user leaves them out.
func QwenMTP(c *config.View) (int64, error) {
	n, _, err := c.Int("mtp_num_hidden_layers")
	if err == nil && (n < 0 || n > config.MaxBlocks) {
		err = config.WrongType("mtp_num_hidden_layers", "a number of layers", n)
	}
	if c.Options.NextN == config.NoNextN || c.Class == Qwen35Text || c.Decides() {
		return 0, err
	}
	if err != nil || n > 0 {
		return n, err
	}
	for _, name := range c.Facts.Tensors {
		rest, ok := strings.CutPrefix(strings.TrimPrefix(name, "model."), "mtp.layers.")
		number, _, dot := strings.Cut(rest, ".")
		for ok && dot && n <= config.MaxBlocks && !table.IsLayerBelow(number, n) &&
			table.IsLayerBelow(number, config.MaxBlocks) {
			n++
		}
	}
	return n, nil
}

// Qwen35Text is the class of Qwen 3.5's language model alone, which has no MTP layers, whatever its config has.
const Qwen35Text = "Qwen3_5TextModel"
