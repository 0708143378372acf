package writer

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"ggforge/fault"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/statefile"
)

// Leftover describes the files of one output that an interrupted run has left in a directory.
type Leftover struct {
	Kind   LeftoverKind
	Output string   // its name, that of the first shard; of a commit that of the journal
	Files  []string // paths, the journal last
	Bytes  int64    // sum of their sizes
	Blocks int64    // of rows that journals list
	// Modified is when one of the files was written last.
	Modified time.Time
	// Busy: a process has one of them locked.
	Busy bool
	// Stays is the reason why Remove refuses a commit; "" if none is known.
	Stays string
}

// LeftoverKind is a kind of Leftover.
type LeftoverKind string

// The kinds.
const (
	LeftRun     LeftoverKind = "run"     // temporary files and their journal, which Journal.Resume continues
	LeftParts   LeftoverKind = "parts"   // of a run in parts, in shared files
	LeftPart    LeftoverKind = "part"    // of a run in parts, in a file of its own
	LeftBlocks  LeftoverKind = "blocks"  // of a calibration
	LeftCommit  LeftoverKind = "commit"  // an interrupted change of names
	LeftShare   LeftoverKind = "share"   // the results of one process of a job, in a file that Foreign knows
	LeftOld     LeftoverKind = "old"     // the second name of a file that was being replaced
	LeftUnknown LeftoverKind = "unknown" // a file with a temporary name without a journal: perhaps another program's
)

// blocksSuffix follows the temporary name in the name of a calibration state file.
const blocksSuffix = ".blocks"

var (
	partLogName = regexp.MustCompile(`^(.*)\.partial\.[0-9]{1,6}-of-[0-9]{1,6}\.rows$`)
	runName     = regexp.MustCompile(`^(.*)\.partial\.run\.[0-9]+$`) // before it has its name
	blocksName  = regexp.MustCompile(`^(.*)\.partial\.blocks(\.[0-9]{1,6})?$`)
	normsName   = regexp.MustCompile(`^(.*)\.partial\.norms(\.[0-9]{1,6})?$`)
)

// BlocksMagic begins calibration state files.
const BlocksMagic = "ggfblk03"

// BlocksName returns the name of the calibration state file of an output.
func BlocksName(path string) string { return path + Suffix + blocksSuffix }

// NormsMagic begins the state files of tuned norms.
const NormsMagic = "ggforge state norms 1\n"

// NormsName returns the name of the state file for the norms of output i of a run whose first output is at path.
func NormsName(path string, i int) string {
	if path += Suffix + ".norms"; i > 0 {
		path += fmt.Sprintf(".%d", i+1)
	}
	return path
}

// Foreign reports whether a file that is in no journal was made by another package, as a LeftShare, and for which
// output.
type Foreign func(path string) (output string, ours bool)

// Leftovers returns the leftovers in a directory, by the names of outputs. Files of running processes are among them,
// as Busy. foreign may be nil.
func Leftovers(dir string, foreign Foreign) ([]Leftover, error) {
	entries, err := disk.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	r := leftoverScan{dir: dir, free: map[string]bool{}}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
			r.free[e.Name()] = true
		}
	}
	var journals []func()
	for _, name := range names { // journals list their files
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
		j, ours := readJournalInfo(filepath.Join(dir, name))
		if !ours {
			continue
		}
		l := r.at(kind, output)
		l.Blocks += j.blocks
		for i, file := range j.files {
			// The journal may come from elsewhere: a file whose name it has belongs to its run only if the ID is the
			// same.
			if i < len(j.ids) && file == filepath.Base(file) && r.free[file+Suffix] {
				if id, err := fileNumber(filepath.Join(dir, file+Suffix)); err == nil && id == j.ids[i] {
					r.add(l, file+Suffix)
				}
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
			kind, stays := commitAt(dir, name).left()
			l := r.at(kind, name)
			l.Stays = stays
			r.add(l, name)
		case partFileName.MatchString(whole):
			if _, ours := readJournalInfo(filepath.Join(dir, name)); ours {
				r.add(r.at(LeftPart, whole), name)
			}
		case strings.HasSuffix(name, Suffix+asideSuffix):
			r.add(r.at(LeftOld, strings.TrimSuffix(name, Suffix+asideSuffix)), name)
		case blocksName.MatchString(name) && hasMagic(filepath.Join(dir, name), BlocksMagic):
			r.add(r.at(LeftBlocks, blocksName.FindStringSubmatch(name)[1]), name)
		case normsName.MatchString(name) && hasMagic(filepath.Join(dir, name), NormsMagic):
			r.add(r.at(LeftBlocks, normsName.FindStringSubmatch(name)[1]), name)
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

// leftoverScan collects the leftovers of a directory.
type leftoverScan struct {
	dir  string
	free map[string]bool // regular files, by name, that belong to no leftover yet
	list []*Leftover
}

// at returns the leftover of a kind and an output.
func (r *leftoverScan) at(kind LeftoverKind, output string) *Leftover {
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
func (r *leftoverScan) add(l *Leftover, name string) {
	if r.free[name] {
		delete(r.free, name)
		l.Files = append(l.Files, filepath.Join(r.dir, name))
	}
}

// found is the content of a journal.
type found struct {
	files  []string // of the set, in order
	ids    []uint64 // of their temporary files
	blocks int64    // number of records of rows that fit after the head
}

// hasMagic reports whether a file of the user begins with magic, or has only the beginning of it.
func hasMagic(name, magic string) bool {
	f, err := statefile.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	begin := make([]byte, len(magic))
	n, err := f.ReadAt(begin, 0)
	return (err == nil || errors.Is(err, io.EOF)) && strings.HasPrefix(magic, string(begin[:n]))
}

// readJournalInfo reads the head and the file records of a journal. ours reports whether the file is one.
func readJournalInfo(name string) (j found, ours bool) {
	if !hasMagic(name, journalMagic) {
		return j, false
	}
	f, err := statefile.Open(name)
	if err != nil {
		return j, false
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return j, false
	}
	head, torn, err := readHead(f)
	if err != nil || torn {
		return j, err == nil
	}
	facts, err := parseHead(head)
	if err != nil {
		return j, false
	}
	for _, f := range facts {
		if file, ok := strings.CutPrefix(f.Name, layoutFact); ok {
			j.files = append(j.files, file)
		}
	}
	at := int64(len(head))
	for range j.files {
		var r [recordBytes]byte
		if n, _ := f.ReadAt(r[:], at); n < len(r) || !validRecord(r[:]) ||
			binary.LittleEndian.Uint32(r[4:]) != fileRecord ||
			int(binary.LittleEndian.Uint32(r[:])) != len(j.ids) {
			break
		}
		j.ids = append(j.ids, binary.LittleEndian.Uint64(r[8:]))
		at += recordBytes
	}
	j.blocks = (st.Size() - at) / recordBytes
	return j, true
}

// look sets sizes, times and Busy.
func (l *Leftover) look() {
	for _, name := range l.Files {
		if st, err := disk.Lstat(name); err == nil { // also of a file that only others may open
			l.Bytes += st.Size()
			if st.ModTime().After(l.Modified) {
				l.Modified = st.ModTime()
			}
		}
		l.Busy = l.Busy || Locked(name)
		if l.Kind == LeftOld { // the run has the new file locked, under the one name or the other
			temp := strings.TrimSuffix(name, asideSuffix)
			l.Busy = l.Busy || Locked(temp) || Locked(strings.TrimSuffix(temp, Suffix))
		}
	}
}

// Remove removes the files, the journal last. A commit is completed or rolled back instead: no output is lost. Locked
// files, LeftUnknown, a commit with Stays, and LeftOld without its output are errors of kind fault.Usage.
func (l *Leftover) Remove() error {
	switch l.Kind {
	case LeftUnknown:
		return fault.Errorf(fault.Usage, "%s: has no journal: it may belong to another program", l.Files[0])
	case LeftCommit:
		c := commitAt(filepath.Dir(l.Files[0]), l.Output)
		if err := c.recover(func(*commitFile) bool { return true }); err != nil {
			return fmt.Errorf("%s: recovery of an interrupted change of names: %w", c.path(), err)
		}
		// recover skips files that are not the user's
		if _, err := disk.Lstat(l.Files[0]); !errors.Is(err, fs.ErrNotExist) {
			return fault.Errorf(fault.Usage, "%s: not a journal of a run of yours: it stays", l.Files[0])
		}
		return nil
	}
	var open []*disk.File
	if l.Kind == LeftOld {
		output := filepath.Join(filepath.Dir(l.Files[0]), l.Output)
		if st, err := disk.Lstat(output); err != nil || !st.Mode().IsRegular() {
			return fault.Errorf(fault.Usage, "%s: is the former %s, which does not exist now: rename it back",
				l.Files[0], output)
		}
		return removeLeftover(l.Files[0], output)
	}
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
		if err := removeLocked(f.Name(), f); err != nil {
			return err
		}
	}
	return nil
}
