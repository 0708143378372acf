package convert

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/checkpoint/precision"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// maxValues bounds the elements of a tensor that becomes metadata.
const maxValues = 1 << 16

// values are the numbers of tensors that become metadata.
type values struct {
	meta   *table.Meta
	layers [][]float32 // by layer; nil for layers without
}

// readValues reads the elements of a tensor that becomes metadata; bid is its layer, -1 outside the layers.
func (j *Job) readValues(meta *table.Meta, bid int64, w *precision.Weight) error {
	src, err := w.Source()
	if err != nil {
		return err
	}
	t, ne := w.First(), src.NE()
	if len(ne) == 0 {
		ne = []int64{1}
	}
	if len(ne) != 1 || ne[0] < 1 || ne[0] > maxValues {
		return fault.Errorf(fault.Broken, "%s: tensor %q: shape %v, want one dimension of 1 to %d", t.File, t.Name,
			t.Shape, maxValues)
	}
	numbers := make([]float32, ne[0])
	var buf []byte
	if err := rows.Decode(src, numbers, &buf, 0, 1); err != nil {
		return err
	}
	i := slices.IndexFunc(j.numbers.values, func(v *values) bool { return v.meta == meta })
	if i < 0 {
		j.numbers.values = append(j.numbers.values, &values{meta: meta})
		i = len(j.numbers.values) - 1
	}
	// in the order of their last tensors
	v := j.numbers.values[i]
	j.numbers.values = append(slices.Delete(j.numbers.values, i, i+1), v)
	at := int(max(bid, 0))
	for len(v.layers) <= at {
		v.layers = append(v.layers, nil)
	}
	v.layers[at] = numbers
	return nil
}

// readIntegers reads the elements of an integer tensor, for Facts.Integers.
func (j *Job) readIntegers(name string, w *precision.Weight) error {
	src, err := w.Integers(gguf.TypeI64)
	if err != nil {
		return err
	}
	t, ne := w.First(), src.NE()
	if len(ne) != 1 || ne[0] < 1 || ne[0] > maxValues {
		return fault.Errorf(fault.Broken, "%s: tensor %q: shape %v, want one dimension of 1 to %d", t.File, t.Name,
			t.Shape, maxValues)
	}
	var buf []byte
	raw, err := src.Raw(&buf, 0, 1)
	if err != nil {
		return fmt.Errorf("%s: tensor %q: %w", t.File, t.Name, err)
	}
	if j.numbers.integers == nil {
		j.numbers.integers = map[string][]int64{}
	}
	for ; len(raw) > 0; raw = raw[8:] {
		j.numbers.integers[name] = append(j.numbers.integers[name], int64(binary.LittleEndian.Uint64(raw)))
	}
	return nil
}

// valuePairs returns the metadata made from tensors.
func (j *Job) valuePairs(cfg *config.View) (m gguf.Metadata, err error) {
	for _, v := range j.numbers.values {
		value, err := v.meta.Make(cfg, v.layers)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.meta.Key, err)
		}
		m.Set(v.meta.Key, value)
	}
	return m, nil
}

// mute returns the view with zero embeddings suppressed: the ids of these tokens, from own on, are added to
// Facts.Suppress.
func (j *Job) mute(ctx context.Context, cfg *config.View, own int) (*config.View, error) {
	i := slices.IndexFunc(j.Plan, func(t Tensor) bool { return t.Name == "token_embd.weight" })
	if i < 0 {
		return cfg, nil
	}
	src := j.Plan[i].Source
	ne := src.NE()
	if len(ne) != 2 {
		return nil, fault.Errorf(fault.Broken, "tensor %q: dimensions %s, want a row for each token", j.Plan[i].From,
			gguf.Shape(ne))
	}
	facts := cfg.Facts
	values, buf := make([]float32, ne[0]), []byte(nil)
	for id := int64(own); id < ne[1]; id++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := rows.Decode(src, values, &buf, id, id+1); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(values, func(v float32) bool { return v != 0 }) {
			facts.Suppress = append(facts.Suppress, id)
		}
	}
	return cfg.With(facts), nil
}
