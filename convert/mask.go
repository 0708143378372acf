package convert

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/checkpoint/precision"
	"ggforge/checkpoint/torch"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// maskFile is a file of draft models whose target has no trained embedding of the mask token: a dict of torch.save with
// mask_token_id and its embedding, a vector of hidden_size. The draft's GGUF file then has a token embedding with that
// row, and an output matrix (the target's unless the draft has one). Source: generate_extra_tensors of the reference's
// DFlashModel.
const maskFile = "mask_embedding.pt"

// The names of the matrices, in the draft with or without "model.".
const (
	targetEmbedding = "model.embed_tokens.weight"
	targetHead      = "lm_head.weight"
)

// openMask reads maskFile and inserts the matrices before the weights, as the reference does. It reports whether the
// file exists.
func (j *Job) openMask(cfg, target *config.View) (ok bool, err error) {
	if target == nil {
		return false, nil
	}
	if _, err := j.in.files.Stat(maskFile); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	draft, _ := table.Find[table.Draft](j.Arch)
	if !draft.OwnMask {
		return false, fault.Errorf(fault.Unsupported,
			"%s: drafts of class %s have no embedding of their own for the mask", maskFile, cfg.Class)
	}
	if j.options.VocabOnly {
		return true, nil
	}
	token, vector, err := j.readMask(cfg, draft)
	if err != nil {
		return false, err
	}
	embedding, head := -1, false
	for i := range j.model.weights {
		switch strings.TrimPrefix(j.model.weights[i].Name, "model.") {
		case strings.TrimPrefix(targetEmbedding, "model."):
			embedding = i
		case targetHead:
			head = true
		}
	}
	var theirs []*precision.Tensor
	if !head || embedding < 0 {
		store, err := j.in.target.Weights(false)
		if err != nil {
			return false, err
		}
		j.in.stores, j.in.ignoredByAuto = append(j.in.stores, store), append(j.in.ignoredByAuto, store)
		theirs = store.Tensors()
	}
	take := func(name string) (precision.Weight, error) {
		for _, t := range theirs {
			if t.Name == name {
				return precision.Weight{Name: name, Tensors: []*precision.Tensor{t}}, nil
			}
		}
		return precision.Weight{}, fault.Errorf(fault.Unsupported, "%s: %s has no tensor %q, which the draft needs",
			maskFile, j.options.Target, name)
	}
	var first []precision.Weight
	if !head {
		name := targetHead
		if tied, _, err := target.Bool("tie_word_embeddings"); err != nil {
			return false, fmt.Errorf("%s: %w", j.options.Target, err)
		} else if tied {
			name = targetEmbedding
		}
		w, err := take(name)
		if err != nil {
			return false, err
		}
		if _, err := maskType(&w); err != nil {
			return false, err
		}
		w.Name = "model." + targetHead
		first = append(first, w)
	}
	var w precision.Weight
	if embedding >= 0 {
		w = j.model.weights[embedding]
		j.model.weights = slices.Delete(j.model.weights, embedding, embedding+1)
	} else if w, err = take(targetEmbedding); err != nil {
		return false, err
	}
	if w, err = withRow(w, token, vector, cfg); err != nil {
		return false, err
	}
	j.model.weights = slices.Concat(append(first, w), j.model.weights)
	return true, nil
}

// readMask returns the token of the mask and its embedding.
func (j *Job) readMask(cfg *config.View, draft table.Draft) (token int64, vector *precision.Tensor, err error) {
	data, err := j.in.files.ReadFile(maskFile)
	if err != nil {
		return 0, nil, err
	}
	file, err := torch.ParseNested(maskFile, data)
	if err != nil {
		return 0, nil, err
	}
	values := file.Values()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		what := "a dict"
		switch values[key].(type) {
		case []any:
			what = "a list"
		case map[string]any:
		default:
			continue
		}
		return 0, nil, fault.Errorf(fault.Unsupported, "%s: %q is %s, want a tensor, a number or a string",
			maskFile, key, what)
	}
	const id, embedding = "mask_token_id", "embedding"
	var others []string
	for i := range file.Tensors() {
		t := &file.Tensors()[i]
		if t.Name != embedding {
			others = append(others, t.Name)
			continue
		}
		vector = &precision.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, File: maskFile,
			Mapped: t.Data(), Reader: t}
	}
	token, isInt := values[id].(int64)
	want, ok, err := draft.MaskToken(cfg)
	if err != nil {
		return 0, nil, err
	}
	width, err := cfg.Require("hidden_size")
	if err != nil {
		return 0, nil, err
	}
	switch {
	case vector == nil:
		return 0, nil, fault.Errorf(fault.Broken, "%s: has no tensor %q", maskFile, embedding)
	case !slices.Equal(vector.Shape, []int64{width}):
		return 0, nil, fault.Errorf(fault.Broken, "%s: tensor %q: shape %v, want [%d], which is hidden_size of %s",
			maskFile, embedding, vector.Shape, width, cfg.FileName())
	case !isInt:
		return 0, nil, fault.Errorf(fault.Broken, "%s: key %q: want an integer", maskFile, id)
	case !ok || token != want:
		return 0, nil, fault.Errorf(fault.Broken, "%s: key %q is %d, and %s has another one or none", maskFile, id,
			token, cfg.FileName())
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if key != id {
			others = append(others, key)
		}
	}
	if len(others) > 0 {
		j.warnf("%s: keys without a place in the file: %s", maskFile, fault.List(others))
	}
	return token, vector, nil
}

// maskType returns the type of an unquantized matrix; the reference supports no others.
func maskType(w *precision.Weight) (gguf.Type, error) {
	switch t, _ := w.Type(); t {
	case gguf.TypeF32, gguf.TypeF16, gguf.TypeBF16:
		if w.Scheme() == "" {
			return t, nil
		}
	}
	t := w.First()
	return 0, fault.Errorf(fault.Unsupported, "%s: tensor %q holds %v, want F32, F16 or BF16 for a draft with %s",
		t.File, t.Name, t.DType, maskFile)
}

// withRow returns the token embedding w with one token's row replaced, under the target's name.
func withRow(w precision.Weight, token int64, vector *precision.Tensor, cfg *config.View) (precision.Weight, error) {
	typ, err := maskType(&w)
	if err != nil {
		return w, err
	}
	if _, err = maskType(&precision.Weight{Name: vector.Name, Tensors: []*precision.Tensor{vector}}); err != nil {
		return w, err
	}
	n, err := cfg.Require("vocab_size")
	if err != nil {
		return w, err
	}
	whole := *w.First()
	if want := []int64{n, vector.Shape[0]}; !slices.Equal(whole.Shape, want) {
		return w, fault.Errorf(fault.Broken, "%s: tensor %q: shape %v, want %v for vocab_size and hidden_size of %s",
			whole.File, whole.Name, whole.Shape, want, cfg.FileName())
	}
	if token < 0 || token >= n {
		return w, fault.Errorf(fault.Broken, "%s: the mask is token %d of %d", maskFile, token, n)
	}
	src, err := source(&precision.Weight{Name: vector.Name, Tensors: []*precision.Tensor{vector}}, gguf.TypeF32)
	if err != nil {
		return w, err
	}
	var buf []byte
	row, err := rows.Convert(src, typ).Raw(&buf, 0, 1)
	if err != nil {
		return w, fmt.Errorf("%s: %w", maskFile, err)
	}
	whole.Mapped, whole.Reader = nil, &patched{whole.Reader, token * int64(len(row)), slices.Clone(row)}
	return precision.Weight{Name: targetEmbedding, Tensors: []*precision.Tensor{&whole}}, nil
}

// patched reads from another reader, with some bytes replaced.
type patched struct {
	io.ReaderAt
	at    int64
	bytes []byte
}

func (p *patched) ReadAt(b []byte, off int64) (int, error) {
	n, err := p.ReaderAt.ReadAt(b, off)
	if from, to := max(off, p.at), min(off+int64(n), p.at+int64(len(p.bytes))); from < to {
		copy(b[from-off:to-off], p.bytes[from-p.at:])
	}
	return n, err
}
