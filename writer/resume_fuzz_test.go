package writer

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"ggforge/gguf"
	"ggforge/internal/io/disk"
	"ggforge/test/filetest"
)

// FuzzRowLog reads arbitrary records of rows: the accepted ones are about rows of
// the file, each row once. With seal their checksums are right.
func FuzzRowLog(f *testing.F) {
	record := func(file, tensor uint32, a, b, overflows int64) []byte {
		r := binary.LittleEndian.AppendUint32(nil, file)
		r = binary.LittleEndian.AppendUint32(r, tensor)
		for _, n := range []int64{a, b, overflows, 0} {
			r = binary.LittleEndian.AppendUint64(r, uint64(n))
		}
		return append(r, make([]byte, recordBytes-len(r))...)
	}
	f.Add(record(0, 0, 0, 4, 0), true)
	f.Add(append(record(0, 0, 2, 4, 1), record(0, 0, 0, 3, 1)...), true)
	f.Add(record(1, 0, 0, 4, 0), true)
	f.Add(record(0, 7, 0, 4, 0), true)
	f.Add(record(0, 0, -1, 1<<62, 0), true)
	f.Add(record(0, 0, 0, 4, 0)[:30], false)
	// All executions have the same files, as making new ones takes longer than reading records: those of rows are not
	// changed, and the log is filled again.
	dir := f.TempDir()
	file := &File{Path: filepath.Join(dir, "o"),
		Tensors: []Tensor{{"t", gguf.TypeF16, &matrix{ne: []int64{32, 4}}, nil, nil}}}
	rows, err := create(file.Path, file.layout().size)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { rows.discard() })
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { log.Close() })
	f.Fuzz(func(t *testing.T, records []byte, seal bool) {
		if seal {
			for r := records; len(r) >= recordBytes; r = r[recordBytes:] {
				binary.LittleEndian.PutUint64(r[40:], rowSum(make([]byte, 2*32*min(4, int(r[16])))))
				binary.LittleEndian.PutUint32(r[recordBytes-4:], crc32.Checksum(r[:recordBytes-4], castagnoli))
			}
		}
		o := &output{set: set{files: []layout{file.layout()}}, parts: []*partial{rows}}
		o.files[0].tensors[0].to = rows
		filetest.Refill(t, log, records)
		o.log = &rowLog{file: disk.Of(log)}
		if err := o.readLog(context.Background(), 0); err != nil {
			t.Fatal(err)
		}
		for _, s := range o.files[0].tensors[0].done {
			if s.a < 0 || s.b <= s.a || s.b > 4 {
				t.Errorf("rows %d to %d of 4", s.a, s.b)
			}
		}
		j := &job{ne: []int64{32, 4}, hi: 4, outputs: o.files[0].tensors}
		end := int64(0)
		for _, s := range j.done() {
			if s.a < end {
				t.Errorf("rows from %d on come twice", s.a)
			}
			end = s.b
		}
	})
}
