package writer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/mmap"
	"ggforge/internal/kernel/parallel"
)

// verify reads the files back from the disk, and compares headers and, by the checksums taken before they were
// written, rows.
func (o *output) verify(ctx context.Context, head []byte, opt Options) error {
	for i, p := range o.parts {
		l := &o.files[i]
		err := p.use(func(f *disk.File) error {
			forget(f)
			return nil
		})
		if err != nil {
			return err
		}
		want := l.header()
		got := make([]byte, len(want))
		err = p.use(func(f *disk.File) error {
			_, err := f.ReadAt(got, 0)
			return err
		})
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%s: the header on the disk differs from the one written", p.name)
		}
		for _, t := range l.tensors {
			t.done = nil
		}
	}
	logs := o.partLogs
	if o.log != nil {
		logs = []*rowLog{o.log}
	}
	for _, log := range logs {
		if _, err := log.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	if err := o.readLogs(ctx, logs, head, opt); err != nil {
		return err
	}
	for i, p := range o.parts {
		for _, t := range o.files[i].tensors {
			j := &job{ne: t.Source.NE(), outputs: []*placed{t}, hi: gguf.Rows(t.Source.NE())}
			if bad := j.missing(j.done()); len(bad) > 0 {
				return fmt.Errorf("%s: tensor %q: rows %d to %d on the disk differ from those written", p.name, t.Name,
					bad[0].a, bad[0].b-1)
			}
		}
	}
	return nil
}

// compareSources compares the rows that parts or an interrupted run have read with those of the sources now.
func compareSources(ctx context.Context, tensors []*placed, opt Options) error {
	buffers := make([][]byte, opt.workers())
	for _, j := range jobsOf(tensors) {
		done := map[[2]int64][]span{}
		for _, t := range j.outputs {
			for _, s := range t.done {
				at := [2]int64{s.a, s.b}
				done[at] = append(done[at], s)
			}
		}
		order := slices.SortedFunc(maps.Keys(done), func(x, y [2]int64) int { return slices.Compare(x[:], y[:]) })
		err := parallel.For(ctx, len(buffers), len(order), func(i, worker int) error {
			at, sum := order[i], uint64(0)
			// a mapped input that is truncated meanwhile must not kill the process
			err := mmap.Guard("input", func() error {
				raw, err := j.source.Raw(&buffers[worker], at[0], at[1])
				sum = rowSum(raw)
				return err
			})
			if err != nil {
				return fmt.Errorf("tensor %q: %w", j.name(), err)
			}
			for _, s := range done[at] {
				if s.source != sum {
					return fault.Errorf(fault.Refused,
						"%s: rows %d to %d of tensor %q were made from a different model; remove the file, and run "+
							"its part again", s.log.name, s.a, s.b-1, j.name())
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
