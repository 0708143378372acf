package writer

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/zeebo/xxh3"

	"ggforge/internal/io/disk"
	"ggforge/internal/kernel/buffer"
)

// progressSuffix follows the temporary name of a set's leader in the name of its log.
const progressSuffix = ".rows"

// rowLog lists the rows in the temporary files of a set. It is appended to after they are written, so that another run
// can resume there:
//
//	the head: the facts of the run (journal.go)
//	then for each block of rows:
//	  4  file           4  tensor in the file, both from 0
//	  8  first row      8  row after the last
//	  8  overflows      8  displaced sub-blocks
//	  8  XXH3 of the rows as they are in the file, 64 bits
//	  8  XXH3 of the rows of the source, as they were read
//	  4  CRC-32C of the bytes before
//
// all little-endian. A record is written after its rows, and counts only if both checksums are right: a crash of the
// machine may lose either. In a part with a file of its own the rows follow their record.
//
// The first records are those of the files, one each in their order: the tensor is fileRecord, and the first row is the
// file's ID, 0 where files have none. They identify the run's own files for cleanup: a file of the same name from
// elsewhere has another ID. Parts in files of their own have no such records.
type rowLog struct {
	mu   sync.Mutex
	file *disk.File
	name string
	data bool // rows follow their records
}

const recordBytes = 60

// fileRecord is the tensor number of records of files.
const fileRecord = math.MaxUint32

// rowSum is the checksum of rows. XXH3 is twice as fast as a CRC-32C, which cost a
// conversion that only copies 5% of its time.
func rowSum(data []byte) uint64 { return xxh3.Hash(data) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// span is rows [a, b) of one output of a tensor, with their counts.
type span struct {
	a, b int64
	tally
	source uint64  // checksum of the rows of the source
	log    *rowLog // that has the record
}

// tally holds the counts that Result reports.
type tally struct{ overflows, displaced int64 }

// add notes that the rows of t have been written as data.
func (l *rowLog) add(t *placed, s span, data []byte) error {
	if l == nil {
		return nil
	}
	r := record(uint32(t.fileNo), uint32(t.tensorNo), uint64(s.a), uint64(s.b), uint64(s.overflows),
		uint64(s.displaced), rowSum(data), s.source)
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.file.Write(r)
	if err == nil && l.data {
		_, err = l.file.Write(data)
	}
	return err
}

// record returns a record with these numbers and its checksum.
func record(file, tensor uint32, numbers ...uint64) []byte {
	r := make([]byte, 0, recordBytes)
	r = binary.LittleEndian.AppendUint32(r, file)
	r = binary.LittleEndian.AppendUint32(r, tensor)
	for _, n := range numbers {
		r = binary.LittleEndian.AppendUint64(r, n)
	}
	return binary.LittleEndian.AppendUint32(r, crc32.Checksum(r, castagnoli))
}

// validRecord reports whether a record has the right checksum.
func validRecord(r []byte) bool {
	return binary.LittleEndian.Uint32(r[recordBytes-4:]) == crc32.Checksum(r[:recordBytes-4], castagnoli)
}

// begin writes the head of a new log, and the records about files.
func (l *rowLog) begin(head []byte, parts []*partial) error {
	for i, p := range parts {
		id, err := fileNumber(p.name)
		if err != nil {
			return err
		}
		head = append(slices.Clip(head), record(uint32(i), fileRecord, id, 0, 0, 0, 0, 0)...)
	}
	_, err := l.file.Write(head)
	return err
}

// fileNumber returns the ID of a file as a record has it.
func fileNumber(name string) (uint64, error) {
	id, err := fileID(name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		n = 0 // files have no IDs here
	}
	return n, nil
}

// close closes the log, and with done removes it.
func (l *rowLog) close(done bool) {
	if l == nil {
		return
	}
	if done {
		disk.Remove(l.name)
	}
	l.file.Close()
}

// logName returns the name of the set's log.
func (s *set) logName() string { return s.files[s.leader].path + Suffix + progressSuffix }

// startLog makes the log of files that are all zeros.
func (o *output) startLog(head []byte) error {
	f, err := exclusive(o.logName(), o.logName())
	if err != nil {
		return err
	}
	o.log = &rowLog{file: f, name: o.logName()}
	return o.log.begin(head, o.parts)
}

// reopen opens the files of an interrupted run of the same write, and reads its log: done is set for the rows in them.
// It returns false if there is nothing to resume.
func (o *output) reopen(ctx context.Context, open *handles, head []byte, opt Options) (_ bool, err error) {
	log, err := leftover(o.logName(), o.logName())
	if log == nil || err != nil {
		return false, err
	}
	o.log = &rowLog{file: log, name: o.logName()}
	startAnew := func() (bool, error) {
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
	found, torn, err := readHead(log)
	if err != nil {
		return false, err
	}
	if torn {
		return startAnew()
	}
	if err := sameRun(o.logName(), found, head); err != nil {
		if opt.Journal.Restart || opt.Journal.Finish {
			return startAnew()
		}
		return false, err
	}
	for i := range o.files {
		l := &o.files[i]
		p := &partial{name: l.path + Suffix, final: l.path, size: l.size, kept: true}
		if p.file, err = leftover(p.name, p.final); err != nil {
			return false, err
		}
		if p.file == nil {
			return startAnew()
		}
		o.parts[i] = p
		if p.info, err = p.file.Stat(); err != nil {
			return false, err
		}
		if p.info.Size() != l.size {
			return startAnew()
		}
		if _, err := p.WriteAt(l.header(), 0); err != nil { // headers have no record
			return false, err
		}
		if i != o.leader {
			if err := open.add(p); err != nil {
				return false, err
			}
		}
	}
	return true, o.readLog(ctx, int64(len(head)))
}

// readLog reads the records of the set's own log from offset from on, and truncates it after the last intact one.
func (o *output) readLog(ctx context.Context, from int64) error {
	end, err := o.scan(ctx, o.log, from, func(t *placed, s span, _ []byte) error {
		t.done = append(t.done, s)
		return nil
	})
	if err != nil {
		return err
	}
	if err := o.log.file.Truncate(end); err != nil {
		return err
	}
	_, err = o.log.file.Seek(end, io.SeekStart)
	return err
}

// scan reads the records of a log from offset from on, and calls visit for those whose rows have the right checksum. It
// returns the offset after the last intact record.
func (o *output) scan(ctx context.Context, log *rowLog, from int64,
	visit func(t *placed, s span, data []byte) error) (end int64, err error) {
	in := bufio.NewReaderSize(io.NewSectionReader(log.file, from, math.MaxInt64-from), 1<<20)
	end = from
	var r [recordBytes]byte
	var data []byte
	for {
		if err := ctx.Err(); err != nil {
			return end, err
		}
		if _, err := io.ReadFull(in, r[:]); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return end, nil
		} else if err != nil {
			return end, err
		}
		if !validRecord(r[:]) {
			return end, nil
		}
		t, s := o.record(log, &r)
		if t == nil {
			if log.data { // the next record cannot be found
				return end, nil
			}
			end += recordBytes
			continue
		}
		_, rowLen := rowsOf(t)
		rowBytes := t.Type.RowBytes(rowLen)
		buffer.Resize(&data, (s.b-s.a)*rowBytes)
		if log.data {
			_, err = io.ReadFull(in, data)
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return end, nil
			}
		} else {
			err = o.parts[t.fileNo].use(func(f *disk.File) error {
				_, err := f.ReadAt(data, t.off+s.a*rowBytes)
				return err
			})
		}
		if err != nil {
			return end, err
		}
		good := rowSum(data) == binary.LittleEndian.Uint64(r[40:])
		if log.data && !good {
			return end, nil
		}
		end += recordBytes
		if log.data {
			end += int64(len(data))
		}
		if good {
			if err := visit(t, s, data); err != nil {
				return end, err
			}
		}
	}
}

// record returns the tensor and the rows of a record; nil if the layout has no such tensor or rows.
func (o *output) record(log *rowLog, r *[recordBytes]byte) (*placed, span) {
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(r[at:]) }
	i64 := func(at int) int64 { return int64(binary.LittleEndian.Uint64(r[at:])) }
	file, tensor := u32(0), u32(4)
	if int64(file) >= int64(len(o.files)) || int64(tensor) >= int64(len(o.files[file].tensors)) {
		return nil, span{}
	}
	t := o.files[file].tensors[tensor]
	s := span{i64(8), i64(16), tally{i64(24), i64(32)}, uint64(i64(48)), log}
	rows, rowLen := rowsOf(t)
	if s.a < 0 || s.b <= s.a || s.b > rows || s.b-s.a > max(1, blockElements/max(1, rowLen)) {
		return nil, span{}
	}
	return t, s
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

// skip counts rows that are done as written.
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
