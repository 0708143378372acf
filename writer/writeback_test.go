package writer

import (
	"bytes"
	"io"
	"path/filepath"
	"testing"
)

// TestWriteback checks that a growing file is sent to the disk but for its last
// part, whole parts at a time.
func TestWriteback(t *testing.T) {
	const size = 3*writebackBytes + writebackBytes/2
	p, err := create(filepath.Join(t.TempDir(), "out"), size)
	if err != nil {
		t.Fatal(err)
	}
	defer p.discard()
	stop := writeback([]*partial{p})
	data := bytes.Repeat([]byte{0xA5}, writebackBytes/8)
	for off := int64(0); off < size; off += int64(len(data)) {
		if _, err := p.WriteAt(data, off); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if p.written.Load() != size || p.sent != 2*writebackBytes {
		t.Errorf("%d bytes written, %d sent, want %d and %d", p.written.Load(), p.sent, size, 2*writebackBytes)
	}
	back, err := io.ReadAll(io.NewSectionReader(p.file, 0, size+1))
	if err != nil || !bytes.Equal(back, bytes.Repeat(data, size/len(data))) {
		t.Errorf("%d bytes read back, %v", len(back), err)
	}
}
