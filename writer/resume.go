package writer

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"slices"
	"sync"

	"ggforge/internal/disk"
)

// progressSuffix is what the log of a set has after the temporary name of its
// leader.
const progressSuffix = ".rows"

// rowLog says which rows the temporary files of a set hold. It is appended to when
// they are written, so that another run can go on from there:
//
//	 32  SHA-256 of what the files are to become
//	then for each block of rows:
//	  4  file           4  tensor in the file, both from 0
//	  8  first row      8  row after the last
//	  8  overflows      8  displaced sub-blocks
//	  4  CRC-32C of the rows as they are in the file
//	  4  CRC-32C of the bytes before
//
// all little-endian. A record follows the data that it is about, and is believed
// only when both checksums are right: what a crash of the machine has lost of
// either does no harm.
type rowLog struct {
	mu   sync.Mutex
	file *disk.File
	name string
}

const recordBytes = 48

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// span is rows [a, b) of one output of a tensor, and what was counted in them.
type span struct {
	a, b int64
	tally
}

// tally counts what Result reports.
type tally struct{ overflows, displaced int64 }

// add notes that the rows of t have been written as data.
func (l *rowLog) add(t *placed, s span, data []byte) error {
	if l == nil {
		return nil
	}
	r := make([]byte, 0, recordBytes)
	r = binary.LittleEndian.AppendUint32(r, uint32(t.fileNo))
	r = binary.LittleEndian.AppendUint32(r, uint32(t.tensorNo))
	for _, n := range []int64{s.a, s.b, s.overflows, s.displaced} {
		r = binary.LittleEndian.AppendUint64(r, uint64(n))
	}
	r = binary.LittleEndian.AppendUint32(r, crc32.Checksum(data, castagnoli))
	r = binary.LittleEndian.AppendUint32(r, crc32.Checksum(r, castagnoli))
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.file.Write(r)
	return err
}

// close closes the log, and with done removes it.
func (l *rowLog) close(done bool) {
	if l == nil {
		return
	}
	if done && renamesOpen {
		disk.Remove(l.name)
	}
	l.file.Close()
	if done && !renamesOpen {
		disk.Remove(l.name)
	}
}

// fingerprint returns the hash of everything that decides the bytes of the set, as
// far as the writer knows, and of what the caller says about the rest.
func (s *set) fingerprint(resume string) []byte {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", resume)
	for _, f := range s.files {
		fmt.Fprintf(h, "%q %d\n", filepath.Base(f.path), f.size)
		h.Write(f.header())
		for _, t := range f.tensors {
			fmt.Fprintf(h, "%q %d %d %v %d %v\n", t.Name, t.Type, t.Source.Type(), t.Source.NE(), t.off, t.swap)
		}
	}
	return h.Sum(nil)
}

// logName returns the name of the set's log.
func (s *set) logName() string { return s.files[s.leader].path + Suffix + progressSuffix }

// startLog makes the log of files that are all zeros.
func (o *output) startLog(resume string) error {
	f, err := exclusive(o.logName(), o.logName())
	if err != nil {
		return err
	}
	o.log = &rowLog{file: f, name: o.logName()}
	_, err = f.Write(o.fingerprint(resume))
	return err
}

// reopen opens the files of an interrupted run that was to write the same, and
// reads its log: done is set for rows that are there. It returns false if there is
// nothing to go on from.
func (o *output) reopen(ctx context.Context, open *handles, opt Options) (_ bool, err error) {
	log, err := leftover(o.logName(), o.logName())
	if log == nil || err != nil {
		return false, err
	}
	o.log = &rowLog{file: log, name: o.logName()}
	giveUp := func() (bool, error) {
		o.log.close(true)
		o.log = nil
		for i, p := range o.parts {
			if p != nil {
				p.close()
				o.parts[i] = nil
			}
		}
		return false, nil
	}
	head := make([]byte, sha256.Size)
	if _, err := io.ReadFull(log, head); err != nil || !bytes.Equal(head, o.fingerprint(opt.Resume)) {
		return giveUp()
	}
	for i := range o.files {
		l := &o.files[i]
		if err := checkFinal(l.path, opt.Force); err != nil {
			return false, err
		}
		p := &partial{name: l.path + Suffix, final: l.path, size: l.size}
		if p.file, err = leftover(p.name, p.final); err != nil {
			return false, err
		}
		if p.file == nil {
			return giveUp()
		}
		o.parts[i] = p
		if p.info, err = p.file.Stat(); err != nil {
			return false, err
		}
		if p.info.Size() != l.size {
			return giveUp()
		}
		if _, err := p.WriteAt(l.header(), 0); err != nil { // no record says that it is there
			return false, err
		}
		if i != o.leader {
			if err := open.add(p); err != nil {
				return false, err
			}
		}
	}
	return true, o.readLog(ctx)
}

// readLog reads the records, and compares the rows with them. What follows a
// record that is not whole is cut off.
func (o *output) readLog(ctx context.Context) error {
	in := bufio.NewReaderSize(o.log.file, 1<<20)
	end := int64(sha256.Size)
	var r [recordBytes]byte
	var data []byte
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := io.ReadFull(in, r[:]); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		} else if err != nil {
			return err
		}
		u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(r[at:]) }
		i64 := func(at int) int64 { return int64(binary.LittleEndian.Uint64(r[at:])) }
		if u32(recordBytes-4) != crc32.Checksum(r[:recordBytes-4], castagnoli) {
			break
		}
		end += recordBytes
		file, tensor := int(u32(0)), int(u32(4))
		s := span{i64(8), i64(16), tally{i64(24), i64(32)}}
		if file >= len(o.files) || tensor >= len(o.files[file].tensors) {
			continue
		}
		t := o.files[file].tensors[tensor]
		rows, rowLen := rowsOf(t)
		rowBytes := t.Type.RowBytes(rowLen)
		if s.a < 0 || s.b <= s.a || s.b > rows || s.b-s.a > max(1, blockElements/rowLen) {
			continue
		}
		data = sized(data, int((s.b-s.a)*rowBytes))
		err := o.parts[file].use(func(f *disk.File) error {
			_, err := f.ReadAt(data, t.off+s.a*rowBytes)
			return err
		})
		if err != nil {
			return err
		}
		if crc32.Checksum(data, castagnoli) == u32(40) {
			t.done = append(t.done, s)
		}
	}
	if err := o.log.file.Truncate(end); err != nil {
		return err
	}
	_, err := o.log.file.Seek(end, io.SeekStart)
	return err
}

// done returns the rows that all outputs of the tensor hold, in order: those that
// were written together.
func (j *job) done() []span {
	if len(j.outputs[0].done) == 0 {
		return nil
	}
	count := map[[2]int64]int{}
	for _, o := range j.outputs {
		own := map[[2]int64]bool{}
		for _, s := range o.done {
			if rows := [2]int64{s.a, s.b}; !own[rows] {
				own[rows] = true
				count[rows]++
			}
		}
	}
	var list []span
	for rows, n := range count {
		if n == len(j.outputs) {
			list = append(list, span{a: rows[0], b: rows[1]})
		}
	}
	slices.SortFunc(list, func(x, y span) int { return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) })
	end := int64(0) // spans of runs that cut otherwise may overlap
	return slices.DeleteFunc(list, func(s span) bool {
		if s.a < end {
			return true
		}
		end = s.b
		return false
	})
}

// skip counts rows as written that are done already.
func (p *pool) skip(j *job, done []span) {
	_, rowLen := rowsOf(j.outputs[0])
	for _, o := range j.outputs {
		counts := map[[2]int64]tally{}
		for _, s := range o.done {
			counts[[2]int64{s.a, s.b}] = s.tally
		}
		for _, s := range done {
			o.count(counts[[2]int64{s.a, s.b}])
			p.done.Add((s.b - s.a) * o.Type.RowBytes(rowLen))
			p.worked.Add(workOf(o, (s.b-s.a)*rowLen))
		}
	}
}
