package writer

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"ggforge/internal/io/disk"
	"ggforge/internal/io/statefile"
)

// commit renames the files of one directory to their final names, all or none. A journal on the disk lists the renames
// before the first one:
//
//	1  all files are complete and on disk under their temporary names
//	2  the journal is written and synced: from here on recovery completes the commit
//	3  old files with the final names are moved aside, leaders first
//	4  the new files are renamed, leaders last
//	5  the directory is synced, and the journal is renamed from .commit to .done
//	6  the old files are removed, then the journal
//
// The final names have old files until 3, some of the old or some of the new ones during 3 and 4, and new files after
// it: never a mix of both. A failure before 6 is rolled back in reverse order. If the process is killed, the next run
// that writes a file of the journal recovers: the names that exist show how far the commit came. A journal that was
// copied from elsewhere is refused: the files that it lists have other IDs.
type commit struct {
	Files []commitFile `json:"files"`

	dir   string
	done  bool                // in step 6
	token string              // in the names of the journal and of the files aside
	file  *disk.File          // the journal, locked
	step  func(string) error  // called before each step; nil but in tests
	parts map[string]*partial // by name; nil in recovery
}

// commitFile is a file of a commit; it comes from Name with Suffix.
type commitFile struct {
	Name     string `json:"name"`
	Size     int64  `json:"size"`
	ID       string `json:"id,omitempty"`       // of the new file: see fileID
	Leader   bool   `json:"leader,omitempty"`   // readers open its set by this file
	Replaces string `json:"replaces,omitempty"` // the ID of the old file of that name
}

const (
	// formerCommit begins journals of the previous version.
	formerCommit = `{"format":"ggforge commit 2"`
	// maxCommit bounds the journals that are read: 300 bytes for each of the shards
	// that a name can count.
	maxCommit = 32 << 20
)

// commitKind describes journals. They belong to the files whose IDs they have.
var commitKind = statefile.Kind{Name: "of a change of names", Version: 3, Max: maxCommit}

var commitName = regexp.MustCompile(`^ggforge-([0-9a-f]{16})\.(commit|done)$`)

// commitAt returns the commit whose journal has a name of the form commitName.
func commitAt(dir, name string) *commit {
	m := commitName.FindStringSubmatch(name)
	return &commit{dir: dir, token: m[1], done: m[2] == "done"}
}

// path returns the name of the journal.
func (c *commit) path() string {
	suffix := ".commit"
	if c.done {
		suffix = ".done"
	}
	return filepath.Join(c.dir, "ggforge-"+c.token+suffix)
}

func (c *commit) final(f *commitFile) string { return filepath.Join(c.dir, f.Name) }
func (c *commit) temp(f *commitFile) string  { return c.final(f) + Suffix }

// aside returns where the old file goes. Its name is short: that of the file may
// be as long as the system allows.
func (c *commit) aside(i int) string {
	return filepath.Join(c.dir, fmt.Sprintf("ggforge-%s-%d.old", c.token, i))
}

func (c *commit) at(format string, args ...any) error {
	if c.step == nil {
		return nil
	}
	return c.step(fmt.Sprintf(format, args...))
}

// commitAll gives all files of all outputs their names, or none.
func commitAll(outputs []*output, opt Options) error {
	var parts []*partial
	leaders := map[*partial]bool{}
	for _, o := range outputs {
		parts = append(parts, o.parts...)
		leaders[o.parts[o.leader]] = true
	}
	for _, p := range parts {
		if err := checkFinal(p.final, opt.Force); err != nil { // it may have appeared meanwhile
			return err
		}
	}
	if len(parts) == 1 {
		return commitOne(parts[0], opt)
	}
	var commits []*commit
	byDir := map[string]*commit{}
	for _, p := range parts {
		dir := filepath.Dir(p.final)
		c := byDir[dir]
		if c == nil {
			c = &commit{dir: dir, step: opt.step, parts: map[string]*partial{}}
			byDir[dir] = c
			commits = append(commits, c)
		}
		id, err := fileID(p.name)
		if err != nil {
			return err
		}
		old, err := fileID(p.final)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		name := filepath.Base(p.final)
		c.Files = append(c.Files, commitFile{Name: name, Size: p.size, ID: id, Leader: leaders[p], Replaces: old})
		c.parts[name] = p
	}
	undo := func(started []*commit, err error) error {
		for _, c := range slices.Backward(started) {
			err = errors.Join(err, c.back())
		}
		return err
	}
	for i, c := range commits {
		if err := c.begin(); err != nil {
			return undo(commits[:i+1], err)
		}
	}
	for _, p := range parts {
		dropTemporary(p.name)
	}
	for _, c := range commits {
		dropTemporary(c.path())
	}
	for _, c := range commits {
		if err := c.forward(); err != nil {
			return undo(commits, err)
		}
	}
	for i, c := range commits {
		if err := c.finish(); err != nil {
			if i > 0 { // some are beyond undoing: the next run finishes the others
				keepAll(parts)
				for _, c := range commits {
					c.file.Close()
				}
				return err
			}
			return undo(commits, err)
		}
	}
	keepAll(parts)
	var errs []error
	for _, c := range commits {
		errs = append(errs, c.sweep())
	}
	return errors.Join(errs...)
}

// keepAll makes discard keep the files.
func keepAll(parts []*partial) {
	for _, p := range parts {
		p.kept = true
	}
}

// asideSuffix follows the temporary name of the new file in the second name of a file that is being replaced.
const asideSuffix = ".old"

// begin writes the journal.
func (c *commit) begin() error {
	var token [8]byte
	rand.Read(token[:])
	c.token = hex.EncodeToString(token[:])
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := c.at("make journal"); err != nil {
		return err
	}
	if c.file, err = exclusive(c.path(), c.path()); err != nil {
		return err
	}
	addTemporary(c.path(), false)
	if err := c.at("write journal"); err != nil {
		return err
	}
	if _, err := commitKind.File("", int64(len(text)), bytes.NewReader(text)).WriteTo(c.file); err != nil {
		return err
	}
	if err := c.at("sync journal"); err != nil {
		return err
	}
	if err := c.file.Sync(); err != nil {
		return err
	}
	if err := c.at("sync journal's name"); err != nil {
		return err
	}
	return syncDir(c.dir)
}

// state is the set of names of a file that exist.
type state struct{ temp, final, aside bool }

// look returns the state of file i. A rename that was made of two links, and cut
// short between them, is finished or taken back.
func (c *commit) look(i int) (s state, err error) {
	f := &c.Files[i]
	stat := func(path string) fs.FileInfo {
		st, e := disk.Lstat(path)
		if e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = e
		}
		if e != nil {
			return nil
		}
		return st
	}
	temp, final, aside := stat(c.temp(f)), stat(c.final(f)), stat(c.aside(i))
	if err != nil {
		return s, err
	}
	if temp != nil && (!temp.Mode().IsRegular() || temp.Size() != f.Size) {
		temp = nil // not the file that the journal means
	}
	same := func(extra fs.FileInfo, path, id string) bool {
		if extra == nil || final == nil || !os.SameFile(extra, final) {
			return false
		}
		var found string
		if found, err = fileID(path); err != nil || found != id {
			return false
		}
		err = disk.Remove(path)
		return true
	}
	if same(temp, c.temp(f), f.ID) {
		temp = nil
	} else if same(aside, c.aside(i), f.Replaces) {
		aside = nil
	}
	return state{temp != nil, final != nil, aside != nil}, err
}

// placed reports whether the new file has its name.
func (s state) placed(f *commitFile) bool {
	return !s.temp && s.final && (s.aside || f.Replaces == "")
}

// order calls do for each file with its state, leaders first or last.
func (c *commit) order(leadersFirst bool, do func(i int, s state) error) error {
	for _, leaders := range []bool{leadersFirst, !leadersFirst} {
		for i := range c.Files {
			if c.Files[i].Leader != leaders {
				continue
			}
			s, err := c.look(i)
			if err != nil {
				return err
			}
			if err := do(i, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// forward moves the old files away and the new ones in, from whatever step on.
func (c *commit) forward() error {
	err := c.order(true, func(i int, s state) error {
		f := &c.Files[i]
		if !s.temp || !s.final || f.Replaces == "" || s.aside {
			return nil
		}
		if err := c.at("move old %s aside", f.Name); err != nil {
			return err
		}
		return replaceError(c.final(f), renameNew(c.final(f), c.aside(i)))
	})
	if err != nil {
		return err
	}
	return c.order(false, func(i int, s state) error {
		f := &c.Files[i]
		if !s.temp {
			return nil
		}
		if err := c.at("rename %s", f.Name); err != nil {
			return err
		}
		err := renameNew(c.temp(f), c.final(f))
		if errors.Is(err, fs.ErrExist) {
			return existsError(c.final(f))
		}
		return err
	})
}

// finish makes the names durable: a commit that is done is not undone.
func (c *commit) finish() error {
	if err := c.at("sync directory"); err != nil {
		return err
	}
	if err := syncDir(c.dir); err != nil {
		return err
	}
	if err := c.at("mark journal"); err != nil {
		return err
	}
	from := c.path()
	c.done = true
	err := renameNew(from, c.path())
	c.done = err == nil
	return err
}

// sweep removes the files that have been moved aside, and the journal.
func (c *commit) sweep() error {
	defer c.file.Close() // and with it the lock
	for i := range c.Files {
		f := &c.Files[i]
		if f.Replaces == "" {
			continue
		}
		if err := c.at("remove old %s", f.Name); err != nil {
			return err
		}
		if id, err := fileID(c.aside(i)); errors.Is(err, fs.ErrNotExist) || err == nil && id != f.Replaces {
			continue
		}
		if err := disk.Remove(c.aside(i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return c.close()
}

// close removes the journal.
func (c *commit) close() error {
	if c.file == nil {
		return nil
	}
	if err := c.at("remove journal"); err != nil {
		return err
	}
	dropTemporary(c.path())
	return removeLocked(c.path(), c.file)
}

// back rolls a commit back: the new files get their temporary names again, the old ones their final names. If that
// fails, all files and the journal stay for the next run.
func (c *commit) back() error {
	err := c.order(true, func(i int, s state) error {
		f := &c.Files[i]
		if !s.placed(f) {
			return nil
		}
		if err := c.at("take %s back", f.Name); err != nil {
			return err
		}
		return renameNew(c.final(f), c.temp(f))
	})
	if err == nil {
		err = c.order(false, func(i int, s state) error {
			f := &c.Files[i]
			if !s.aside {
				return nil
			}
			if err := c.at("move old %s back", f.Name); err != nil {
				return err
			}
			return renameNew(c.aside(i), c.final(f))
		})
	}
	if err == nil {
		err = syncDir(c.dir)
	}
	if err == nil {
		err = c.close()
	}
	if err == nil {
		return nil
	}
	for _, p := range c.parts {
		p.kept = true
	}
	if c.file != nil {
		c.file.Close()
	}
	return fmt.Errorf("%s: the next run that writes these files recovers it: %w", c.path(), err)
}
