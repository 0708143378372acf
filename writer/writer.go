// Package writer turns a list of planned tensors into files: one GGUF file, or
// the safetensors files of a checkpoint.
//
// The layout is computed first: every offset and the size of each file are known
// before the first byte is written. Then workers take blocks of rows, each
// reads, converts and writes its block at its place; the bytes do not depend on
// which worker takes which block. The files grow under temporary names in
// the output's directory and take their own names when all of them are whole, on
// disk and their headers have been read back: all of them, or none, also where
// they replace others and the process is killed meanwhile. After an error no
// temporary file stays.
//
//	gguf.go         tensors → layout of a GGUF file
//	checkpoint.go   tensors → layouts of safetensors shards and their index
//	bytes.go        a file of bytes
//	writer.go       layouts: create all → pool → sync → read back → commit
//	options.go      options, progress, results
//	output.go       the files of one output while they are written
//	pool.go         blocks of rows for the workers, progress
//	worker.go       rows → float32 → rows of the output's type → WriteAt
//	encoder.go      how rows are encoded: plan-time objects, one per tensor
//	encoded.go      rows encoded when they are read, without a file
//	partial.go      a file under its temporary name
//	writeback.go    asks the system to write it to the disk while it grows
//	journal.go      which rows are written: resume.go continues an interrupted write
//	parts.go        several processes write the rows of one output: parts_finish.go puts them together
//	verify.go       reads the files back and compares them with the checksums of the journal
//	commit*.go      temporary names → names, all or none; recovery after a crash
//	leftovers.go    temporary files of interrupted runs
//	overwrite*.go   replaces the header of a file where it is; locked.go locks the file
//	dirs.go         directories that are created for the files
//	folder.go       a folder of several writes: its lock, sums before the renames
package writer

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"ggforge/fault"
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

	// Copy, unless it is nil, has the system copy n bytes of the source's rows, which are of
	// TypeI8 and stay as they are, from byte from on to offset to of dst. Where it gives
	// errors.ErrUnsupported they are read and written.
	Copy func(dst *os.File, to, from, n int64) error
}

// encoder returns the tensor's encoder, never nil.
func (t *Tensor) encoder() Encoder {
	if t.Encoder == nil {
		return Weighted(nil)
	}
	return t.Encoder
}

// write writes all files of all sets, or none, and returns one result per set.
// Tensors of several files that have the same Source, by ==, are read and decoded
// once. Files get their names when all are whole.
func write(ctx context.Context, sets []set, opt Options) (_ []*Result, err error) {
	var paths []string
	for _, s := range sets {
		for _, l := range s.files {
			paths = append(paths, l.path)
		}
	}
	if err := opt.Journal.check(); err != nil {
		return nil, err
	}
	if opt.Journal.inStore() {
		return writeObjects(ctx, sets, opt) // no file is touched
	}
	if opt.Journal != nil {
		own := *opt.Journal
		opt.Journal = &own
	} else if opt.Verify {
		return nil, fault.Errorf(fault.Usage, "files can only be read back with a journal")
	}
	if err := distinct(slices.Concat(opt.Inputs, opt.Own), paths); err != nil {
		return nil, err
	}
	if err := recoverCommits(paths, opt.step); err != nil {
		return nil, err
	}
	for _, path := range paths {
		if opt.makes(filepath.Dir(path)) {
			continue
		}
		if err := checkFinal(path, opt.Force); err != nil {
			return nil, err
		}
	}
	var facts []Fact
	if opt.Journal != nil {
		if facts, err = opt.Journal.facts(opt.Inputs); err != nil {
			return nil, err
		}
	}
	if opt.MakeDir != "" {
		var dirs createdDirs
		defer func() { dirs.removeIf(err != nil && !opt.Journal.keeps(ctx)) }()
		if err := dirs.mkdirAll(filepath.Clean(opt.MakeDir)); err != nil {
			return nil, err
		}
	}
	outputs := make([]*output, len(sets))
	results := make([]*Result, len(sets))
	for i, s := range sets {
		results[i] = &Result{}
		outputs[i] = &output{set: s, parts: make([]*partial, len(s.files)), result: results[i]}
	}
	defer func() {
		kept := false
		for _, o := range outputs {
			kept = o.discard(opt.Journal.keeps(ctx) && (err != nil || opt.Journal.Part > 0)) || kept
		}
		if err != nil && kept {
			err = MarkResumable(err)
		}
	}()
	var tensors []*placed
	var parts []*partial
	open := &handles{}
	for _, o := range outputs {
		if err := o.create(ctx, open, facts, opt); err != nil {
			return nil, err
		}
		parts = append(parts, o.parts...)
		for _, l := range o.files {
			tensors = append(tensors, l.tensors...)
		}
	}
	stop := writeback(parts)
	err = convert(ctx, tensors, paths, opt)
	stop()
	if err != nil {
		return nil, err
	}
	if opt.Verify && opt.Journal.Part == 0 && !opt.Journal.fetched() {
		if err := compareSources(ctx, tensors, opt); err != nil {
			for _, o := range outputs { // the rows of parts in files of their own can be copied again
				o.unusable = opt.Journal.inOwnFiles()
			}
			return nil, err
		}
	}
	for _, o := range outputs {
		if err := o.finish(ctx, facts, opt); err != nil {
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
	if opt.Journal != nil && opt.Journal.Part > 0 {
		for _, o := range outputs {
			if err := o.endPart(); err != nil {
				return nil, err
			}
		}
		return results, nil
	}
	if opt.Ready != nil {
		files, err := sums(ctx, outputs, opt.workers())
		if err == nil {
			err = opt.Ready(files)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := commitAll(outputs, opt); err != nil {
		return nil, err
	}
	for _, o := range outputs {
		if err := o.dropParts(); err != nil {
			return nil, err
		}
	}
	return results, nil
}
