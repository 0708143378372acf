package table

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/shape"
	"ggforge/fault"
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

// CheckShapes compares the tensors that a checkpoint would become with the metadata m of the file. Tensors without
// dimensions are there, but have any. An error is of kind fault.Broken.
func (a *Arch) CheckShapes(c *config.View, m gguf.Metadata, tensors []shape.Tensor) error {
	errs, _ := a.Check(m, tensors, a.sources(c))
	return inConfig(errs)
}

// CheckSomeShapes is CheckShapes for some of the tensors of a checkpoint, such as those that an adapter changes.
func (a *Arch) CheckSomeShapes(c *config.View, m gguf.Metadata, tensors []shape.Tensor) error {
	errs, _, _ := a.compare(m, tensors, a.sources(c))
	return inConfig(errs)
}

// inConfig returns one error for those of Check about a checkpoint.
func inConfig(errs []error) error {
	if err := Joined(errs); err != nil {
		return fmt.Errorf("%s: %w", config.ConfigFile, err)
	}
	return nil
}

// sources returns the function that Check asks for the config keys that keys were written from.
func (a *Arch) sources(c *config.View) func(key string) string {
	return func(key string) string {
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
	}
}

// Joined returns one error for those of Check: the first one, with the texts of the others. It is nil for none.
func Joined(errs []error) error {
	if len(errs) < 2 {
		return errors.Join(errs...)
	}
	var others []string
	for _, err := range errs[1:] {
		others = append(others, err.Error())
	}
	return fmt.Errorf("%w; further tensors that do not fit:%s", errs[0], fault.Lines(others))
}

// Check compares the tensors of a file with its metadata m, and the metadata with itself: by the graph of the
// architecture, its missing tensors included, and by Shapes. Rows of an architecture's own in Shapes have precedence
// over the graph; common rows are for tensors that the graph does not declare. Tensors without dimensions are there,
// but are not compared. source returns the config key that a key was written from, "" if there is none; it is nil for
// a file that was not converted just now: then keys that runtimes require must be there, which the reference's converter
// leaves out in some cases.
//
// Errors name a tensor or a key, with the values of the keys that decide. If the metadata contradict themselves, the
// only error says so. unknown are the tensors that neither the graph nor an own row of Shapes has: runtimes do not read
// them. Without a graph there are none.
func (a *Arch) Check(m gguf.Metadata, tensors []shape.Tensor, source func(key string) string) (errs []error,
	unknown []string) {
	errs, unknown, c := a.compare(m, tensors, source)
	if c == nil || len(tensors) == 0 { // only the metadata are checked
		return errs, unknown
	}
	return append(errs, c.Missing()...), unknown
}

// Fits is Check for some of the tensors of a file that is converted just now.
func (a *Arch) Fits(m gguf.Metadata, tensors []shape.Tensor) error {
	errs, _, _ := a.compare(m, tensors, func(string) string { return "" })
	return Joined(errs)
}

// compare is Check without missing tensors. c is nil without a graph, and after an error of the metadata.
func (a *Arch) compare(m gguf.Metadata, tensors []shape.Tensor, source func(key string) string) (errs []error,
	unknown []string, c *graph.Comparison) {
	if a.Graph == nil {
		return a.Shapes.Check(a.Name, m, tensors, source), nil, nil
	}
	rules := a.Shapes
	rules.Dims = shape.Table{}
	for name, n := range a.Graph.Dims {
		rules.Dims[name] = string(n)
	}
	maps.Copy(rules.Dims, a.Shapes.Dims)
	if errs = rules.Check(a.Name, m, nil, source); errs != nil {
		return errs, nil, nil
	}
	f := &graph.File{Arch: a.Name, Metadata: m, Tensors: map[string][]int64{}, Source: source,
		MayLackKeys: source != nil}
	for _, t := range tensors {
		f.Tensors[t.Name] = t.NE
	}
	if f.Vocab = f.Tokens(); f.Vocab == 0 && f.Tensors["token_embd.weight"] != nil {
		return []error{fault.Errorf(fault.Broken, "no key %q, and no tokens", gguf.ArchKey(a.Name, "vocab_size"))}, nil, nil
	}
	d, err := graph.Declare(a.Graph, f)
	if err == nil {
		c, err = d.Compare()
	}
	if err != nil {
		return []error{err}, nil, nil
	}
	var others []shape.Tensor
	for _, t := range tensors {
		declared, own := c.Declares(t.Name), rules.Own(t.Name)
		if own || !declared {
			others = append(others, t)
		} else if err := c.Tensor(t.Name, t.Label(), t.NE); err != nil && t.NE != nil {
			errs = append(errs, err)
		}
		if !own && !declared && !c.Ignores(t.Name) {
			unknown = append(unknown, t.Name)
		}
	}
	return append(errs, rules.Check(a.Name, m, others, source)...), unknown, c
}
