// Package writer turns a list of planned tensors into files: one GGUF file, or
// the safetensors files of a checkpoint.
//
// The layout is computed first: every offset and the size of each file are known
// before the first byte is written. Then workers take blocks of rows, each
// reads, converts and writes its block at its place; which worker takes which
// block has no influence on the bytes. The files grow under temporary names in
// the output's directory and take their own names when all of them are whole, on
// disk and their headers have been read back: all of them, or none, also where
// they replace others and the process is killed meanwhile. After an error nothing
// is left behind.
//
//	gguf.go         tensors → layout of a GGUF file
//	checkpoint.go   tensors → layouts of safetensors shards and their index
//	bytes.go        a file of bytes
//	writer.go       layouts: create all → pool → sync → read back → commit
//	pool.go         blocks of rows for the workers, progress
//	worker.go       rows → float32 → rows of the output's type → WriteAt
//	encoder.go      how rows are encoded: plan-time objects, one per tensor
//	encoded.go      rows encoded when they are read, without a file
//	partial.go      a file under its temporary name
//	commit.go       temporary names → names, all or none
//	dirs.go         directories that are made for the files
//	folder.go       what a folder of several writes needs besides: its lock, sums before the renames
//	writeback.go    its way to the disk while it grows
package writer

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model/digest"
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

// Options says how to write.
type Options struct {
	Workers int  // 0 means one per CPU
	Force   bool // replace an existing file
	// MakeDir, unless empty, is a directory for the outputs. It is made, and those
	// that it is in, and goes again if the write fails.
	MakeDir string
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
	// Own are files that the run itself makes and reads: no output may replace one of them,
	// but they do not decide what the bytes are.
	Own []string
	// Journal, unless nil, makes the write one that can be continued.
	Journal *Journal
	// Verify reads the files back from the disk before they take their names, and compares
	// their rows with checksums that were taken before they were written. Rows that parts or an interrupted run
	// have written are compared with the inputs, too: sources are read once more, except those of servers, and
	// rows that were made of others are an error of kind fault.Refused. It needs a Journal.
	Verify bool
	// Check, if set, is called when all files are whole and on disk, before any of
	// them takes its name. Its error ends the write, and nothing is left behind:
	// the place to see whether the inputs are still what they were.
	Check func() error
	// Ready, if set, is called after Check with the files as they will be: their names are the paths that they are
	// about to take. Its error ends the write as that of Check does. What it keeps on disk lets a later run know
	// the files again, at whichever rename this one is killed. A part of a write (Journal.Part) renames nothing and
	// does not call it.
	Ready func(files []digest.File) error
	// Progress, if set, is called from one goroutine: when a tensor's turn comes, a
	// few times a second between that, and once at the end, also after an error.
	Progress func(Progress)

	step func(string) error // called before each step of a commit; for tests
}

// Progress is how far a write has come.
type Progress struct {
	// Begun is set when a tensor's turn comes; Tensor and Index are then about it,
	// otherwise about the one begun last.
	Begun bool
	// Last is set in the last call: all data are written if Done is Total, else
	// an error has ended the writing.
	Last   bool
	Files  []string // that are written, under their final names
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

// Result is what was written.
type Result struct {
	Files     []string // paths
	Bytes     int64    // size of the files
	DataBytes int64    // of the tensors alone, padding not counted
	Elements  int64

	// Overflows counts blocks that hold an infinity which their source does not:
	// elements for plain types.
	Overflows []Count
	// Displaced counts the sub-blocks of zeros that make superblocks decode wrongly: see
	// quants.Codec.DisplacedSubBlocks.
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
	header  func() []byte // from the first byte on; made when it is written, since those of many files are large
	size    int64
	tensors []*placed
	body    io.WriterTo             // writes the whole file, after the header; nil for a file of tensors
	check   func(path string) error // reads the finished file back; nil for nothing to check
}

// placed is a tensor with its place in a file.
type placed struct {
	Tensor
	off  int64   // of its data
	swap bool    // it is written big-endian
	no   int     // among the outputs of its source
	same *placed // the one before it that has the same bytes, made once for all; nil for none

	to               *partial
	fileNo, tensorNo int     // of the file in its set, of the tensor in the file
	log              *rowLog // of the set; nil for none
	done             []span  // that an earlier run has written, in any order
	result           *Result // of its set

	overflows, displaced atomic.Int64
}

// count adds to what the result will say about the tensor.
func (t *placed) count(n tally) {
	if n != (tally{}) {
		t.overflows.Add(n.overflows)
		t.displaced.Add(n.displaced)
	}
}

// rowsOf returns how many rows the tensor has, and how many elements a row.
func rowsOf(t *placed) (rows, rowLen int64) {
	ne := t.Source.NE()
	return gguf.Rows(ne), gguf.RowLen(ne)
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
	parts  []*partial // by file
	log    *rowLog    // nil without Options.Journal
	result *Result

	partLogs []*rowLog // of parts, while they are put together
	spoiled  bool      // no later run goes on from its files
}

// workers returns how many goroutines do the work.
func (o *Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
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
		var dirs made
		defer func() { dirs.settle(err != nil && !opt.Journal.keeps(ctx)) }()
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
			err = Keep(err)
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
			for _, o := range outputs { // of parts in files of their own there is more than this
				o.spoiled = opt.Journal.apart()
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

// create makes the files and writes their headers, or opens those of an
// interrupted run. The leader comes first and stays open: its lock is that of the
// set.
func (o *output) create(ctx context.Context, open *handles, facts []Fact, opt Options) error {
	for i, l := range o.files {
		for k, t := range l.tensors {
			t.result, t.fileNo, t.tensorNo = o.result, i, k
		}
		o.result.Files = append(o.result.Files, l.path)
		o.result.Bytes += l.size
	}
	if err := o.openAll(ctx, open, facts, opt); err != nil {
		return err
	}
	for i, l := range o.files {
		for _, t := range l.tensors {
			if o.log != nil {
				t.log = o.log
			}
			if o.parts != nil {
				t.to = o.parts[i]
			}
		}
	}
	if j := opt.Journal; j != nil && j.Finish && j.apart() {
		return o.collect(ctx, facts, opt)
	}
	return nil
}

// openAll opens what the output is written to.
func (o *output) openAll(ctx context.Context, open *handles, facts []Fact, opt Options) error {
	switch j := opt.Journal; {
	case j == nil:
		if err := unstarted(o.runName()); err != nil {
			return err
		}
		if err := removeLeftover(o.logName(), o.logName()); err != nil {
			return err
		}
		return o.makeAll(ctx, open, opt)
	case j.Part > 0 && j.apart():
		o.parts = nil
		return o.openApart(ctx, facts, opt)
	case j.Part > 0:
		return o.join(ctx, open, facts, opt)
	case j.Finish && !j.apart():
		return o.gather(ctx, open, facts, opt)
	default:
		if err := unstarted(o.runName()); err != nil {
			return err
		}
		head := o.head(facts)
		if j.Resume || j.Finish {
			if resumed, err := o.reopen(ctx, open, head, opt); resumed || err != nil {
				return err
			}
		}
		if err := removeLeftover(o.logName(), o.logName()); err != nil {
			return err
		}
		if err := o.makeAll(ctx, open, opt); err != nil {
			return err
		}
		if err := o.startLog(head); err != nil {
			return err
		}
		for _, p := range o.parts {
			o.keep(p.name, j)
		}
		o.keep(o.log.name, j)
		return nil
	}
}

// keep says of a temporary file what RemovePartials does with it.
func (o *output) keep(name string, j *Journal) {
	if j.Resume || j.shared() {
		finished(name)
	} else {
		unfinish(name, true)
	}
}

func (o *output) makeAll(ctx context.Context, open *handles, opt Options) error {
	for i := range o.files {
		// the leader's place in the order is taken by the first file
		if i == 0 {
			i = o.leader
		} else if i <= o.leader {
			i--
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		l := &o.files[i]
		p, err := create(l.path, l.size)
		if err != nil {
			return err
		}
		o.parts[i] = p
		if i != o.leader {
			if err := open.add(p); err != nil {
				return err
			}
		}
		if _, err := p.WriteAt(l.header(), 0); err != nil {
			return err
		}
		if err := l.fill(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// finish makes the files durable and reads their headers back, with Verify all of them.
func (o *output) finish(ctx context.Context, facts []Fact, opt Options) error {
	for _, p := range o.parts {
		if err := ctx.Err(); err != nil {
			return err
		}
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
	if !opt.Verify || opt.Journal.Part > 0 { // which is compared when parts are put together
		return nil
	}
	if j := opt.Journal; j.Finish && !j.apart() {
		facts = inParts(facts, j.Parts)
	}
	return o.verify(ctx, o.head(facts), opt)
}

// discard removes the files that have not got their names, or with resumable
// leaves them to a later run, if there is a log of them. It reports whether it has left them.
func (o *output) discard(resumable bool) bool {
	resumable = resumable && !o.spoiled && (o.log != nil || o.partLogs != nil)
	for _, p := range o.parts {
		if p != nil {
			p.kept = p.kept || resumable
			p.discard()
		}
	}
	if o.log != nil {
		finished(o.log.name)
		o.log.close(!resumable)
	}
	for _, log := range o.partLogs {
		log.close(false)
	}
	return resumable
}
