package quantize

import (
	"strings"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/writer"
)

// Files returns the files that Write will write for that path, in the order of
// the shards. Their sizes are final.
func (j *Job) Files(path string) ([]*writer.File, error) {
	shards, err := j.shards()
	if err != nil {
		return nil, err
	}
	alignment, misstated, err := j.alignment()
	if err != nil {
		return nil, err
	}
	stated := map[string]gguf.Tensor{}
	for i := range j.Decisions {
		if t := j.output(&j.Decisions[i]); !t.Type.Known() {
			stated[t.Name] = t
		}
	}
	if len(shards) == 1 && !j.opt.KeepSplit {
		return []*writer.File{{Path: path, Stated: stated, Metadata: j.metadata, Tensors: shards[0],
			Alignment: alignment, Misstated: misstated}}, nil
	}
	total := 0
	for _, s := range shards {
		total += len(s)
	}
	prefix := strings.TrimSuffix(path, ".gguf")
	var files []*writer.File
	for i, tensors := range shards {
		f := &writer.File{Path: gguf.ShardName(prefix, i, len(shards)), Tensors: tensors, Stated: stated}
		if i == 0 { // the others state no alignment, and so have the default one
			f.Metadata = append(f.Metadata, j.metadata...)
			f.Alignment, f.Misstated = alignment, misstated
		}
		if len(shards) > 1 {
			j.addSplitKeys(&f.Metadata, i, len(shards), total)
		}
		files = append(files, f)
	}
	return files, nil
}

// addSplitKeys appends the keys of a shard, in the order of the reference's
// quantizer or, for shards of a new size, of its splitter.
func (j *Job) addSplitKeys(m *gguf.Metadata, no, count, tensors int) {
	m.Move(gguf.KeySplitNo, gguf.Uint16(uint16(no)))
	if j.opt.KeepSplit {
		m.Move(gguf.KeySplitCount, gguf.Uint16(uint16(count)))
	}
	m.Move(gguf.KeySplitTensors, gguf.Int32(int32(tensors)))
	if !j.opt.KeepSplit {
		m.Move(gguf.KeySplitCount, gguf.Uint16(uint16(count)))
	}
}

// shards divides the tensors among the output's shards. One of the input's may be
// left without any.
func (j *Job) shards() ([][]writer.Tensor, error) {
	if j.opt.KeepSplit {
		shards := make([][]writer.Tensor, j.Input.Shards)
		for i := range j.Decisions {
			d := &j.Decisions[i]
			s := j.Input.Tensors[d.Tensor].Shard
			shards[s] = append(shards[s], j.tensor(d))
		}
		return shards, nil
	}
	var all []writer.Tensor
	var sizes []int64 // padding included, as the reference counts
	for i := range j.Decisions {
		d := &j.Decisions[i]
		t := j.output(d)
		all, sizes = append(all, j.tensor(d)), append(sizes, gguf.Align(t.Bytes(), gguf.DefaultAlignment))
	}
	var shards [][]writer.Tensor
	from := 0
	for _, to := range (gguf.Cut{MaxTensors: j.opt.SplitMaxTensors, MaxBytes: j.opt.SplitMaxBytes}).Ends(sizes) {
		shards, from = append(shards, all[from:to]), to
	}
	if len(shards) > gguf.MaxShards {
		return nil, fault.Errorf(fault.Usage, "%d shards, want at most %d: allow more bytes or tensors in each",
			len(shards), gguf.MaxShards)
	}
	return shards, nil
}

// alignment returns the alignment of tensor data. misstated is true if the
// metadata name another one, as they may with --compat llama.cpp.
func (j *Job) alignment() (a int64, misstated bool, err error) {
	a, ok := j.metadata.Alignment()
	if !ok { // that of the input has been checked
		v, _ := j.metadata.Get(gguf.KeyAlignment)
		return 0, false, fault.Errorf(fault.Usage, "override: %s is %v %v, want a power of two up to %d as u32",
			gguf.KeyAlignment, v.Type(), v.Short(), gguf.MaxAlignment)
	}
	if j.opt.Reference {
		return gguf.DefaultAlignment, a != gguf.DefaultAlignment, nil
	}
	return a, false, nil
}
