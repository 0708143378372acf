package table

import (
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/fault"
)

// NextN describes the MTP layers of an architecture. They are numbered after the model's layers, in the file and mostly
// in the checkpoint, and have rows like these (see parts.NextN). Source: the classes of the reference's converter that
// accept --mtp and --no-nextn.
type NextN struct {
	// Layers returns their number in the file: 0 if the user leaves them out.
	Layers func(*config.View) (int64, error)
	// Prefixes are the prefixes of their names in checkpoints that do not number them.
	Prefixes []string
	// Shared are the model's tensors in files of the MTP layers alone, by names in the rows; nil for SharedTensors.
	Shared []string
}

// SharedTensors is the default of NextN.Shared.
var SharedTensors = []string{"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"}

// blocks is the number of layers, MTP layers included.
func (n *NextN) blocks(c *config.View) (int64, error) {
	model, err := c.BoundedBlockCount(0)
	if err != nil {
		return 0, err
	}
	more, err := n.Layers(c)
	return model + more, err
}

func (n *NextN) shared(name string) bool {
	if n.Shared != nil {
		return slices.Contains(n.Shared, name)
	}
	return slices.Contains(SharedTensors, name)
}

// owns reports whether a tensor belongs to the MTP layers; name is its name in the checkpoint, canonical the one in
// the rows.
func (n *NextN) owns(c *config.View, name, canonical string) (bool, error) {
	if slices.ContainsFunc(n.Prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
		return true, nil
	}
	rest, ok := strings.CutPrefix(canonical, "model.layers.")
	if !ok {
		return false, nil
	}
	number, _, _ := strings.Cut(rest, ".")
	model, err := c.BlockCount()
	return isNumber(number) && !IsLayerBelow(number, model), err
}

// excludes reports whether the user leaves out a tensor's part of the model (config.Options.NextN).
func (n *NextN) excludes(c *config.View, name, canonical string) (bool, error) {
	if n == nil || c.Options.NextN == config.WithNextN {
		return false, nil
	}
	has, err := n.owns(c, name, canonical)
	if c.Options.NextN == config.NoNextN {
		return has, err
	}
	return !has && !n.shared(canonical), err
}

// CheckNextN returns an error of kind fault.Unsupported when the user's choice needs MTP layers that the architecture
// cannot separate.
func (a *Arch) CheckNextN(c *config.View) error {
	if c.Options.NextN == config.WithNextN {
		return nil
	}
	if a.NextN == nil {
		return fault.Errorf(fault.Unsupported,
			"%s: MTP layers cannot be left out or converted alone: not supported for class %s",
			c.FileName(), c.Class)
	}
	if c.Options.NextN == config.NoNextN {
		return nil
	}
	model, err := c.BlockCount()
	if err != nil {
		return err
	}
	n, err := a.Blocks(c)
	if err == nil && n <= model {
		err = fault.Errorf(fault.Unsupported, "%s: the model has no MTP layers to convert alone", c.FileName())
	}
	return err
}
