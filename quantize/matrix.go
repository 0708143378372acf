package quantize

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/imatrix"
	"ggforge/model"
	"ggforge/writer"
)

// matrix is the importance matrix of a batch.
type matrix struct {
	*imatrix.Matrix // nil for none, or none that counts

	found   []Compromise // options that have no effect, entries that do not count
	entries map[string]*importance
}

// importance is a tensor's entry.
type importance struct {
	matrix *imatrix.Matrix
	name   string
	ne     []int64
}

func (i *importance) Values() ([]float32, error) {
	values, _, err := i.matrix.Lookup(i.name, i.ne)
	return values, err
}

// importance returns the entry of a tensor, the same one each time.
func (m *matrix) importance(t model.Tensor) writer.Importance {
	i, ok := m.entries[t.Name]
	if !ok {
		i = &importance{m.Matrix, t.Name, t.NE}
		m.entries[t.Name] = i
	}
	return i
}

// paths returns the file of the matrix.
func (m *matrix) paths() []string {
	if m.Len() == 0 {
		return nil
	}
	return []string{m.Path}
}

// openMatrix opens the importance matrix, if any, and checks it against the
// model.
func openMatrix(ctx context.Context, model *model.Model, opt *Options) (_ *matrix, err error) {
	m := &matrix{entries: map[string]*importance{}}
	warnf := func(format string, args ...any) {
		m.found = append(m.found, Compromise{Text: fmt.Sprintf(format, args...)})
	}
	if opt.Matrix == "" {
		if len(opt.IncludeWeights)+len(opt.ExcludeWeights) > 0 {
			warnf("--include-weights and --exclude-weights have no effect without --imatrix")
		}
		return m, nil
	}
	im, err := imatrix.Open(opt.Matrix)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil || m.Matrix == nil {
			im.Close()
		}
	}()
	for _, name := range im.Duplicates {
		warnf("%s: entry %q stands twice; the last one counts", im.Path, name)
	}
	for _, substring := range slices.Concat(opt.IncludeWeights, opt.ExcludeWeights) {
		if !slices.ContainsFunc(im.Entries(), func(e imatrix.Entry) bool { return strings.Contains(e.Name, substring) }) {
			warnf("no entry of the importance matrix has %q in its name", substring)
		}
	}
	im.Include(opt.IncludeWeights)
	im.Exclude(opt.ExcludeWeights)
	if im.Len() == 0 {
		warnf("%s: no entry is left: as if there were no importance matrix", im.Path)
		return m, nil
	}
	names := make([]string, len(model.Tensors))
	for i, t := range model.Tensors {
		names[i] = t.Name
	}
	if im.Coverage(names).Used == 0 {
		text := fmt.Sprintf("%s: none of the %d entries names a tensor of the model: %s, ...", im.Path, im.Len(), im.Entries()[0].Name)
		if !opt.Reference {
			return nil, fault.Errorf(fault.Refused, "%s", text)
		}
		warnf("%s", text)
	}
	if err := im.Validate(ctx, nil); err != nil {
		return nil, err
	}
	m.Matrix = im
	return m, nil
}
