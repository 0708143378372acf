package table

import (
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/fault"
)

// NextN describes the layers of an architecture that predict further tokens. They
// have the numbers that follow those of the model's layers, in the file and mostly in
// the checkpoint, and rows like these (see parts.NextN). Source: the classes of the
// reference's converter that accept --mtp and --no-nextn.
type NextN struct {
	// Layers is the number of them in the file: none if the user wants none.
	Layers func(*config.View) (int64, error)
	// Prefixes begin the names that they have in the checkpoint instead of numbers.
	Prefixes []string
	// Shared are the tensors of the model that a file of these layers alone has, by
	// their names in the rows; nil for those of SharedTensors.
	Shared []string
}

// SharedTensors are what most files of drafts have of the model.
var SharedTensors = []string{"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"}

// blocks is the number of layers in all.
func (n *NextN) blocks(c *config.View) (int64, error) {
	model, err := c.BlockCount()
	if err != nil {
		return 0, err
	}
	if model < 0 || model > config.MaxBlocks {
		return 0, config.WrongType("num_hidden_layers", "a number of layers", model)
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

// owns reports whether a tensor belongs to the layers that predict further tokens:
// name is that of the checkpoint, canonical that of the rows.
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

// excludes reports whether a tensor is of the part of the model that the user does
// not want.
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

// CheckNextN returns an error of kind fault.Unsupported when the user asks for a part
// of the model that the architecture does not have apart.
func (a *Arch) CheckNextN(c *config.View) error {
	if c.Options.NextN == config.WithNextN {
		return nil
	}
	if a.NextN == nil {
		return fault.Errorf(fault.Unsupported,
			"%s: models of class %s have no layers that predict further tokens which could be left out or be a file of their own",
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
		err = fault.Errorf(fault.Unsupported, "%s: the model has no layers that predict further tokens", c.FileName())
	}
	return err
}
