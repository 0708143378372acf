package faulttest

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ggforge/internal/io/disk"
)

// power records the changes that a disk may lose when its power fails: of each file, any writes since its last sync,
// and parts of them; of names, the last changes since the last sync of their directory.
type power struct {
	root    string // of the files that may be lost
	removed string // where keepRemoved keeps files
	n       int
	files   []*volatile
	names   []naming
}

// volatile is a file with writes that are not on the disk.
type volatile struct {
	info    fs.FileInfo
	durable []byte
	pending []change
}

// change writes data at a byte, or with nil sets the size to at.
type change struct {
	at   int64
	data []byte
}

// naming is a change of names in a directory.
type naming struct {
	dir  string
	undo func()
}

func (p *power) of(f *os.File) (*volatile, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	for _, v := range p.files {
		if os.SameFile(v.info, info) {
			return v, nil
		}
	}
	data, err := io.ReadAll(io.NewSectionReader(f, 0, info.Size()))
	if err != nil {
		return nil, err
	}
	v := &volatile{info: info, durable: data}
	p.files = append(p.files, v)
	return v, nil
}

// keepRemoved keeps a file that is about to lose a name, and returns a function that gives the name back.
func (p *power) keepRemoved(path string) (back func()) {
	to := filepath.Join(p.removed, fmt.Sprint(p.n))
	p.n++
	if os.Link(path, to) != nil {
		return func() {}
	}
	return func() { os.Rename(to, path) }
}

// watch returns a function that makes a call, and notes which part of it could be lost.
func (p *power) watch(c disk.Call, do func(int) (int, error)) func(int) (int, error) {
	note := func(undo func()) { p.names = append(p.names, naming{filepath.Dir(c.Path), undo}) }
	return func(n int) (int, error) {
		switch c.Op {
		case disk.OpWrite, disk.OpTruncate:
			v, err := p.of(c.File)
			if err != nil {
				return 0, err
			}
			at := c.Off
			if at < 0 {
				if at, err = c.File.Seek(0, io.SeekCurrent); err != nil {
					return 0, err
				}
			}
			done, err := do(n)
			if err != nil {
				return done, err
			}
			w := change{at: at}
			if c.Op == disk.OpWrite {
				w.data = make([]byte, done)
				if _, err := c.File.ReadAt(w.data, at); err != nil && done > 0 {
					return done, err // the file is not open for reading
				}
			}
			v.pending = append(v.pending, w)
			return done, nil
		case disk.OpSync:
			if info, err := c.File.Stat(); err == nil && info.IsDir() {
				p.names = slices.DeleteFunc(p.names, func(n naming) bool { return n.dir == filepath.Clean(c.Path) })
			} else if v, err := p.of(c.File); err == nil {
				v.durable, v.pending = v.apply(v.pending), nil
			}
		case disk.OpOpen:
			if _, err := os.Lstat(c.Path); c.Flag&os.O_CREATE != 0 && err != nil {
				_, err := do(n)
				if err == nil {
					note(func() { os.Remove(c.Path) })
				}
				return 0, err
			}
		case disk.OpMkdir:
			_, err := do(n)
			if err == nil {
				note(func() { os.Remove(c.Path) })
			}
			return 0, err
		case disk.OpLink:
			_, err := do(n)
			if err == nil {
				note(func() { os.Remove(c.To) })
			}
			return 0, err
		case disk.OpRemove:
			if info, err := os.Lstat(c.Path); err == nil && info.Mode().IsRegular() {
				back := p.keepRemoved(c.Path)
				_, err := do(n)
				if err == nil {
					note(back)
				}
				return 0, err
			}
		case disk.OpRename:
			back := p.keepRemoved(c.To)
			_, err := do(n)
			if err == nil {
				note(func() { os.Rename(c.To, c.Path); back() })
			}
			return 0, err
		}
		return do(n)
	}
}

// apply returns the durable bytes after changes.
func (v *volatile) apply(changes []change) []byte {
	b := slices.Clone(v.durable)
	for _, c := range changes {
		end := int(c.at) + len(c.data)
		if len(b) < end {
			b = append(b, make([]byte, end-len(b))...)
		}
		if c.data == nil {
			b = b[:c.at]
		}
		copy(b[c.at:], c.data)
	}
	return b
}

// fail undoes a random part of the changes that a power failure may undo.
func (p *power) fail(t *testing.T, random rnd) {
	t.Helper()
	lost := 0
	if len(p.names) > 0 {
		lost = random.IntN(len(p.names) + 1)
	}
	for range lost {
		p.names[len(p.names)-1].undo()
		p.names = p.names[:len(p.names)-1]
	}
	err := filepath.WalkDir(p.root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		for _, v := range p.files {
			if !os.SameFile(v.info, info) || len(v.pending) == 0 {
				continue
			}
			var kept []change
			for _, c := range v.pending {
				switch random.IntN(4) {
				case 0:
				case 1: // torn between two sectors
					if n := int64(len(c.data)); n > 512 {
						cut := 512 * random.Int64N(n/512)
						c.data, c.at = c.data[cut:], c.at+cut
					}
					kept = append(kept, c)
				default:
					kept = append(kept, c)
				}
			}
			if err := os.WriteFile(path, v.apply(kept), 0o666); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
