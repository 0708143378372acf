package identity_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ggforge/gguf"
	"ggforge/model"
	"ggforge/model/identity"
	"ggforge/rows"
)

// stored returns a model with one tensor, nRows rows of 32 numbers with bytes from f.
func stored(nRows int64, f func(i int) byte) *model.Model {
	data := make([]byte, 4*32*nRows)
	for i := range data {
		data[i] = f(i)
	}
	ne := []int64{32, nRows}
	return &model.Model{Path: "m.gguf", Metadata: gguf.Metadata{{Key: "a", Value: gguf.Uint32(1)}},
		Tensors: []model.Tensor{model.New("t", rows.Stored(ne, gguf.TypeF32, data, nil))}}
}

func of(t *testing.T, m *model.Model) string {
	t.Helper()
	id, err := identity.Of(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestOf checks what the identity of a model depends on.
func TestOf(t *testing.T) {
	for _, n := range []int64{1, 2, 3, 16, 17, 1000} {
		same := func(int) byte { return 1 }
		want := of(t, stored(n, same))
		if of(t, stored(n, same)) != want {
			t.Errorf("%d rows: another identity of the same model", n)
		}
		for what, at := range map[string]int64{"first row": 0, "last row": 128*n - 1} {
			if of(t, stored(n, func(i int) byte {
				if int64(i) == at {
					return 2
				}
				return 1
			})) == want {
				t.Errorf("%d rows: another %s", n, what)
			}
		}
		if of(t, stored(n, func(i int) byte {
			if i >= 128 && int64(i) < 128*(n-1) {
				return 2
			}
			return 1
		})) == want && n > 2 {
			t.Errorf("%d rows: others between the first and the last", n)
		}
		m := stored(n, same)
		m.Metadata[0].Value = gguf.Uint32(2)
		if of(t, m) == want {
			t.Error("other metadata")
		}
		m = stored(n, same)
		m.Tensors[0].Name = "u"
		if of(t, m) == want {
			t.Error("another name")
		}
	}
}

// unread is a tensor on a server.
type unread struct{ rows.Source }

func (unread) Raw(*[]byte, int64, int64) ([]byte, error) {
	return nil, errors.New("read from the server")
}

// dear is a tensor whose rows have elements from all over it.
type dear struct{ rows.Source }

func (dear) Cost() int64                               { return 800 }
func (dear) Raw(*[]byte, int64, int64) ([]byte, error) { return nil, errors.New("read") }

// TestOfServer checks that no weights are read from a server, and that the state of the files there counts.
func TestOfServer(t *testing.T) {
	m := stored(8, func(int) byte { return 1 })
	m.Tensors[0].Source = unread{m.Tensors[0].Source}
	m.Origin = []string{"commit 1"}
	one := of(t, m)
	m.Origin = []string{"commit 2"}
	if of(t, m) == one {
		t.Error("another commit")
	}
}

// TestOfColumns checks that files count in place of rows that are expensive to read.
func TestOfColumns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	m := stored(8, func(int) byte { return 1 })
	m.Tensors[0].Source, m.Files = dear{m.Tensors[0].Source}, []string{path}
	seen := map[string]bool{}
	for _, text := range []string{"one", "two"} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		seen[of(t, m)] = true
	}
	if len(seen) != 2 {
		t.Error("another file")
	}
}

// TestOfFile checks which changes of a file change its identity: all of a short file; of a long file those of its ends,
// of its size, and of long runs.
func TestOfFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write := func(size int64, at int64, change []byte) string {
		t.Helper()
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := f.Truncate(size); err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(change, at); err != nil {
			t.Fatal(err)
		}
		id, err := identity.OfFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return id.String()
	}
	one := []byte{1}
	const long = 65 << 20
	for _, size := range []int64{1, 1000, long} {
		want := write(size, 0, []byte{0})
		if write(size, 0, []byte{0}) != want || write(size, 0, one) == want || write(size, size-1, one) == want ||
			write(size+1, 0, []byte{0}) == want {
			t.Errorf("%d bytes", size)
		}
	}
	if write(1000, 500, one) == write(1000, 0, []byte{0}) {
		t.Error("a byte of a short file")
	}
	run := make([]byte, 2<<20)
	for i := range run {
		run[i] = 1
	}
	if write(long, 30<<20, run) == write(long, 0, []byte{0}) {
		t.Error("2 MiB of a long file")
	}
	if _, err := identity.OfFile(filepath.Dir(path)); !errors.Is(err, identity.ErrIrregular) {
		t.Errorf("a folder: %v", err)
	}
	if _, err := identity.OfFile(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
}

// BenchmarkOf takes the identity of a model of 100,000 tensors.
func BenchmarkOf(b *testing.B) {
	data := make([]byte, 1<<20)
	for i := range data {
		binary.LittleEndian.PutUint16(data[i&^1:], uint16(i))
	}
	m := &model.Model{Path: "m.gguf"}
	for range 100_000 {
		m.Tensors = append(m.Tensors, model.New("t", rows.Stored([]int64{4096, 128}, gguf.TypeF16, data, nil)))
	}
	for b.Loop() {
		if _, err := identity.Of(b.Context(), m); err != nil {
			b.Fatal(err)
		}
	}
}
