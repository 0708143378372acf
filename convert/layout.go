package convert

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/diffusion"
	"ggforge/checkpoint/precision"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
	"ggforge/rows"
)

// assembled is a tensor of an image model's file: a weight, or several, one below the other.
type assembled struct {
	name  string
	parts []*precision.Weight
	row   *diffusion.Row // of the layout; nil for a checkpoint with the original names
}

// first returns the first stored tensor, for its type and for messages.
func (t *assembled) first() *precision.Tensor { return t.parts[0].First() }

// shape returns the dimensions, outermost first.
func (t *assembled) shape() []int64 {
	shape := slices.Clone(t.first().Shape)
	for _, p := range t.parts[1:] {
		if len(shape) > 0 && len(p.First().Shape) > 0 {
			shape[0] += p.First().Shape[0]
		}
	}
	return shape
}

// imageTensors returns the tensors of the file, in its order: that of the checkpoint or, if it is in a layout of the
// diffusers library, that in which the safetensors library writes tensors with the original names: the types of more
// bytes first, then by name. It sets j.Image.
func (j *Job) imageTensors(layout *diffusion.Layout, weights []precision.Weight) ([]assembled, error) {
	j.model.weights = weights
	var list []assembled
	if layout == nil {
		for i := range weights {
			list = append(list, assembled{weights[i].Name, []*precision.Weight{&weights[i]}, nil})
		}
		return list, nil
	}
	if err := j.checkLayout(layout); err != nil {
		return nil, err
	}
	byName := make(map[string]*precision.Weight, len(weights))
	var names []string
	for i := range weights {
		byName[weights[i].Name] = &weights[i]
		names = append(names, weights[i].Name)
	}
	originals, err := layout.Originals(names)
	if err != nil {
		return nil, err
	}
	names = names[:0]
	for _, o := range originals {
		t := assembled{name: o.Name, row: o.Row}
		for _, from := range o.From {
			t.parts = append(t.parts, byName[from])
		}
		if err := t.check(); err != nil {
			return nil, err
		}
		list = append(list, t)
		names = append(names, o.Name)
	}
	slices.SortFunc(list, func(a, b assembled) int {
		return cmp.Or(cmp.Compare(b.first().DType, a.first().DType), cmp.Compare(a.name, b.name))
	})
	j.Image, err = diffusion.Detect(names)
	return list, err
}

// checkLayout refuses a layout that is not converted, and a folder whose configuration names another class.
func (j *Job) checkLayout(layout *diffusion.Layout) error {
	if layout.Refused != "" {
		return fault.Errorf(fault.Unsupported, "%s in the layout of the diffusers library (%s) is not converted: %s",
			layout.Arch, layout.Classes[0], layout.Refused)
	}
	if j.in.image.file != "" {
		return nil
	}
	name := path.Join(j.in.image.folder, config.ConfigFile)
	data, err := j.in.files.ReadFile(name)
	if err != nil {
		return err
	}
	v, _ := pyjson.Parse(data)
	o, _ := v.(*pyjson.Object)
	if class, _ := o.Get("_class_name").(string); !slices.Contains(layout.Classes, class) {
		return fault.Errorf(fault.Unsupported, "%s: _class_name is %q, but its tensors have the names of %s", name, class,
			strings.Join(layout.Classes, " or "))
	}
	return nil
}

// check refuses parts that differ in how they are stored.
func (t *assembled) check() error {
	a := t.first()
	for _, w := range t.parts[1:] {
		b := w.First()
		if a.DType != b.DType || t.parts[0].Scheme() != w.Scheme() {
			return fault.Errorf(fault.Unsupported, "%s: tensor %q holds %s, %q holds %s: want the same, as they become one, %q",
				a.File, a.Name, storedAs(t.parts[0]), b.Name, storedAs(w), t.name)
		}
	}
	return nil
}

// storedAs describes how a weight is stored.
func storedAs(w *precision.Weight) string {
	if w.Scheme() == "" {
		return w.First().DType.String()
	}
	return fmt.Sprintf("%v (%s)", w.First().DType, w.Scheme())
}

// imageRows returns the rows of t, from which a tensor of type typ will be made.
func (j *Job) imageRows(t *assembled, typ gguf.Type) (rows.Source, error) {
	var parts []rows.Source
	for _, w := range t.parts {
		src, err := w.Numbers(typ)
		if err != nil {
			return nil, err
		}
		if src.Type().BlockLen() > 1 {
			return nil, fault.Errorf(fault.Unsupported, "%s: tensor %q: weights in %v are not converted for image models",
				w.First().File, w.First().Name, src.Type())
		}
		if src, err = j.withoutPadding(w, src); err != nil {
			return nil, err
		}
		parts = append(parts, src)
	}
	if t.row == nil {
		return parts[0], nil
	}
	first, ne := t.first(), parts[0].NE()
	for i, p := range parts[1:] {
		// the last dimension counts rows
		if n, last := p.NE(), len(ne)-1; len(n) != len(ne) || last < 0 || !slices.Equal(n[:last], ne[:last]) ||
			n[last] != ne[last] && !t.row.Uneven || n[last] == 0 || ne[last] == 0 {
			return nil, fault.Errorf(fault.Broken, "%s: tensor %q has the dimensions %s, %q has %s: they do not become one, %q",
				first.File, first.Name, gguf.Shape(ne), t.parts[i+1].First().Name, gguf.Shape(n), t.name)
		}
	}
	src := parts[0]
	if len(parts) > 1 {
		var err error
		if src, err = rows.Concat(parts); err != nil {
			return nil, fmt.Errorf("%s: tensor %q: %w", first.File, first.Name, err)
		}
	}
	if !t.row.Swapped {
		return src, nil
	}
	if len(ne) == 0 || ne[len(ne)-1]%2 != 0 || len(ne) > 2 {
		return nil, fault.Errorf(fault.Broken, "%s: tensor %q has the dimensions %s, want an even number of rows for %q",
			first.File, first.Name, gguf.Shape(ne), t.name)
	}
	n := ne[len(ne)-1]
	return rows.Regroup(src, func(i int64) int64 { return (i + n/2) % n })
}
