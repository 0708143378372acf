package eval

import (
	"maps"
	"slices"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model"
)

// FuzzNew prepares models of any header for running: errors have a kind.
func FuzzNew(f *testing.F) {
	for _, arch := range slices.Sorted(maps.Keys(recurrent)) {
		m := smallRecurrent(arch)
		var tensors []gguf.Tensor
		for i := range m.Tensors {
			tensors = append(tensors, m.Tensors[i].Tensor)
		}
		gguf.Layout(tensors, 32)
		f.Add(gguf.AppendHeader(nil, m.Metadata, tensors, 32))
	}
	const room = 1 << 20
	var data []byte // of the header before, and zeros
	last := 0
	f.Fuzz(func(t *testing.T, header []byte) {
		if len(data) < len(header)+room {
			data = make([]byte, 2*len(header)+room)
		}
		clear(data[:last])
		last = copy(data, header)
		file, err := gguf.Parse("x.gguf", data[:last+room])
		if err != nil {
			return
		}
		m, err := model.Of("x.gguf", file.Set())
		if err != nil {
			return
		}
		if r, err := New(m); err != nil {
			if !fault.Has(err) {
				t.Errorf("an error of no kind: %v", err)
			}
		} else if r.Vocab() < 0 {
			t.Errorf("a vocabulary of %d tokens", r.Vocab())
		}
	})
}
