package writer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/statefile"
)

// A write in parts: any number of processes, on any machines, each compute a share of the rows
// (Journal.Part). Where a row goes follows from the layout, so they need not talk to each other.
// With a file system in common they write to the same temporary files:
//
//	OUT.partial                 the file, made by the part that comes first, with the header
//	OUT.partial.run             what the run is: the head of a journal
//	OUT.partial.K-of-N.rows     what part K has written: its journal
//
// and one that finishes (Journal.Finish) compares all rows with the journals. Without one a part is a file
// of its own in Journal.PartDir, under a temporary name until it is whole:
//
//	NAME.part-K-of-N            a journal in which rows follow their records
//
// and one that finishes copies the rows of all of them. A part is locked while it is written, the files
// that several share are locked shared; who finishes locks them for itself.
const (
	// runSuffix is what the file that says what a run in parts is has after the temporary
	// name of the set's leader.
	runSuffix = ".run"
	partMark  = ".part-"
)

// partsFact is the name of the fact that says how many parts there are.
const partsFact = "parts"

// maxParts bounds the number of parts.
const maxParts = 100_000

// share sets which rows are those of part k of n. Along the order of the tensors every part is as much work. It is a
// function of the plan alone, the same on every machine.
func (p *pool) share(k, n int) {
	ends := p.ends(n)
	for i, j := range p.jobs {
		j.lo, j.hi = ends(k-1, i), ends(k, i)
	}
}

// ends returns the row of job i at which part k of n ends.
func (p *pool) ends(n int) func(k, i int) int64 {
	starts := make([]uint64, len(p.jobs)+1)
	for i, j := range p.jobs {
		starts[i+1] = starts[i] + uint64(j.workOf(gguf.Rows(j.ne)*gguf.RowLen(j.ne)))
	}
	total := starts[len(p.jobs)]
	return func(k, i int) int64 {
		rows := gguf.Rows(p.jobs[i].ne)
		hi, lo := bits.Mul64(total, uint64(k))
		at, _ := bits.Div64(hi, lo, uint64(n))
		start, work := starts[i], starts[i+1]-starts[i]
		switch {
		case k == n || at >= start+work:
			return rows
		case at <= start:
			return 0
		}
		hi, lo = bits.Mul64(at-start, uint64(rows))
		row, _ := bits.Div64(hi, lo, work)
		return int64(row)
	}
}

// inParts returns the facts of a run in so many parts.
func inParts(facts []Fact, n int) []Fact {
	return append(slices.Clip(facts), Fact{partsFact, strconv.Itoa(n)})
}

// runName returns the name of the file that says what the run in parts is.
func (s *set) runName() string { return s.files[s.leader].path + Suffix + runSuffix }

// partLog returns the name of the journal of part k of n.
func (s *set) partLog(k, n int) string {
	return s.files[s.leader].path + Suffix + "." + partName(k, n) + progressSuffix
}

// partFile returns the name of the file that has part k of n.
func (s *set) partFile(dir string, k, n int) string {
	return filepath.Join(dir, filepath.Base(s.files[s.leader].path)+partMark+partName(k, n))
}

// unstarted refuses to begin a write that is not one in parts while there are parts of one, of which run is the
// runName.
func unstarted(run string) error {
	if _, err := disk.Lstat(run); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return fault.Errorf(fault.Usage, "%s: parts of a run are there, which have to be finished or removed", run)
}

// join opens the files that all parts of a run write to, and makes those that are missing, and
// goes on from what the part has left.
func (o *output) join(ctx context.Context, open *handles, facts []Fact, opt Options) error {
	j := opt.Journal
	head := o.head(inParts(facts, j.Parts))
	leader := o.files[o.leader].path
	for i := range o.files { // before anything is made
		if err := checkFinal(o.files[i].path, opt.Force); err != nil {
			return err
		}
	}
	if _, err := disk.Lstat(o.runName()); errors.Is(err, fs.ErrNotExist) {
		if _, err := disk.Lstat(leader + Suffix); err == nil {
			if _, err := disk.Lstat(o.runName()); errors.Is(err, fs.ErrNotExist) { // still
				return fault.Errorf(fault.Usage, "%s: is of a run that was not in parts; remove it", leader+Suffix)
			}
		}
	}
	if err := claim(o.runName(), head); err != nil {
		return err
	}
	for i := range o.files {
		l := &o.files[i]
		p, err := openShared(ctx, l)
		if err != nil {
			return err
		}
		o.parts[i] = p
		if i != o.leader {
			if err := open.add(p); err != nil {
				return err
			}
		}
		if _, err := p.WriteAt(l.header(), 0); err != nil { // the same bytes by every part
			return err
		}
	}
	return o.openPart(ctx, o.partLog(j.Part, j.Parts), head, false)
}

// claim makes the file of that name if there is none, or compares what it holds.
func claim(name string, head []byte) error {
	for range 100 {
		f, err := statefile.Open(name)
		if err == nil {
			found, _, err := readHead(f)
			f.Close()
			if err != nil {
				return err
			}
			return sameRun(name, found, head)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		temp, err := disk.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
		if err != nil {
			return err
		}
		_, err = temp.Write(head)
		if err == nil {
			err = temp.Sync()
		}
		err = cmp.Or(err, temp.Close())
		if err == nil {
			err = renameNew(temp.Name(), name)
		}
		if err == nil {
			return syncDir(filepath.Dir(name))
		}
		disk.Remove(temp.Name())
		if !errors.Is(err, fs.ErrExist) { // another part was faster
			return err
		}
	}
	return fault.Errorf(fault.Usage, "%s: comes and goes", name)
}

// sharedWait is how long a part waits for another one that makes a file, or for one that finishes.
const sharedWait = time.Minute

// openShared opens the temporary file of l, or makes it, with a lock that other parts may have, too.
func openShared(ctx context.Context, l *layout) (*partial, error) {
	for begin := time.Now(); ; {
		p, err := tryShared(l)
		if p != nil || err != nil && !errors.Is(err, errLocked) || errors.Is(err, errLocked) &&
			time.Since(begin) > sharedWait {
			return p, err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tryShared is openShared for once: it returns nothing when it has made the file.
func tryShared(l *layout) (_ *partial, err error) {
	p := &partial{name: l.path + Suffix, final: l.path, size: l.size, kept: true}
	st, err := disk.Lstat(p.name)
	if err == nil && !st.Mode().IsRegular() {
		return nil, stranger(p.name, kindOf(st.Mode()))
	}
	if err == nil && !disk.Own(p.name, st) {
		return nil, stranger(p.name, "a file of another user")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if p.file, err = disk.OpenFile(p.name, os.O_RDWR|os.O_CREATE|noFollow, 0o666); err != nil {
		return nil, err
	}
	open := false
	defer func() {
		if !open {
			p.file.Close()
		}
	}()
	if n, err := links(p.file); err != nil || n > 1 {
		return nil, cmp.Or(err, stranger(p.name, fmt.Sprintf("a file with %d names", n)))
	}
	if p.info, err = p.file.Stat(); err != nil {
		return nil, err
	}
	locking := lockShared
	if p.info.Size() != l.size {
		locking = lock
	}
	// Where there are no locks, nothing stands in the way of several that do the same.
	if err := locking(p.file); errors.Is(err, errLocked) {
		return nil, fault.Errorf(fault.Usage, "%s: %w", p.name, errLocked)
	}
	if still, err := refers(p.name, p.file); !still {
		return nil, err
	}
	if p.info.Size() == l.size {
		open = true
		return p, nil
	}
	if err := reserve(p.file, l.size); err != nil {
		return nil, fmt.Errorf("%s: reserving %d bytes: %w", l.path, l.size, err)
	}
	return nil, p.file.Truncate(l.size)
}

// openPart opens the journal of a part, or makes it, and reads which rows are done.
func (o *output) openPart(ctx context.Context, name string, head []byte, data bool) error {
	f, err := leftover(name, name)
	if errors.Is(err, errLocked) { // by a process that may be gone soon: no kind of error, so that it is tried again
		return fmt.Errorf("%s: %w", name, errLocked)
	}
	if err != nil {
		return err
	}
	torn := f == nil
	if f == nil {
		if f, err = exclusive(name, name); err != nil {
			return err
		}
	}
	o.log = &rowLog{file: f, name: name, data: data}
	if !torn {
		var found []byte
		if found, torn, err = readHead(f); err != nil {
			return err
		}
		if !torn {
			if err := sameRun(name, found, head); err != nil {
				return err
			}
			return o.readLog(ctx, int64(len(head)))
		}
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return o.log.begin(head, o.parts)
}

// openApart opens the file that a part has for itself, and goes on from what is there.
func (o *output) openApart(ctx context.Context, facts []Fact, opt Options) error {
	j := opt.Journal
	name, head := o.partFile(j.PartDir, j.Part, j.Parts), o.head(inParts(facts, j.Parts))
	f, err := statefile.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return o.openPart(ctx, name+Suffix, head, true)
	}
	if err != nil {
		return err
	}
	found, _, err := readHead(f)
	f.Close()
	if err != nil {
		return err
	}
	if err := sameRun(name, found, head); err != nil {
		return err
	}
	// read as one that is not whole: rows that are missing or damaged are made again
	if err := renameNew(name, name+Suffix); err != nil {
		return err
	}
	return o.openPart(ctx, name+Suffix, head, true)
}

// endPart makes what a part has written durable.
func (o *output) endPart() error {
	if err := o.log.file.Sync(); err != nil {
		return err
	}
	if !o.log.data {
		return nil
	}
	final := o.log.name[:len(o.log.name)-len(Suffix)]
	if err := renameNew(o.log.name, final); err != nil {
		return err
	}
	return syncDir(filepath.Dir(final))
}
