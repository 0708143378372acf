package writer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"

	"ggforge/fault"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/statefile"
)

// openForFinish opens the files that parts have written, and reads from their journals the rows that are done.
func (o *output) openForFinish(ctx context.Context, open *handles, facts []Fact, opt Options) error {
	j := opt.Journal
	f, err := statefile.Open(o.runName())
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Errorf(fault.Incomplete, "%s: no such file: no part has begun", o.runName())
	}
	if err != nil {
		return err
	}
	found, _, err := readHead(f)
	f.Close()
	if err != nil {
		return err
	}
	had, err := parseHead(found)
	if err != nil {
		return fmt.Errorf("%s: %w", o.runName(), err)
	}
	if err := j.countParts(o.runName(), had); err != nil {
		return err
	}
	head := o.head(withParts(facts, j.Parts))
	if err := sameRun(o.runName(), found, head); err != nil {
		return err
	}
	for i := range o.files {
		l := &o.files[i]
		p := &partial{name: l.path + Suffix, final: l.path, size: l.size, kept: true}
		if p.file, err = leftover(p.name, p.final); errors.Is(err, errLocked) {
			return fault.Errorf(fault.Incomplete, "%s: %w", p.name, errLocked)
		} else if err != nil {
			return err
		}
		if p.file == nil {
			return fault.Errorf(fault.Incomplete, "%s: no such file: no part has begun it", p.name)
		}
		o.parts[i] = p
		if p.info, err = p.file.Stat(); err != nil {
			return err
		}
		if p.info.Size() != l.size {
			return fault.Errorf(fault.Incomplete, "%s: has %d bytes, want %d", p.name, p.info.Size(), l.size)
		}
		if _, err := p.WriteAt(l.header(), 0); err != nil {
			return err
		}
		if i != o.leader {
			if err := open.add(p); err != nil {
				return err
			}
		}
	}
	for k := 1; k <= j.Parts; k++ {
		f, err := leftover(o.partLog(k, j.Parts), o.partLog(k, j.Parts))
		if errors.Is(err, errLocked) {
			err = fault.Errorf(fault.Incomplete, "%s: %w", o.partLog(k, j.Parts), errLocked)
		}
		if err != nil {
			return err
		}
		if f != nil {
			o.partLogs = append(o.partLogs, &rowLog{file: f, name: o.partLog(k, j.Parts)})
		}
	}
	return o.readLogs(ctx, o.partLogs, head, opt)
}

// copyParts copies missing rows into the set's temporary files from the parts in files of their own.
func (o *output) copyParts(ctx context.Context, facts []Fact, opt Options) error {
	j := opt.Journal
	list, err := disk.ReadDir(j.PartDir)
	if err != nil {
		return err
	}
	base := filepath.Base(o.files[o.leader].path)
	for _, e := range list {
		m := partFileName.FindStringSubmatch(e.Name())
		if m == nil || m[1] != base {
			continue
		}
		if err := j.countParts(filepath.Join(j.PartDir, e.Name()), []Fact{{partsFact, m[3]}}); err != nil {
			return err
		}
	}
	if j.Parts == 0 {
		return fault.Errorf(fault.Incomplete, "%s: contains no part of %s", j.PartDir, base)
	}
	head := o.head(withParts(facts, j.Parts))
	for k := 1; k <= j.Parts; k++ {
		name := o.partFile(j.PartDir, k, j.Parts)
		f, err := statefile.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		o.partLogs = append(o.partLogs, &rowLog{file: f, name: name, data: true})
	}
	return o.readLogs(ctx, o.partLogs, head, opt)
}

var partFileName = regexp.MustCompile(`^(.*)\.part-([0-9]{1,6})-of-([0-9]{1,6})$`)

// countParts sets j.Parts, if it is 0, by the facts of one part; any other number is an error.
func (j *Journal) countParts(name string, facts []Fact) error {
	i := slices.IndexFunc(facts, func(f Fact) bool { return f.Name == partsFact })
	n := 0
	if i >= 0 {
		n, _ = strconv.Atoi(facts[i].Value)
	}
	if n < 1 || n > maxParts {
		return fault.Errorf(fault.Broken, "%s: no number of parts, want 1 to %d", name, maxParts)
	}
	if j.Parts == 0 {
		j.Parts = n
	}
	if j.Parts != n {
		return fault.Errorf(fault.Refused, "%s: belongs to a run of %d parts, want %d", name, n, j.Parts)
	}
	return nil
}

// readLogs reads logs side by side and notes the rows that they have.
func (o *output) readLogs(ctx context.Context, logs []*rowLog, head []byte, opt Options) error {
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(opt.workers())
	for _, log := range logs {
		g.Go(func() error {
			found, torn, err := readHead(log.file)
			if err != nil || torn {
				return err
			}
			if err := sameRun(log.name, found, head); err != nil {
				return err
			}
			_, err = o.scan(ctx, log, int64(len(head)), func(t *placed, s span, data []byte) error {
				if log.data {
					if err := t.put(s, data); err != nil {
						return err
					}
				}
				mu.Lock()
				defer mu.Unlock()
				t.done = append(t.done, s)
				return nil
			})
			return err
		})
	}
	return g.Wait()
}

// complete counts the rows that parts have written. If rows are missing, the error is of kind fault.Incomplete and
// names their parts.
func (p *pool) complete(o *Journal, started func(int)) error {
	ends := p.ends(o.Parts)
	lacks := map[int]bool{}
	for i, j := range p.jobs {
		started(i)
		done := j.done()
		p.skip(j, done)
		for _, s := range j.missing(done) {
			for k := 1; k <= o.Parts; k++ {
				if max(s.a, ends(k-1, i)) < min(s.b, ends(k, i)) {
					lacks[k] = true
				}
			}
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	var list []string
	for k := 1; k <= o.Parts; k++ {
		if lacks[k] {
			list = append(list, strconv.Itoa(k))
		}
	}
	return fault.Errorf(fault.Incomplete, "%s: %d of %d parts are incomplete, run them again: %s",
		p.files[0], len(list),
		o.Parts, fault.List(list))
}

// dropParts removes the journals of parts, after the commit.
func (o *output) dropParts() error {
	var errs []error
	for _, log := range o.partLogs {
		log.close(true)
	}
	o.partLogs = nil
	if err := disk.Remove(o.runName()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
