package writer

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"ggforge/fault"
	"ggforge/internal/disk"
)

// Leftover is what a run that has not come to its end has left of one output in a directory.
type Leftover struct {
	Kind   LeftoverKind
	Output string   // its name, that of the first shard; of a commit that of the journal
	Files  []string // paths, the journal last
	Bytes  int64    // that they take on the disk, as far as files say
	Blocks int64    // of rows that journals list
	// Modified is when one of the files was written last.
	Modified time.Time
	// Busy says that a process has one of them locked.
	Busy bool
}

// LeftoverKind is a kind of Leftover.
type LeftoverKind string

// The kinds.
const (
	LeftRun     LeftoverKind = "run"     // temporary files and their journal: Journal.Resume goes on
	LeftParts   LeftoverKind = "parts"   // of a run in parts, in files that they share
	LeftPart    LeftoverKind = "part"    // of a run in parts, in a file of its own
	LeftBlocks  LeftoverKind = "blocks"  // of a calibration
	LeftCommit  LeftoverKind = "commit"  // a change of names that was cut short
	LeftShare   LeftoverKind = "share"   // what one process found of a job, in a file that Foreign knows
	LeftUnknown LeftoverKind = "unknown" // a file of such a name without a journal: perhaps another program's
)

// blocksSuffix is what the state of a calibration has after a temporary name.
const blocksSuffix = ".blocks"

var (
	partLogName = regexp.MustCompile(`^(.*)\.partial\.[0-9]{1,6}-of-[0-9]{1,6}\.rows$`)
	runName     = regexp.MustCompile(`^(.*)\.partial\.run\.[0-9]+$`) // before it has its name
	blocksName  = regexp.MustCompile(`^(.*)\.partial\.blocks(\.[0-9]{1,6})?$`)
)

// BlocksName returns where the state of a calibration for an output is kept.
func BlocksName(path string) string { return path + Suffix + blocksSuffix }

// Foreign reports whether a file that no journal knows is one that some other package makes, as
// LeftShare, and of which output.
type Foreign func(path string) (output string, ours bool)

// Leftovers returns what runs have left in a directory, by the names of outputs. Files of runs that go on now
// are among them, as Busy. foreign may be nil.
func Leftovers(dir string, foreign Foreign) ([]Leftover, error) {
	entries, err := disk.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	r := remains{dir: dir, free: map[string]bool{}}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
			r.free[e.Name()] = true
		}
	}
	var journals []func()
	for _, name := range names { // journals say which files are theirs
		kind := LeftRun
		output, ok := strings.CutSuffix(name, Suffix+progressSuffix)
		if !ok {
			kind = LeftParts
			output, ok = strings.CutSuffix(name, Suffix+runSuffix)
		}
		for _, pattern := range []*regexp.Regexp{partLogName, runName} {
			if m := pattern.FindStringSubmatch(name); m != nil {
				kind, output, ok = LeftParts, m[1], true
			}
		}
		if !ok {
			continue
		}
		facts, blocks, ours := lookInto(filepath.Join(dir, name))
		if !ours {
			continue
		}
		l := r.at(kind, output)
		l.Blocks += blocks
		for _, f := range facts {
			if file, ok := strings.CutPrefix(f.Name, "layout of "); ok && file == filepath.Base(file) {
				r.add(l, file+Suffix)
			}
		}
		journals = append(journals, func() { r.add(l, name) }) // after its files
	}
	for _, add := range journals {
		add()
	}
	for _, name := range names {
		whole := strings.TrimSuffix(name, Suffix)
		switch {
		case !r.free[name]:
		case commitName.MatchString(name):
			r.add(r.at(LeftCommit, name), name)
		case partFileName.MatchString(whole):
			if _, _, ours := lookInto(filepath.Join(dir, name)); ours {
				r.add(r.at(LeftPart, whole), name)
			}
		case blocksName.MatchString(name):
			r.add(r.at(LeftBlocks, blocksName.FindStringSubmatch(name)[1]), name)
		}
		if foreign != nil && r.free[name] {
			if output, ours := foreign(filepath.Join(dir, name)); ours {
				r.add(r.at(LeftShare, output), name)
			}
		}
	}
	for _, name := range names {
		if output, ok := strings.CutSuffix(name, Suffix); ok && r.free[name] {
			r.add(r.at(LeftUnknown, output), name)
		}
	}
	list := slices.DeleteFunc(r.list, func(l *Leftover) bool { return len(l.Files) == 0 })
	slices.SortFunc(list, func(a, b *Leftover) int {
		return cmp.Or(strings.Compare(a.Output, b.Output), strings.Compare(string(a.Kind), string(b.Kind)))
	})
	all := make([]Leftover, len(list))
	for i, l := range list {
		l.look()
		all[i] = *l
	}
	return all, nil
}

// remains are the leftovers of a directory.
type remains struct {
	dir  string
	free map[string]bool // regular files, by name, that belong to no leftover yet
	list []*Leftover
}

// at returns the leftover of a kind and an output.
func (r *remains) at(kind LeftoverKind, output string) *Leftover {
	for _, l := range r.list {
		if l.Kind == kind && l.Output == output {
			return l
		}
	}
	l := &Leftover{Kind: kind, Output: output}
	r.list = append(r.list, l)
	return l
}

// add adds a file to a leftover if it is there and belongs to no other.
func (r *remains) add(l *Leftover, name string) {
	if r.free[name] {
		delete(r.free, name)
		l.Files = append(l.Files, filepath.Join(r.dir, name))
	}
}

// lookInto reads the head of a journal, and how many records fit after it. ours says whether it is one.
func lookInto(name string) (facts []Fact, blocks int64, ours bool) {
	f, err := openRegular(name)
	if err != nil {
		return nil, 0, false
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, 0, false
	}
	begin := make([]byte, len(journalMagic))
	n, err := f.ReadAt(begin, 0)
	if err != nil && !errors.Is(err, io.EOF) || !strings.HasPrefix(journalMagic, string(begin[:n])) {
		return nil, 0, false
	}
	head, torn, err := readHead(f)
	if err != nil || torn {
		return nil, 0, err == nil
	}
	if facts, err = parseHead(head); err != nil {
		return nil, 0, false
	}
	return facts, (st.Size() - int64(len(head))) / recordBytes, true
}

// look finds out what the files are.
func (l *Leftover) look() {
	for _, name := range l.Files {
		f, err := openRegular(name)
		if err != nil {
			continue
		}
		if st, err := f.Stat(); err == nil {
			l.Bytes += st.Size()
			if st.ModTime().After(l.Modified) {
				l.Modified = st.ModTime()
			}
		}
		if errors.Is(lock(f), errLocked) {
			l.Busy = true
		}
		f.Close()
	}
}

// Remove removes the files, the journal last. A commit it finishes or takes back instead: no output is lost.
// Files that a process has locked, and those of LeftUnknown, are an error of kind fault.Usage.
func (l *Leftover) Remove() error {
	switch l.Kind {
	case LeftUnknown:
		return fault.Errorf(fault.Usage, "%s: has no journal: it may be of another program", l.Files[0])
	case LeftCommit:
		m := commitName.FindStringSubmatch(l.Output)
		c := &commit{dir: filepath.Dir(l.Files[0]), token: m[1], done: m[2] == "done"}
		if err := c.recover(func(*commitFile) bool { return true }); err != nil {
			return fmt.Errorf("%s: finishing what an interrupted run has begun: %w", c.path(), err)
		}
		return nil
	}
	var open []*disk.File
	defer func() {
		for _, f := range open {
			f.Close()
		}
	}()
	for _, name := range l.Files { // all of them, before the first one goes
		f, err := leftover(name, strings.TrimSuffix(name, Suffix))
		if err != nil {
			return err
		}
		if f != nil {
			open = append(open, f)
		}
	}
	for len(open) > 0 {
		f := open[0]
		open = open[1:]
		if err := removeHeld(f.Name(), f); err != nil {
			return err
		}
	}
	return nil
}
