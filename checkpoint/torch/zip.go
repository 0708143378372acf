package torch

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"ggforge/fault"
)

// The parts of a zip archive that are read, all numbers little-endian. The end is
// found first, from there the directory, from there the entries.
//
//	entry       "PK\3\4", 26 bytes (name's length at 26, extra's at 28), name, extra, data
//	directory   per entry "PK\1\2", 42 bytes, name, extra, comment
//	end (64)    "PK\6\6", 52 bytes: entries at 32, size at 40, offset at 48
//	locator     "PK\6\7", 16 bytes: offset of the former at 8
//	end         "PK\5\6", 18 bytes: entries at 10, size at 12, offset at 16, comment's length at 20
const (
	entryHead     = 30
	directoryHead = 46
	endHead       = 22
	end64Head     = 56
	locatorHead   = 20

	maxComment = math.MaxUint16
	maxEntries = 1 << 20
	// maxDirectory is the largest directory that is read into memory.
	maxDirectory = 128 << 20
)

// entry is a stored entry of an archive.
type entry struct {
	name   string
	row    int64 // of the directory
	at     int64 // of its head
	off, n int64 // of its data; until it is located, off is where it begins at the earliest
	end    int64 // where the next entry begins, or the directory

	located bool
}

// span returns the range of the entry in the file, its head included.
func (e *entry) span() (off, n int64) {
	return e.at, min(e.end-e.at, entryHead+int64(len(e.name))+math.MaxUint16+e.n)
}

func u16(b []byte, at int) int64  { return int64(binary.LittleEndian.Uint16(b[at:])) }
func u32(b []byte, at int) int64  { return int64(binary.LittleEndian.Uint32(b[at:])) }
func u64(b []byte, at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }

// archive is a zip file. In memory, the heads of all entries are checked at open. With ReadFrom, the directory has
// everything except the exact start of data; the head of an entry is read together with its data, because heads are
// spread over the file.
type archive struct {
	path string
	size int64
	data []byte      // the whole file; nil after ReadFrom
	r    io.ReaderAt // nil in memory
	tail []byte      // the end of the file after ReadFrom
}

// bytes returns a part of the file, which must lie in it.
func (a *archive) bytes(off, n int64) ([]byte, error) {
	if a.r == nil {
		return a.data[off : off+n : off+n], nil
	}
	if in := off - (a.size - int64(len(a.tail))); in >= 0 {
		return a.tail[in : in+n], nil
	}
	// The length may be wrong: memory grows with the bytes read.
	const most = 4 << 20
	var b []byte
	for part := range (n + most - 1) / most {
		at := part * most
		size := min(most, n-at)
		b = slices.Grow(b, int(size))[:at+size]
		if err := a.read(b[at:], off+at); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// read fills p with a part of a file that is only read.
func (a *archive) read(p []byte, off int64) error {
	n, err := a.r.ReadAt(p, off)
	switch {
	case n == len(p):
		return nil
	case err == nil || err == io.EOF:
		return fmt.Errorf("%s: %w at byte %d, want %d bytes", a.path, io.ErrUnexpectedEOF, off+int64(n), a.size)
	}
	return err
}

// readTail reads the end of the file, which mostly holds the whole directory.
func (a *archive) readTail() (err error) {
	n := min(a.size, endHead+maxComment+locatorHead+end64Head)
	a.tail, err = a.bytes(a.size-n, n)
	return err
}

func (a *archive) broken(at int64, object, format string, args ...any) error {
	return &FormatError{Path: a.path, Offset: at, Object: object, Msg: fmt.Sprintf(format, args...)}
}

// entries returns the entries, sorted by their place in the file.
func (a *archive) entries() ([]entry, error) {
	start, dir, count, err := a.directory()
	if err != nil {
		return nil, err
	}
	at := start
	var list []entry
	seen := map[string]bool{}
	for len(dir) > 0 {
		e, size, err := a.entry(dir, at)
		if err == nil && a.r == nil {
			err = a.head(&e)
		}
		if err != nil {
			return nil, err
		}
		if seen[e.name] {
			return nil, a.broken(at, "entry "+quote(e.name), "is in the archive twice")
		}
		seen[e.name] = true
		list = append(list, e)
		if int64(len(list)) > count {
			return nil, a.broken(at, "archive", "its directory has more than the %d entries it promises", count)
		}
		dir = dir[size:]
		at += size
	}
	if int64(len(list)) != count {
		return nil, a.broken(start, "archive", "its directory has %d entries, it promises %d", len(list), count)
	}
	slices.SortFunc(list, func(x, y entry) int { return cmp.Compare(x.at, y.at) })
	end := int64(0)
	for i, e := range list {
		list[i].end = start
		if i+1 < len(list) {
			list[i].end = list[i+1].at
		}
		if e.at < end {
			return nil, a.broken(e.at, "entry "+quote(e.name), "overlaps the one before it, which ends at byte %d", end)
		}
		if end = e.off + e.n; end > start {
			return nil, a.broken(e.off, "entry "+quote(e.name),
				"is %d bytes long and reaches into the archive's directory", e.n)
		}
	}
	return list, nil
}

// directory returns the bytes of the directory, where they are in the file, and how
// many entries it has.
func (a *archive) directory() (start int64, dir []byte, count int64, err error) {
	from := max(0, a.size-endHead-maxComment)
	d, err := a.bytes(from, a.size-from)
	if err != nil {
		return 0, nil, 0, err
	}
	i := bytes.LastIndex(d, []byte("PK\x05\x06"))
	if i < 0 || i+endHead > len(d) {
		return 0, nil, 0, a.broken(a.size, "archive", "has no end of a directory: the file is cut off")
	}
	at, end := from+int64(i), d[i:]
	if comment := u16(end, 20); int64(len(end)) != endHead+comment {
		return 0, nil, 0, a.broken(at, "archive", "%d bytes follow its end, which promises a comment of %d",
			len(end)-endHead, comment)
	}
	if u16(end, 4) != 0 && u16(end, 4) != math.MaxUint16 || u16(end, 6) != 0 && u16(end, 6) != math.MaxUint16 {
		return 0, nil, 0, fault.Errorf(ErrUnsupported, "%s: is one of several parts of an archive", a.path)
	}
	n, size, off := uint64(u16(end, 10)), uint64(u32(end, 12)), uint64(u32(end, 16))
	limit := uint64(at) // where the directory ends
	if l := at - locatorHead; l >= 0 {
		locator, err := a.bytes(l, locatorHead)
		if err != nil {
			return 0, nil, 0, err
		}
		if bytes.HasPrefix(locator, []byte("PK\x06\x07")) {
			p := u64(locator, 8)
			var end64 []byte
			if p <= uint64(l) && uint64(l)-p >= end64Head {
				if end64, err = a.bytes(int64(p), end64Head); err != nil {
					return 0, nil, 0, err
				}
			}
			if !bytes.HasPrefix(end64, []byte("PK\x06\x06")) {
				return 0, nil, 0, a.broken(l, "archive", "the end of a large directory is not at byte %d", p)
			}
			n64, size64, off64 := u64(end64, 32), u64(end64, 40), u64(end64, 48)
			for _, x := range []struct{ small, unset, large uint64 }{{n, math.MaxUint16, n64},
				{size, math.MaxUint32, size64}, {off, math.MaxUint32, off64}} {
				if x.small != x.unset && x.small != x.large {
					return 0, nil, 0, a.broken(int64(p), "archive", "its two ends disagree: %d and %d",
						x.small, x.large)
				}
			}
			n, size, off, limit = n64, size64, off64, p
		}
	}
	switch {
	case off > limit || size != limit-off:
		return 0, nil, 0, a.broken(at, "archive",
			"its directory is said to be %d bytes at byte %d, but ends at byte %d", size, off, limit)
	case n > maxEntries:
		return 0, nil, 0, fault.Errorf(ErrUnsupported, "%s: has %d entries, want at most %d", a.path, n, maxEntries)
	case a.r != nil && size > maxDirectory:
		return 0, nil, 0, fault.Errorf(ErrUnsupported, "%s: its directory has %d bytes, want at most %d", a.path, size,
			maxDirectory)
	}
	dir, err = a.bytes(int64(off), int64(size))
	return int64(off), dir, int64(n), err
}

// entry parses a row of the directory, at byte at of the file; size is that of the
// row. The entry is not located yet.
func (a *archive) entry(dir []byte, at int64) (e entry, size int64, err error) {
	if len(dir) < directoryHead || !bytes.HasPrefix(dir, []byte("PK\x01\x02")) {
		return e, 0, a.broken(at, "archive", "want an entry of its directory here")
	}
	flags, method := u16(dir, 8), u16(dir, 10)
	nameLen, extraLen := u16(dir, 28), u16(dir, 30)
	size = directoryHead + nameLen + extraLen + u16(dir, 32)
	if size > int64(len(dir)) {
		return e, 0, a.broken(at, "archive", "an entry of its directory is %d bytes long, %d follow", size, len(dir))
	}
	e.name = string(dir[directoryHead : directoryHead+nameLen])
	what := "entry " + quote(e.name)
	packed, n, off := uint64(u32(dir, 20)), uint64(u32(dir, 24)), uint64(u32(dir, 42))
	if err := large(dir[directoryHead+nameLen:][:extraLen], &n, &packed, &off); err != nil {
		return e, 0, a.broken(at, what, "%v", err)
	}
	switch {
	case flags&1 != 0:
		return e, 0, fault.Errorf(ErrUnsupported, "%s: %s is encrypted", a.path, what)
	case method != 0:
		return e, 0, fault.Errorf(ErrUnsupported,
			"%s: %s is compressed (method %d): torch.save stores entries as they are", a.path, what, method)
	case packed != n:
		return e, 0, a.broken(at, what, "is stored, but has %d bytes in the archive and %d outside", packed, n)
	case off > uint64(at) || uint64(at)-off < entryHead:
		return e, 0, a.broken(at, what, "is not at byte %d, where the directory says", off)
	case n > uint64(at)-off:
		return e, 0, a.broken(int64(off), what, "is %d bytes long, and the directory begins at byte %d", n, at)
	}
	e.row, e.at, e.off, e.n = at, int64(off), int64(off)+entryHead+nameLen, int64(n)
	return e, size, nil
}

// head reads the head of an entry, from which the offset of its data follows.
func (a *archive) head(e *entry) error {
	head, err := a.bytes(e.at, entryHead)
	if err != nil {
		return err
	}
	what := "entry " + quote(e.name)
	if !bytes.HasPrefix(head, []byte("PK\x03\x04")) {
		return a.broken(e.row, what, "is not at byte %d, where the directory says", e.at)
	}
	nameLen := u16(head, 26)
	off := e.at + entryHead + nameLen + u16(head, 28)
	if off > e.row || e.n > e.row-off {
		return a.broken(e.at, what, "is %d bytes long, and the directory begins at byte %d", e.n, e.row)
	}
	name, err := a.bytes(e.at+entryHead, nameLen)
	switch {
	case err != nil:
		return err
	case string(name) != e.name:
		return a.broken(e.at, what, "has the name %s at its place", quote(string(name)))
	case u16(head, 8) != 0 || u16(head, 6)&1 != 0:
		return a.broken(e.at, what, "is compressed or encrypted at its place, and not in the directory")
	}
	e.off, e.located = off, true
	return nil
}

// locate reads the head of an entry on the first call.
func (a *archive) locate(e *entry) error {
	if e.located {
		return nil
	}
	if err := a.head(e); err != nil {
		return err
	}
	if e.off+e.n > e.end {
		e.located = false
		return a.broken(e.off, "entry "+quote(e.name),
			"is %d bytes long and reaches beyond byte %d, where the next one or the directory begins", e.n, e.end)
	}
	return nil
}

// large replaces sizes and offset beyond 32 bits by the values in the extra field of ID 1 (zip64), which has only
// those, in this order.
func large(extra []byte, sizes ...*uint64) error {
	for len(extra) >= 4 {
		id, n := u16(extra, 0), u16(extra, 2)
		if n > int64(len(extra))-4 {
			return fmt.Errorf("an extra field is %d bytes long, %d follow", n, len(extra)-4)
		}
		field := extra[4 : 4+n]
		extra = extra[4+n:]
		if id != 1 {
			continue
		}
		for _, s := range sizes {
			if *s != math.MaxUint32 {
				continue
			}
			if len(field) < 8 {
				return fmt.Errorf("the extra field of its sizes is too short")
			}
			*s, field = u64(field, 0), field[8:]
		}
		return nil
	}
	for _, s := range sizes {
		if *s == math.MaxUint32 {
			return fmt.Errorf("has no extra field of its sizes")
		}
	}
	return nil
}

// content returns the first bytes of an entry's data, at most most.
func (a *archive) content(e *entry, most int64) ([]byte, error) {
	if err := a.locate(e); err != nil {
		return nil, err
	}
	return a.bytes(e.off, min(e.n, most))
}

// parseZip returns the object in an archive.
func parseZip(a *archive) (value, error) {
	list, err := a.entries()
	if err != nil {
		return nil, err
	}
	byName := make(map[string]*entry, len(list))
	folder := "" // with its slash
	for i := range list {
		e := &list[i]
		byName[e.name] = e
		dir, ok := strings.CutSuffix(e.name, "data.pkl")
		if !ok || strings.Count(dir, "/") != 1 || !strings.HasSuffix(dir, "/") {
			continue
		}
		if folder != "" {
			return nil, a.broken(e.at, "archive", "has two pickles, in %s and %s", quote(folder), quote(dir))
		}
		folder = dir
	}
	if folder == "" {
		return nil, a.broken(-1, "archive", "has no data.pkl in a folder: is this a file of PyTorch?")
	}
	if byName[folder+"constants.pkl"] != nil {
		return nil, fault.Errorf(ErrUnsupported, "%s: is a program of TorchScript, want a dict of tensors", a.path)
	}
	if e := byName[folder+"byteorder"]; e != nil {
		order, err := a.content(e, 16)
		if err != nil {
			return nil, err
		}
		if string(order) != "little" {
			return nil, fault.Errorf(ErrUnsupported, "%s: its byte order is %s, want little", a.path,
				quote(string(order)))
		}
	}
	p := byName[folder+"data.pkl"]
	text, err := a.content(p, maxPickle+1) // one more byte shows that the pickle was cut
	if err != nil {
		return nil, err
	}
	m := newMachine(a.path, text, p.off)
	top, err := m.run()
	if err != nil {
		return nil, err
	}
	if int64(m.pos) != p.n {
		return nil, m.broken("%d bytes follow its end, want none", p.n-int64(m.pos))
	}
	for i := range list {
		e := &list[i]
		if key, ok := strings.CutPrefix(e.name, folder+"data/"); ok && m.storages[key] != nil {
			s := m.storages[key]
			if err := s.place(a.path, e.off, e.n); err != nil {
				return nil, err
			}
			if a.r != nil {
				s.far = &far{archive: a, entry: *e}
			}
		}
	}
	return top, m.located()
}
