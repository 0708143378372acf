package table

import (
	"fmt"
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/shape"
	"ggforge/gguf"
)

// Unread lists the unread config keys that might affect the results, see config.View.Unread, except the table's Unused.
func (a *Arch) Unread(c *config.View) []string {
	unread := c.Unread
	if a.Encoder != nil {
		unread = func() (keys []string) {
			for _, part := range a.Encoder.Parts {
				keys = append(keys, c.UnreadOf(part(c))...)
			}
			return keys
		}
	}
	return slices.DeleteFunc(unread(), func(key string) bool {
		return slices.ContainsFunc(a.Unused, func(u string) bool { return key == u || strings.HasPrefix(key, u+".") })
	})
}

// LostWindow returns the sliding window of a model whose file, with the metadata m, makes a runtime compute full
// attention; ok is false when the file keeps the window or the model has none. context is the context length, 0 where
// config.json has none. Models whose tables have sliding_window among Unused have full attention.
func (a *Arch) LostWindow(c *config.View, m gguf.Metadata) (window, context int64, ok bool) {
	if a.Encoder != nil || slices.Contains(a.Unused, "sliding_window") {
		return 0, 0, false
	}
	const key = "attention.sliding_window"
	if v, there := m.Get(gguf.ArchKey(a.Name, key)); there && (a.Graph == nil || !a.Graph.Ignores(key)) {
		if n, isInt := v.Int(); isInt && n > 0 {
			return 0, 0, false
		}
	}
	return c.Window()
}

// CheckShapes compares the tensors that a checkpoint would become with the metadata
// m of the file. An error is of kind fault.Broken.
func (a *Arch) CheckShapes(c *config.View, m gguf.Metadata, tensors []shape.Tensor) error {
	err := a.Shapes.Check(a.Name, m, tensors, func(key string) string {
		for _, r := range a.Metadata {
			if r.Key != key {
				continue
			}
			o := r.object(c)
			for i, from := range r.From {
				if o.Present(from) {
					return o.Names(r.From)[i]
				}
			}
		}
		return ""
	})
	if err != nil {
		err = fmt.Errorf("%s: %w", config.ConfigFile, err)
	}
	return err
}
