// Package writer turns a list of planned tensors into files: one GGUF file, or
// the safetensors files of a checkpoint.
//
// The layout is computed first: every offset and the size of each file are known
// before the first byte is written. Then workers take blocks of rows, each
// reads, converts and writes its block at its place; which worker takes which
// block has no influence on the bytes. The files grow under temporary names in
// the output's directory and take their own names when all of them are whole, on
// disk and their headers have been read back. After an error nothing is left
// behind.
//
//	gguf.go         tensors → layout of a GGUF file
//	checkpoint.go   tensors → layouts of safetensors shards and their index
//	writer.go       layouts: create all → pool → sync → read back → rename all
//	pool.go         blocks of rows for the workers, progress
//	worker.go       rows → float32 → rows of the output's type → WriteAt
//	partial.go      a file under its temporary name
package writer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"ggforge/gguf"
	"ggforge/rows"
)

// Tensor is one tensor of the output. Its dimensions are those of the source.
type Tensor struct {
	Name   string
	Type   gguf.Type
	Source rows.Source

	// Importance, if set, returns one weight per column, NE[0] for all rows or,
	// slice after slice, NE[0] for each of the NE[2] slices; nil for none. It is
	// called when the tensor's turn comes, and only if its type changes.
	Importance func() ([]float32, error)
}

// Options says how to write.
type Options struct {
	Workers int  // 0 means one per CPU
	Force   bool // replace an existing file
	// AllowOverflow lets finite weights become infinite in a narrower type, as
	// the reference's converter does; they are counted in the Result. Without it
	// they are an error.
	AllowOverflow bool
	// MaxBuffer bounds the buffers of all workers together, in bytes; 0 means no
	// bound. A worker holds one row at least.
	MaxBuffer int64
	// Progress, if set, is called from one goroutine, a few times a second and
	// once at the end.
	Progress func(Progress)
}

// Progress tells how far a write has come.
type Progress struct {
	Done, Total int64  // bytes of tensor data written, and to write
	Tensor      string // begun last
}

// Result tells what was written.
type Result struct {
	Files     []string // paths
	Bytes     int64    // size of the files
	DataBytes int64    // of the tensors alone, padding not counted
	Elements  int64

	// Overflows counts blocks that hold an infinity which their source does not:
	// elements for plain types.
	Overflows []Count
	// Displaced counts the sub-blocks of zeros that make superblocks of IQ3_S
	// decode wrongly (quants.ZeroSubBlocksIQ3_S).
	Displaced []Count
}

// Count is a number of blocks of one tensor.
type Count struct {
	Tensor string
	Type   gguf.Type
	Blocks int64
}

// layout is a file to write, known except for the rows of its tensors. What no
// tensor and no header covers is zero.
type layout struct {
	path    string
	header  []byte // from the first byte on
	size    int64
	tensors []placed
	check   func(path string) error // reads the finished file back; nil for nothing to check
}

// placed is a tensor with the offset of its data in the file.
type placed struct {
	Tensor
	off int64
}

// write writes all files, or none: they get their names together, when all are
// whole, the leader last. The leader, an index into files, is the one by which
// readers open the set. One that is to be replaced goes first of all, so that at
// no time old and new files can be opened as one model.
func write(ctx context.Context, files []layout, leader int, opt Options) (_ *Result, err error) {
	var parts []*partial
	defer func() {
		for _, p := range parts {
			p.discard()
		}
	}()
	var tensors []destined
	result := &Result{}
	for _, l := range files {
		p, err := create(l.path, l.size, opt.Force)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
		if _, err := p.WriteAt(l.header, 0); err != nil {
			return nil, err
		}
		for _, t := range l.tensors {
			tensors = append(tensors, destined{t, p})
		}
		result.Files = append(result.Files, l.path)
		result.Bytes += l.size
	}
	if err := convert(ctx, tensors, opt, result); err != nil {
		return nil, err
	}
	for _, p := range parts {
		if err := p.sync(); err != nil {
			return nil, err
		}
	}
	for i, p := range parts {
		if check := files[i].check; check != nil {
			if err := check(p.name); err != nil {
				return nil, fmt.Errorf("written file does not read back: %w", err)
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return result, commit(parts, leader, opt.Force)
}

// commit gives the files their names. When one fails, those that have theirs
// already are removed: they are of no use without the others.
func commit(parts []*partial, leader int, force bool) error {
	if force && len(parts) > 1 {
		if err := checkFinal(parts[leader].final, force); err != nil {
			return err
		}
		if err := os.Remove(parts[leader].final); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	order := slices.Concat(parts[:leader], parts[leader+1:], parts[leader:leader+1])
	for _, p := range order {
		if err := p.commit(force); err != nil {
			for _, done := range parts {
				if done.over {
					os.Remove(done.final)
				}
			}
			return err
		}
	}
	return nil
}

// destined is a tensor and the file that it goes to.
type destined struct {
	placed
	to io.WriterAt
}
