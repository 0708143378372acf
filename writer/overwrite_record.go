package writer

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"math"

	"ggforge/fault"
	"ggforge/internal/io/disk"
)

// recordHead is the size of a record without the bytes before and after the change.
const recordHead = int64(len(overwriteMagic) + 24 + sha256.Size)

// record returns the head of the record of a change:
//
//	magic, size of the file u64, off u64, n u64, SHA-256 of all other bytes
//
// n bytes before and n bytes after the change follow.
func (c *change) record() ([]byte, error) {
	head := []byte(overwriteMagic)
	for _, n := range []int64{c.size, c.off, c.n} {
		head = binary.LittleEndian.AppendUint64(head, uint64(n))
	}
	h := sha256.New()
	h.Write(head)
	for _, r := range []io.ReaderAt{c.before, c.after} {
		if _, err := io.Copy(h, io.NewSectionReader(r, 0, c.n)); err != nil {
			return nil, err
		}
	}
	return h.Sum(head), nil
}

// writeTo writes the record of a change.
func (c *change) writeTo(w io.Writer) error {
	head, err := c.record()
	if err == nil {
		_, err = w.Write(head)
	}
	for _, r := range []io.ReaderAt{c.before, c.after} {
		if err == nil {
			_, err = io.Copy(w, io.NewSectionReader(r, 0, c.n))
		}
	}
	return err
}

// errTorn: a record was not written completely.
var errTorn = errors.New("torn")

// openRecord reads the head of the record in r; the bytes before and after the change stay in r. An incomplete record
// gives errTorn.
func openRecord(r *disk.File) (c change, err error) {
	st, err := r.Stat()
	if err != nil {
		return c, err
	}
	return parseRecord(r.Name(), r, st.Size())
}

func parseRecord(name string, r io.ReaderAt, size int64) (c change, err error) {
	head := make([]byte, min(size, recordHead))
	if n, err := r.ReadAt(head, 0); n < len(head) {
		return c, err
	}
	magic := head[:min(len(head), len(overwriteMagic))]
	switch {
	case len(bytes.Trim(head, "\x00")) == 0, int64(len(head)) < recordHead &&
		bytes.HasPrefix([]byte(overwriteMagic), magic):
		// zeros are unwritten parts of the file
		return c, errTorn
	case string(magic) != overwriteMagic:
		return c, fault.Errorf(fault.Refused,
			"%s: begins with %.20q, want %q: made by another version of ggforge, or not a record of a change of "+
				"metadata; remove it",
			name, magic, overwriteMagic)
	}
	number := func(i int) uint64 { return binary.LittleEndian.Uint64(head[len(overwriteMagic)+8*i:]) }
	off, n := number(1), number(2)
	if number(0) > math.MaxInt64 || off > maxOverwrite || n > maxOverwrite || off%sector != 0 ||
		size > recordHead+2*int64(n) {
		return c, fault.Errorf(fault.Refused,
			"%s: has %d bytes, but its head gives a change of %d bytes at offset %d, want at most %d; remove it", name,
			size, n, off,
			maxOverwrite)
	}
	if size < recordHead+2*int64(n) {
		return c, errTorn
	}
	c = change{int64(number(0)), int64(off), int64(n), io.NewSectionReader(r, recordHead, int64(n)),
		io.NewSectionReader(r, recordHead+int64(n), int64(n))}
	want, err := c.record()
	if err == nil && !bytes.Equal(want, head) {
		err = errTorn
	}
	return c, err
}
