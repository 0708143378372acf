package fetch

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"sync"

	"ggforge/fault"
	"ggforge/internal/io/disk"
)

// kept holds the bytes of a file received so far, on the disk: one file with the bytes at their places, and a log of
// the ranges with checksums. A range counts if its checksum is right, so that nothing has to be synced.
type kept struct {
	mu      sync.Mutex
	data    *os.File
	log     *os.File
	entries []entry // by offset
}

// entry is a record of the log: a range and its CRC-32C.
type entry struct {
	off int64
	n   uint32
	sum uint32
}

// logMagic begins the log. Records follow.
const logMagic = "ggforge fetch log 2\n"

const (
	recordBytes = 20 // offset, length, sum, and the CRC-32C of these three
	maxLog      = recordBytes << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (e entry) end() int64 { return e.off + int64(e.n) }

func (e entry) record() []byte {
	b := make([]byte, recordBytes)
	binary.LittleEndian.PutUint64(b, uint64(e.off))
	binary.LittleEndian.PutUint32(b[8:], e.n)
	binary.LittleEndian.PutUint32(b[12:], e.sum)
	binary.LittleEndian.PutUint32(b[16:], crc32.Checksum(b[:16], castagnoli))
	return b
}

// parseLog returns the ranges of a log that lie in a file of the given size, and
// whether all of the log is sound.
func parseLog(log []byte, size int64) (entries []entry, sound bool) {
	for ; len(log) >= recordBytes; log = log[recordBytes:] {
		e := entry{int64(binary.LittleEndian.Uint64(log)), binary.LittleEndian.Uint32(log[8:]),
			binary.LittleEndian.Uint32(log[12:])}
		if binary.LittleEndian.Uint32(log[16:]) != crc32.Checksum(log[:16], castagnoli) || e.off < 0 || e.n == 0 ||
			e.n > pieceBytes || e.off > size-int64(e.n) {
			return entries, false
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.off, b.off) })
	return entries, len(log) == 0
}

// Keep makes f store the bytes that it reads in a folder, which is created if needed, and use the bytes that an earlier
// run has stored there. A file whose server sends neither ETag nor Last-Modified cannot be kept, because a change would
// not be noticed.
func (f *File) Keep(folder string, fixed bool) error {
	if !fixed && f.state == "" {
		return fault.Errorf(fault.Unsupported,
			"%s: cannot be kept for a later run: the server sends neither ETag nor Last-Modified", f.name)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder) // no link leads out of it
	if err != nil {
		return err
	}
	defer root.Close()
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d", f.address, f.state, f.Size))
	name := hex.EncodeToString(sum[:16])
	k := &kept{}
	if k.data, err = root.OpenFile(name+".data", os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if k.log, err = root.OpenFile(name+".log", os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		k.data.Close()
		return err
	}
	if err := k.load(filepath.Join(folder, name), f.Size); err != nil {
		k.close()
		return fmt.Errorf("%s: %w", filepath.Join(folder, name), err)
	}
	f.kept = k
	return nil
}

// load reads the log. A damaged log, or one of another version, is started over. name is the name of both files without
// its ending.
func (k *kept) load(name string, size int64) error {
	for ending, f := range map[string]*os.File{".data": k.data, ".log": k.log} {
		st, err := f.Stat()
		if err != nil {
			return err
		}
		if !st.Mode().IsRegular() {
			return fmt.Errorf("is no regular file")
		}
		if !disk.Own(name+ending, st) { // another user can have written anything
			return fault.Errorf(fault.Usage,
				"belongs to another user: downloads are kept only in folders of the user")
		}
	}
	st, err := k.log.Stat()
	if err != nil {
		return err
	}
	sound := st.Size() <= maxLog
	if sound {
		log := make([]byte, st.Size())
		if _, err := k.log.ReadAt(log, 0); err != nil && len(log) > 0 {
			return err
		}
		log, sound = bytes.CutPrefix(log, []byte(logMagic))
		if sound {
			k.entries, sound = parseLog(log, size)
		}
	}
	if sound {
		return nil
	}
	k.entries = nil
	if err := k.log.Truncate(0); err != nil {
		return err
	}
	_, err = k.log.WriteString(logMagic)
	return err
}

// close closes both files.
func (k *kept) close() {
	k.data.Close()
	k.log.Close()
}

// Close closes the files with the stored bytes.
func (f *File) Close() {
	if f.kept != nil {
		f.kept.close()
	}
}

// read fills the beginning of p with stored bytes, and returns their number.
func (k *kept) read(p []byte, off int64) (n int) {
	var buf []byte
	for n < len(p) {
		k.mu.Lock()
		e, ok := k.find(off + int64(n))
		k.mu.Unlock()
		if !ok {
			break
		}
		// most ranges are read straight into p: they begin at the byte that is wanted, and fit
		into, begins := p[n:], e.off == off+int64(n) && int(e.n) <= len(p)-n
		if !begins {
			buf = slices.Grow(buf[:0], int(e.n))
			into = buf[:e.n]
		}
		into = into[:e.n]
		if _, err := k.data.ReadAt(into, e.off); err != nil || crc32.Checksum(into, castagnoli) != e.sum {
			k.drop(e)
			continue
		}
		if begins {
			n += int(e.n)
		} else {
			n += copy(p[n:], into[off+int64(n)-e.off:])
		}
	}
	return n
}

// find returns a range that contains the byte at off.
func (k *kept) find(off int64) (entry, bool) {
	// entries are pieces: none is longer than pieceBytes
	i := sort.Search(len(k.entries), func(i int) bool { return k.entries[i].off > off })
	for i--; i >= 0 && k.entries[i].off > off-pieceBytes; i-- {
		if k.entries[i].end() > off {
			return k.entries[i], true
		}
	}
	return entry{}, false
}

// drop removes a range whose bytes have changed.
func (k *kept) drop(e entry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if i := slices.Index(k.entries, e); i >= 0 {
		k.entries = slices.Delete(k.entries, i, i+1)
	}
}

// add keeps p.
func (k *kept) add(p []byte, off int64) error {
	e := entry{off, uint32(len(p)), crc32.Checksum(p, castagnoli)}
	if _, err := k.data.WriteAt(p, off); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	i := sort.Search(len(k.entries), func(i int) bool { return k.entries[i].off > off })
	k.entries = slices.Insert(k.entries, i, e)
	_, err := k.log.Write(e.record())
	return err
}
