package writer

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"

	"ggforge/gguf"
)

// layout is a file to write, known except for the rows of its tensors. Bytes outside of the header and the tensors are
// zero.
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
	same *placed // an earlier output with the same bytes, which are computed once; nil for none

	to               *partial
	sink             *sink   // for an object that parts make
	need             []span  // rows of missing pieces of that object, in order
	fileNo, tensorNo int     // of the file in its set, of the tensor in the file
	log              *rowLog // of the set; nil for none
	done             []span  // that an earlier run has written, in any order
	result           *Result // of its set

	overflows, displaced atomic.Int64
}

// count adds n to the counts of the tensor.
func (t *placed) count(n tally) {
	if n != (tally{}) {
		t.overflows.Add(n.overflows)
		t.displaced.Add(n.displaced)
	}
}

// rowsOf returns the number of rows of the tensor, and of elements in a row.
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

// output is a set while it is written.
type output struct {
	set
	parts  []*partial // by file
	log    *rowLog    // nil without Options.Journal
	result *Result

	partLogs []*rowLog // of parts, while they are put together
	unusable bool      // no later run may resume from its files
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
	if j := opt.Journal; j != nil && j.Finish && j.inOwnFiles() {
		return o.copyParts(ctx, facts, opt)
	}
	return nil
}

// openAll opens or creates the files that the output is written to.
func (o *output) openAll(ctx context.Context, open *handles, facts []Fact, opt Options) error {
	switch j := opt.Journal; {
	case j == nil:
		if err := refuseParts(o.runName()); err != nil {
			return err
		}
		if err := removeLeftover(o.logName(), o.logName()); err != nil {
			return err
		}
		return o.makeAll(ctx, open, opt)
	case j.Part > 0 && j.inOwnFiles():
		o.parts = nil
		return o.openOwnFile(ctx, facts, opt)
	case j.Part > 0:
		return o.openForPart(ctx, open, facts, opt)
	case j.Finish && !j.inOwnFiles():
		return o.openForFinish(ctx, open, facts, opt)
	default:
		if err := refuseParts(o.runName()); err != nil {
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
			j.register(p.name)
		}
		j.register(o.log.name)
		return nil
	}
}

func (o *output) makeAll(ctx context.Context, open *handles, opt Options) error {
	for i := range o.files {
		// the leader first, then the others in order
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
				return fmt.Errorf("the written file cannot be read back: %w", err)
			}
		}
	}
	if !opt.Verify || opt.Journal.Part > 0 { // a part is verified when it is finished
		return nil
	}
	if j := opt.Journal; j.Finish && !j.inOwnFiles() {
		facts = withParts(facts, j.Parts)
	}
	return o.verify(ctx, o.head(facts), opt)
}

// discard removes the files that are not committed, or with resumable keeps them for a later run, if they have a log.
// It reports whether it has kept them.
func (o *output) discard(resumable bool) bool {
	resumable = resumable && !o.unusable && (o.log != nil || o.partLogs != nil)
	for _, p := range o.parts {
		if p != nil {
			p.kept = p.kept || resumable
			p.discard()
		}
	}
	if o.log != nil {
		dropTemporary(o.log.name)
		o.log.close(!resumable)
	}
	for _, log := range o.partLogs {
		log.close(false)
	}
	return resumable
}
