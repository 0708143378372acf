package calibrate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/statefile"
	"ggforge/writer"
)

// journal is the state file of Options.State: the matrices encoded so far, from which a later run resumes. It is
// only appended to:
//
//	magic [8] | identity of the run [32] | record | record ...
//
// and a record, in little-endian numbers, is
//
//	tensor u32 | type u32 | matrix u32 | matrices u32 | rows u64 | before, after, tr(D), tr(H) f64 | blocks | SHA-256 of all of it [32]
//
// Reading ends at the first record that is truncated, invalid or has a wrong hash: it was being written when the run
// was killed. It is cut off.
type journal struct {
	file *disk.File
	done map[entry]bool
}

// entry is a matrix of a target.
type entry struct {
	Target
	matrix int
}

const (
	journalMagic = writer.BlocksMagic
	recordHead   = 4*4 + 5*8
)

// openJournal opens the journal of a run, or makes one, and puts its blocks into b. The journal of another run is an
// error of kind fault.Refused, a file that is not a journal one of kind fault.Broken.
func openJournal(path string, id [sha256.Size]byte, b *Blocks, wanted func(Target) bool) (_ *journal, err error) {
	f, err := statefile.OpenFile(path, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = disk.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|disk.NoFollow, 0o666)
	}
	if err != nil {
		return nil, err
	}
	j := &journal{f, map[entry]bool{}}
	defer func() {
		if err != nil {
			f.Close()
			err = fmt.Errorf("%s: %w", path, err)
		}
	}()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	head := append([]byte(journalMagic), id[:]...)
	got := make([]byte, min(st.Size(), int64(len(head))))
	if _, err := io.ReadFull(f, got); err != nil {
		return nil, err
	}
	// Killed while it was written, or before it was on the disk: nothing follows it.
	if st.Size() < int64(len(head)) && bytes.HasPrefix(head, got) || st.Size() <= int64(len(head)) &&
		len(bytes.Trim(got, "\x00")) == 0 {
		if err := f.Truncate(0); err != nil {
			return nil, err
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		if _, err := f.Write(head); err != nil {
			return nil, err
		}
		if err := f.Sync(); err != nil {
			return nil, err
		}
		return j, nil
	}
	if bytes.HasPrefix(got, []byte(journalMagic[:6])) && !bytes.HasPrefix(got, []byte(journalMagic)) {
		return nil, fault.Errorf(fault.Refused, "state file of another version; remove it to start over")
	}
	if !bytes.HasPrefix(got, []byte(journalMagic)) {
		return nil, fault.Errorf(fault.Broken, "not a calibration state file (bad magic)")
	}
	if !bytes.Equal(got, head) {
		return nil, fault.Errorf(fault.Refused,
			"state of an interrupted run with a different model, text or options; remove it to start over")
	}
	at := int64(len(head))
	for {
		n, err := j.restore(f, st.Size()-at, b, wanted)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("offset %d: %w", at, err)
		}
		at += n
	}
	if err := f.Truncate(at); err != nil {
		return nil, err
	}
	_, err = f.Seek(at, io.SeekStart)
	return j, err
}

// RemoveState removes the state file (Options.State) of an earlier run, if there is one. A file of that name that is
// no state file is an error of kind fault.Usage.
func RemoveState(path string) error {
	f, err := statefile.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	head := make([]byte, len(journalMagic))
	n, err := io.ReadFull(f, head)
	f.Close()
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if string(head[:n]) != journalMagic[:n] {
		return fault.Errorf(fault.Usage, "%s: not a calibration state file (bad magic); remove it", path)
	}
	return disk.Remove(path)
}

// restore reads a record of at most left bytes, into b if its target is wanted. The error is io.ErrUnexpectedEOF
// after the last valid record.
func (j *journal) restore(r io.Reader, left int64, b *Blocks, wanted func(Target) bool) (int64, error) {
	if left < recordHead+sha256.Size {
		return 0, io.ErrUnexpectedEOF
	}
	h := sha256.New()
	in := io.TeeReader(r, h)
	var head [recordHead]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return 0, end(err)
	}
	u32 := func(i int) int { return int(binary.LittleEndian.Uint32(head[4*i:])) }
	u64 := func(i int) uint64 { return binary.LittleEndian.Uint64(head[16+8*i:]) }
	t, matrix, of := Target{u32(0), gguf.Type(u32(1))}, u32(2), u32(3)
	if t.Tensor >= len(b.m.Tensors) || !t.Type.Known() || !Supported(t.Type) {
		return 0, io.ErrUnexpectedEOF
	}
	ne := b.m.Tensors[t.Tensor].NE
	if of < 1 || matrix >= of || gguf.Rows(ne)%int64(of) != 0 || ne[0]%t.Type.BlockLen() != 0 ||
		j.done[entry{t, matrix}] {
		return 0, io.ErrUnexpectedEOF
	}
	size := gguf.DataBytes(t.Type, ne) / int64(of)
	if left < recordHead+size+sha256.Size {
		return 0, io.ErrUnexpectedEOF
	}
	to := io.Discard
	var k *encodedTensor
	if wanted(t) {
		if k = b.of(t, of); len(k.seen) != of {
			return 0, io.ErrUnexpectedEOF
		}
		to = io.NewOffsetWriter(b.file, k.at+int64(matrix)*size)
	}
	if _, err := io.CopyN(to, in, size); err != nil {
		return 0, end(err)
	}
	var sum [sha256.Size]byte
	if _, err := io.ReadFull(r, sum[:]); err != nil {
		return 0, end(err)
	}
	if !bytes.Equal(sum[:], h.Sum(nil)) {
		return 0, io.ErrUnexpectedEOF
	}
	for i := 1; i < 5; i++ {
		if v := math.Float64frombits(u64(i)); v-v != 0 || u64(0) > 1<<53 {
			return 0, fault.Errorf(fault.Broken,
				"matrix %d of tensor %q: %d input rows, error figure %d is %v, want a finite number", matrix,
				b.m.Tensors[t.Tensor].Name, u64(0), i, v)
		}
	}
	if j.done[entry{t, matrix}] = true; k != nil {
		k.seen[matrix] = true
		k.Rows += int(u64(0))
		k.Before += math.Float64frombits(u64(1))
		k.After += math.Float64frombits(u64(2))
		k.traces.add(traces{math.Float64frombits(u64(3)), math.Float64frombits(u64(4))})
	}
	return recordHead + size + sha256.Size, nil
}

// end turns io.EOF into io.ErrUnexpectedEOF.
func end(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// has reports whether a matrix is encoded already.
func (j *journal) has(t Target, matrix int) bool { return j != nil && j.done[entry{t, matrix}] }

// add appends an encoded matrix with its errors.
func (j *journal) add(b *Blocks, k *encodedTensor, matrix, rows int, sum Result, t traces) error {
	if j == nil {
		return nil
	}
	var head [recordHead]byte
	for i, v := range []int{k.Tensor, int(k.Type), matrix, len(k.seen)} {
		binary.LittleEndian.PutUint32(head[4*i:], uint32(v))
	}
	for i, v := range []uint64{uint64(rows), math.Float64bits(sum.Before), math.Float64bits(sum.After),
		math.Float64bits(t.d), math.Float64bits(t.h)} {
		binary.LittleEndian.PutUint64(head[16+8*i:], v)
	}
	size := gguf.DataBytes(k.Type, b.m.Tensors[k.Tensor].NE) / int64(len(k.seen))
	h := sha256.New()
	w := io.MultiWriter(j.file, h)
	_, err := w.Write(head[:])
	if err == nil {
		_, err = io.Copy(w, io.NewSectionReader(b.file, k.at+int64(matrix)*size, size))
	}
	if err == nil {
		_, err = j.file.Write(h.Sum(nil))
	}
	return err
}

func (j *journal) close() error {
	if j == nil {
		return nil
	}
	return j.file.Close()
}

// runID identifies runs that encode the same blocks; of names the text and whatever else decides about them.
func runID(ctx context.Context, r *eval.Model, o *Options, of string) (id [sha256.Size]byte, err error) {
	model, err := r.Identity(ctx)
	all := fmt.Sprintf("4 %s %d %d %v %d %v %d %s\n", model, o.Run.Chunk, o.Passes, o.Damping, o.MaxColumns, o.Feedback,
		o.Gradients, of)
	return sha256.Sum256([]byte(all)), err
}
