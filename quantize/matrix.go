package quantize

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/imatrix"
	"ggforge/model"
	"ggforge/model/digest"
	"ggforge/writer"
)

// matrix is the importance matrix of a batch.
type matrix struct {
	*imatrix.Matrix // nil for none, or none that counts

	path    string          // as the options name it, "" for none
	read    []byte          // the file, if it was read into memory
	opened  *imatrix.Matrix // of path, until Close
	found   []Compromise    // options that have no effect, entries that do not count
	entries map[string]*importance
	blanks  map[string]blank
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

// blank counts the matrices of a tensor without importance: all zero, or without tokens.
type blank struct{ zero, unseen, of int }

// blank counts for a tensor's entry, once for all recipes.
func (m *matrix) blank(ctx context.Context, t model.Tensor) (blank, error) {
	b, ok := m.blanks[t.Name]
	if ok {
		return b, nil
	}
	b.of = 1
	if len(t.NE) > 2 {
		b.of = int(t.NE[2])
	}
	zero, unseen, err := m.Blank(ctx, m.Entry(t.Name), b.of)
	b.zero, b.unseen = len(zero), len(unseen)
	m.blanks[t.Name] = b
	return b, err
}

// compromises lists the tensors that are quantized with zero or missing importance.
func (m *matrix) compromises(ctx context.Context, input *model.Model, decisions []Decision) ([]Compromise, error) {
	var zero, unseen []string
	name := func(d *Decision, n, of int) string {
		if of == 1 {
			return d.Name
		}
		return fmt.Sprintf("%s (%d of %d matrices)", d.Name, n, of)
	}
	for i := range decisions {
		d := &decisions[i]
		if !d.Importance {
			continue
		}
		b, err := m.blank(ctx, input.Tensors[d.Tensor])
		if err != nil {
			return nil, err
		}
		if b.zero > 0 {
			zero = append(zero, name(d, b.zero, b.of))
		}
		if b.unseen > 0 {
			unseen = append(unseen, name(d, b.unseen, b.of))
		}
	}
	var all []Compromise
	if zero != nil {
		all = append(all,
			Compromise{"weights that most types write as zeros, since their importance is 0 in every column", zero})
	}
	if unseen != nil {
		all = append(all,
			Compromise{"weights that the calibration has not seen, quantized as if every column counted the same",
				unseen})
	}
	return all, nil
}

// paths returns the file of the matrix.
func (m *matrix) paths() []string {
	if m.path == "" {
		return nil
	}
	return []string{m.path}
}

// Held returns the files that were read into memory, as those that the flags of ggquant name: an importance matrix
// that is not too large for it.
func (b *Batch) Held() []digest.Input {
	if b.matrix.read == nil {
		return nil
	}
	return []digest.Input{digest.Held("imatrix", b.matrix.path, b.matrix.read)}
}

// refill replaces a matrix made in memory by one with the same entries and the final values.
func (m *matrix) refill(ctx context.Context, im *imatrix.Matrix, opt *Options) error {
	if m.Matrix == nil {
		return nil // no entry is left
	}
	next := new(imatrix.Matrix)
	*next = *im
	next.Include(opt.IncludeWeights)
	next.Exclude(opt.ExcludeWeights)
	same := next.Chunks == m.Chunks && next.ChunkSize == m.ChunkSize && slices.Equal(next.Datasets, m.Datasets) &&
		slices.EqualFunc(next.Entries(), m.Entries(), func(a, b imatrix.Entry) bool {
			return a.Name == b.Name && a.Len() == b.Len() && len(a.Counts) == len(b.Counts)
		})
	if !same {
		return fmt.Errorf("%s: importance of %d tensors and %d chunks, planned with %d of %d", im.Path, next.Len(),
			next.Chunks, m.Len(), m.Chunks)
	}
	if err := next.Validate(ctx, nil); err != nil {
		return err
	}
	m.Matrix, m.entries, m.blanks = next, map[string]*importance{}, map[string]blank{}
	return nil
}

// Close closes the file at path. A matrix of Options.Importance is the caller's.
func (m *matrix) Close() error {
	opened := m.opened
	m.opened = nil
	return opened.Close()
}

// openMatrix opens the importance matrix, if any, and checks it against the
// model.
func openMatrix(ctx context.Context, model *model.Model, opt *Options) (_ *matrix, err error) {
	m := &matrix{path: opt.Matrix, entries: map[string]*importance{}, blanks: map[string]blank{}}
	warnf := func(format string, args ...any) {
		m.found = append(m.found, Compromise{Text: fmt.Sprintf(format, args...)})
	}
	if opt.Matrix == "" && opt.Importance == nil {
		if len(opt.IncludeWeights)+len(opt.ExcludeWeights) > 0 {
			warnf("the choice among the entries of an importance matrix has no effect: there is no matrix")
		}
		return m, nil
	}
	var im *imatrix.Matrix
	if opt.Importance != nil {
		im = new(imatrix.Matrix)
		*im = *opt.Importance // entries may be left out of it
	} else {
		if im, err = imatrix.Load(opt.Matrix); err != nil {
			return nil, err
		}
		m.read, m.opened = im.Read(), im
		defer func() {
			if err != nil || m.Matrix == nil {
				m.Close()
			}
		}()
	}
	for _, name := range im.Duplicates {
		warnf("%s: entry %q is there twice; the last one counts", im.Path, name)
	}
	for _, substring := range slices.Concat(opt.IncludeWeights, opt.ExcludeWeights) {
		if !slices.ContainsFunc(im.Entries(), func(e imatrix.Entry) bool {
			return strings.Contains(e.Name,
				substring)
		}) {
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
		text := fmt.Sprintf("%s: none of the %d entries names a tensor of the model: %s, ...", im.Path, im.Len(),
			fault.List([]string{im.Entries()[0].Name}))
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
