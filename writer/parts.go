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
// (Journal.Part). The layout fixes the offset of each row, so the processes need not communicate.
// With a shared file system they write to the same temporary files:
//
//	OUT.partial                 the file, created by the first part, with the header
//	OUT.partial.run             the facts of the run: the head of a journal
//	OUT.partial.K-of-N.rows     the journal of part K: the rows that it has written
//
// and the process that finishes (Journal.Finish) compares all rows with the journals. Without a shared file system a
// part is a file of its own in Journal.PartDir, under a temporary name until it is complete:
//
//	NAME.part-K-of-N            a journal in which rows follow their records
//
// and the process that finishes copies the rows of all of them. A part is locked while it is written; the files
// that several parts share have a shared lock, and an exclusive one while they are finished.
const (
	// runSuffix follows the temporary name of the set's leader in the name of the file with the facts of a run in
	// parts.
	runSuffix = ".run"
	partMark  = ".part-"
)

// partsFact is the name of the fact with the number of parts.
const partsFact = "parts"

// maxParts bounds the number of parts.
const maxParts = 100_000

// share sets the rows of part k of n. Parts are consecutive in the order of the tensors, and equal in work. Their
// bounds depend on the plan alone and are the same on every machine.
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

// withParts returns the facts of a run in n parts.
func withParts(facts []Fact, n int) []Fact {
	return append(slices.Clip(facts), Fact{partsFact, strconv.Itoa(n)})
}

// runName returns the name of the file with the facts of a run in parts.
func (s *set) runName() string { return s.files[s.leader].path + Suffix + runSuffix }

// partLog returns the name of the journal of part k of n.
func (s *set) partLog(k, n int) string {
	return s.files[s.leader].path + Suffix + "." + partName(k, n) + progressSuffix
}

// partFile returns the name of the file of part k of n in a directory.
func (s *set) partFile(dir string, k, n int) string {
	return filepath.Join(dir, filepath.Base(s.files[s.leader].path)+partMark+partName(k, n))
}

// refuseParts returns an error if run, a runName, exists: a write that is not in parts may not start then.
func refuseParts(run string) error {
	if _, err := disk.Lstat(run); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return fault.Errorf(fault.Usage,
		"%s: an unfinished run in parts exists: put its parts together, or remove it with 'ggtool clean'", run)
}

// openForPart opens the files that all parts of a run write to, creates the missing ones, and resumes the part from its
// journal.
func (o *output) openForPart(ctx context.Context, open *handles, facts []Fact, opt Options) error {
	j := opt.Journal
	head := o.head(withParts(facts, j.Parts))
	leader := o.files[o.leader].path
	for i := range o.files { // before anything is made
		if err := checkFinal(o.files[i].path, opt.Force); err != nil {
			return err
		}
	}
	if _, err := disk.Lstat(o.runName()); errors.Is(err, fs.ErrNotExist) {
		if _, err := disk.Lstat(leader + Suffix); err == nil {
			if _, err := disk.Lstat(o.runName()); errors.Is(err, fs.ErrNotExist) { // still
				return fault.Errorf(fault.Usage, "%s: belongs to an interrupted run that was not in parts; remove it",
					leader+Suffix)
			}
		}
	}
	if err := claimRun(o.runName(), head); err != nil {
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

// claimRun creates the file name with head, or compares its head if it exists.
func claimRun(name string, head []byte) error {
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
	return fault.Errorf(fault.Usage, "%s: other processes keep creating and removing this file; run this part again",
		name)
}

// sharedWait is how long a part waits for another one that creates a file or finishes the run.
const sharedWait = time.Minute

// openShared opens or creates the temporary file of l with a shared lock.
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

// tryShared is one attempt of openShared. It returns nil, nil when it has created the file.
func tryShared(l *layout) (_ *partial, err error) {
	p := &partial{name: l.path + Suffix, final: l.path, size: l.size, kept: true}
	st, err := disk.Lstat(p.name)
	if err == nil && !st.Mode().IsRegular() {
		return nil, notLeftover(p.name, kindOf(st.Mode()))
	}
	if err == nil && !disk.Own(p.name, st) {
		return nil, notLeftover(p.name, "a file of another user")
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
		return nil, cmp.Or(err, notLeftover(p.name, fmt.Sprintf("a file with %d names", n)))
	}
	if p.info, err = p.file.Stat(); err != nil {
		return nil, err
	}
	locking := lockShared
	if p.info.Size() != l.size {
		locking = lock
	}
	// Without locks, several processes may do the same at once: they write the same bytes.
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

// openPart opens or creates the journal of a part, and reads the rows that are done.
func (o *output) openPart(ctx context.Context, name string, head []byte, data bool) error {
	f, err := leftover(name, name)
	if errors.Is(err, errLocked) { // perhaps for a moment only: an error without kind, so that callers try again
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

// openOwnFile opens the part's own file, and resumes from the rows in it.
func (o *output) openOwnFile(ctx context.Context, facts []Fact, opt Options) error {
	j := opt.Journal
	name, head := o.partFile(j.PartDir, j.Part, j.Parts), o.head(withParts(facts, j.Parts))
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
	// reopened as an incomplete part: missing or damaged rows are written again
	if err := renameNew(name, name+Suffix); err != nil {
		return err
	}
	return o.openPart(ctx, name+Suffix, head, true)
}

// endPart makes the rows of a part durable.
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
