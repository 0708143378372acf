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
//	writeback.go    its way to the disk while it grows
package writer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"ggforge/gguf"
	"ggforge/rows"
)

// Tensor is one tensor of the output. Its dimensions are those of the source.
type Tensor struct {
	Name   string
	Type   gguf.Type
	Source rows.Source

	// Encoder makes the rows of the output where the type changes; nil means
	// Weighted(nil).
	Encoder Encoder
}

// encoder returns the tensor's encoder, never nil.
func (t *Tensor) encoder() Encoder {
	if t.Encoder == nil {
		return Weighted(nil)
	}
	return t.Encoder
}

// Options says how to write.
type Options struct {
	Workers int  // 0 means one per CPU
	Force   bool // replace an existing file
	// Inputs are the files that the run reads: an output that would replace one of
	// them is an error of kind fault.Usage, also with Force.
	Inputs []string
	// AllowOverflow lets finite weights become infinite in a narrower type, as
	// the reference's converter does; they are counted in the Result. Without it
	// they are an error.
	AllowOverflow bool
	// MaxBuffer bounds the buffers of all workers together, in bytes; 0 means
	// 96 MiB, which more than some 20 workers reach. A worker holds one row at
	// least.
	MaxBuffer int64
	// Check, if set, is called when all files are whole and on disk, before any of
	// them takes its name. Its error ends the write, and nothing is left behind:
	// the place to see whether the inputs are still what they were.
	Check func() error
	// Progress, if set, is called from one goroutine: when a tensor's turn comes, a
	// few times a second between that, and once at the end, also after an error.
	Progress func(Progress)
}

// Progress tells how far a write has come.
type Progress struct {
	// Begun is set when a tensor's turn comes; Tensor and Index are then about it,
	// otherwise about the one begun last.
	Begun  bool
	Tensor string
	Index  int         // of Tensors
	Types  []gguf.Type // that the tensor becomes, one per output
	Bytes  int64       // that it has in all outputs

	Tensors     int
	Done, Total int64 // bytes of tensor data written, and to write
	// Work is the share of the work that is done, from 0 to 1, where the bytes of
	// each type count as much as they take to make.
	Work float64
	// Elapsed is the time since the first tensor, Remaining an estimate of the time
	// to the last; it is 0 as long as there is nothing to go by.
	Elapsed, Remaining time.Duration
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
	swap    func(gguf.Type) bool    // whether tensors of a type are written big-endian; nil for none
	check   func(path string) error // reads the finished file back; nil for nothing to check
}

// placed is a tensor with the offset of its data in the file.
type placed struct {
	Tensor
	off int64
}

// set is the files of one output. The leader, an index into files, is the one by
// which readers open the set.
type set struct {
	files  []layout
	leader int
}

// output is a set on its way.
type output struct {
	set
	parts  []*partial
	result *Result
}

// write writes all files of all sets, or none, and returns one result per set.
// Tensors of several files that have the same Source, by ==, are read and decoded
// once. Files get their names when all are whole, set by set.
func write(ctx context.Context, sets []set, opt Options) (_ []*Result, err error) {
	var paths []string
	for _, s := range sets {
		for _, f := range s.files {
			paths = append(paths, f.path)
		}
	}
	if err := distinct(opt.Inputs, paths); err != nil {
		return nil, err
	}
	outputs := make([]*output, len(sets))
	defer func() {
		for _, o := range outputs {
			if o != nil {
				o.discard()
			}
		}
	}()
	var tensors []*destined
	results := make([]*Result, len(sets))
	for i, s := range sets {
		results[i] = &Result{}
		outputs[i] = &output{set: s, result: results[i]}
		more, err := outputs[i].create(opt.Force)
		if err != nil {
			return nil, err
		}
		tensors = append(tensors, more...)
	}
	var parts []*partial
	for _, o := range outputs {
		parts = append(parts, o.parts...)
	}
	stop := writeback(parts)
	err = convert(ctx, tensors, opt)
	stop()
	if err != nil {
		return nil, err
	}
	for _, o := range outputs {
		if err := o.finish(); err != nil {
			return nil, err
		}
	}
	if opt.Check != nil {
		if err := opt.Check(); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i, o := range outputs {
		if err := o.commit(opt.Force); err != nil {
			for _, done := range outputs[:i] {
				done.undo()
			}
			return nil, err
		}
	}
	return results, nil
}

// create makes the files and writes their headers. It returns their tensors.
func (o *output) create(force bool) ([]*destined, error) {
	var tensors []*destined
	for _, l := range o.files {
		p, err := create(l.path, l.size, force)
		if err != nil {
			return nil, err
		}
		o.parts = append(o.parts, p)
		if _, err := p.WriteAt(l.header, 0); err != nil {
			return nil, err
		}
		for _, t := range l.tensors {
			tensors = append(tensors, &destined{placed: t, to: p, swap: l.swap != nil && l.swap(t.Type), result: o.result})
		}
		o.result.Files = append(o.result.Files, l.path)
		o.result.Bytes += l.size
	}
	return tensors, nil
}

// finish makes the files durable and reads their headers back.
func (o *output) finish() error {
	for _, p := range o.parts {
		if err := p.sync(); err != nil {
			return err
		}
	}
	for i, p := range o.parts {
		if check := o.files[i].check; check != nil {
			if err := check(p.name); err != nil {
				return fmt.Errorf("written file does not read back: %w", err)
			}
		}
	}
	return nil
}

// commit gives the files their names, the leader last. A leader that is to be
// replaced goes first of all, so that at no time old and new files can be opened
// as one model. When a file fails to take its name, those that have theirs
// already lose them: they are of no use without the others.
func (o *output) commit(force bool) error {
	leader := o.parts[o.leader]
	if force && len(o.parts) > 1 {
		if err := checkFinal(leader.final, force); err != nil {
			return err
		}
		if err := os.Remove(leader.final); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, p := range slices.Concat(o.parts[:o.leader], o.parts[o.leader+1:], []*partial{leader}) {
		if err := p.commit(force); err != nil {
			o.undo()
			return err
		}
	}
	return nil
}

// undo removes the files that have taken their names.
func (o *output) undo() {
	for _, p := range o.parts {
		if p.over {
			os.Remove(p.final)
		}
	}
}

// discard removes the files that have not.
func (o *output) discard() {
	for _, p := range o.parts {
		p.discard()
	}
}

// destined is a tensor and the file that it goes to.
type destined struct {
	placed
	to     io.WriterAt
	swap   bool    // it is written big-endian
	result *Result // of its set

	overflows, displaced atomic.Int64
}
