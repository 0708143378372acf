package writer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"ggforge/checkpoint/safetensors"
	"ggforge/fault"
	"ggforge/internal/io/disk"
)

// Checkpoint is a directory to write safetensors files into: model.safetensors,
// or shards and their index.
type Checkpoint struct {
	Dir string
	// Tensors in the order in which they are dealt out to the shards.
	Tensors  []CheckpointTensor
	MaxShard int64 // bytes of tensor data in a file that holds more than one tensor
}

// CheckpointTensor is a tensor of a Checkpoint.
type CheckpointTensor struct {
	Tensor
	DType safetensors.DType // has the same bytes as Type
}

// metadata is the metadata that the transformers library requires.
var metadata = map[string]string{"format": "pt"}

// layouts computes the files. The index comes last: without it a reader sees
// that shards are missing.
func (c *Checkpoint) layouts() ([]layout, error) {
	infos := make([]safetensors.Tensor, len(c.Tensors))
	for i, t := range c.Tensors {
		if t.Type.BlockLen() != 1 || int64(t.DType.Bits()) != 8*t.Type.BlockBytes() {
			return nil, fault.Errorf(fault.Usage, "tensor %q: type %v does not have the bytes of %v", t.Name, t.Type,
				t.DType)
		}
		shape := slices.Clone(t.Source.NE())
		slices.Reverse(shape)
		infos[i] = safetensors.Tensor{Name: t.Name, DType: t.DType, Shape: shape}
	}
	shards := safetensors.Split(infos, c.MaxShard)
	var files []layout
	rest := c.Tensors
	for i, shard := range shards {
		l := layout{path: filepath.Join(c.Dir, safetensors.ShardName(i, len(shards)))}
		var err error
		var header []byte
		if header, l.size, err = safetensors.Layout(shard, metadata); err != nil {
			return nil, err
		}
		l.header = func() []byte { return header }
		for j, t := range rest[:len(shard)] {
			l.tensors = append(l.tensors, &placed{Tensor: t.Tensor, off: shard[j].Offset()})
		}
		rest = rest[len(shard):]
		l.check = func(path string) error { return checkShard(path, shard) }
		files = append(files, l)
	}
	if len(shards) > 1 {
		index, err := safetensors.Index(shards)
		if err != nil {
			return nil, err
		}
		files = append(files, layout{path: filepath.Join(c.Dir, safetensors.IndexName),
			header: func() []byte { return index }, size: int64(len(index))})
	}
	return files, nil
}

// checkShard reads a written file back.
func checkShard(path string, want []safetensors.Tensor) error {
	f, err := safetensors.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if len(f.Tensors()) != len(want) {
		return fmt.Errorf("%d tensors, want %d", len(f.Tensors()), len(want))
	}
	for i := range want {
		w := &want[i]
		t, ok := f.Lookup(w.Name)
		if !ok || t.DType != w.DType || !slices.Equal(t.Shape, w.Shape) || t.Offset() != w.Offset() {
			return fmt.Errorf("tensor %q: want %v %v at byte %d", w.Name, w.DType, w.Shape, w.Offset())
		}
	}
	return nil
}

// WriteCheckpoint writes c. The directory is made unless it exists; a directory that is not empty is an error of kind
// fault.Usage. With Force it may hold other files, and files of the names to write are replaced, but it may not hold
// weights that readers would take for a part of the new checkpoint.
func WriteCheckpoint(ctx context.Context, c *Checkpoint, opt Options) (_ *Result, err error) {
	files, err := c.layouts()
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.path
	}
	if err := recoverCommits(paths, opt.step); err != nil {
		return nil, err
	}
	var dirs createdDirs
	defer func() { dirs.removeIf(err != nil) }()
	if err := c.claimRun(files, opt.Force, &dirs); err != nil {
		return nil, err
	}
	results, err := write(ctx, []set{{files, len(files) - 1}}, opt)
	if err != nil {
		return nil, err
	}
	return results[0], nil
}

// claimRun makes the directory, or checks that it may be written into.
func (c *Checkpoint) claimRun(files []layout, force bool, dirs *createdDirs) error {
	st, err := disk.Stat(c.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return dirs.mkdir(filepath.Clean(c.Dir))
	}
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return fault.Errorf(fault.Usage, "%s: not a directory", c.Dir)
	}
	entries, err := disk.ReadDir(c.Dir)
	if err != nil {
		return err
	}
	ours := map[string]bool{}
	for _, f := range files {
		ours[filepath.Base(f.path)] = true
	}
	var foreign []string
	for _, e := range entries {
		name := e.Name()
		switch {
		case ours[strings.TrimSuffix(name, Suffix)] && strings.HasSuffix(name, Suffix):
			// temporary files of an interrupted run are replaced
		case ours[strings.TrimSuffix(name, Suffix+progressSuffix)] && strings.HasSuffix(name, progressSuffix):
		case !force:
			return fault.Permits("Force", fault.Errorf(fault.Usage, "%s: is not empty, it holds %s", c.Dir, name))
		case safetensors.IsModelFile(name) && !ours[name]:
			foreign = append(foreign, name)
		}
	}
	if len(foreign) > 0 {
		return fault.Errorf(fault.Usage,
			"%s: holds weights that would mix with the new ones: %s; remove them, or choose another directory",
			c.Dir, strings.Join(foreign, ", "))
	}
	return nil
}
