package writer

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
)

// scarce is a source that can be read left times; later reads call then first.
type scarce struct {
	*matrix
	left  *atomic.Int64
	then  func() error
	reads *atomic.Int64
}

func (s *scarce) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	s.reads.Add(b - a)
	if s.left.Add(-1) < 0 {
		if err := s.then(); err != nil {
			return nil, err
		}
	}
	return s.matrix.Raw(buf, a, b)
}

// resumable writes two models of two shards, whose sources can be read that
// many times. It returns the number of rows read.
func resumable(dir string, reads int64, then func() error, opt Options) ([]*Result, int64, error) {
	const rowLen, nRows = 256, 200
	x := make([]float32, rowLen*nRows)
	for i := range x {
		x[i] = float32(i%4093) / 64
	}
	x[5], x[rowLen*nRows-7] = 1e9, 1e9 // overflows
	clear(x[32:96])                    // displaced sub-blocks
	left, rows := &atomic.Int64{}, &atomic.Int64{}
	left.Store(reads)
	a, b := &scarce{newMatrix(x, rowLen, nRows), left, then, rows},
		&scarce{newMatrix(x[:rowLen*60], rowLen, 60), left, then, rows}
	model := func(name string, typ gguf.Type) (files []*File) {
		for i, src := range []*scarce{a, b} {
			files = append(files, &File{Path: filepath.Join(dir, gguf.ShardName(name, i, 2)),
				Tensors: []Tensor{{"t" + strconv.Itoa(i), typ, src, nil, nil}}})
		}
		return files
	}
	opt.AllowOverflow = true
	results, err := WriteSets(context.Background(), [][]*File{model("h", gguf.TypeF16), model("s", gguf.TypeIQ3_S),
		model("f", gguf.TypeF32)}, opt)
	return results, rows.Load(), err
}

const allRows = 260

// run returns a journal that resumes a run of that name.
func run(name string) *Journal {
	return &Journal{Facts: []Fact{{"run", name}}, Resume: true}
}

// TestResumeChild is a process that is killed while it writes.
func TestResumeChild(t *testing.T) {
	dir := os.Getenv("WRITER_RESUME")
	if dir == "" {
		return
	}
	_, _, err := resumable(dir, 30, func() error {
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		if err == nil {
			select {}
		}
		return err
	}, Options{Workers: 2, MaxBuffer: 1 << 15, Journal: run("same")})
	t.Fatal(err)
}

// TestResume continues writes that were killed or failed, with blocks of other sizes and
// other numbers of workers. The files and counts are those of a write that was
// never interrupted, and finished rows are not computed again.
func TestResume(t *testing.T) {
	clean := t.TempDir()
	want, n, err := resumable(clean, 1e6, nil, Options{})
	if err != nil || n != allRows || len(want[0].Overflows) == 0 || len(want[1].Displaced) == 0 {
		t.Fatal(n, err, want)
	}
	check := func(t *testing.T, dir string, got []*Result, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(contents(t, dir), contents(t, clean)) {
			t.Errorf("other files than of a write in one go: %v", entries(t, dir))
		}
		for i := range got {
			if got[i].Bytes != want[i].Bytes || got[i].DataBytes != want[i].DataBytes ||
				len(got[i].Overflows) != len(want[i].Overflows) || len(got[i].Displaced) != len(want[i].Displaced) {
				t.Errorf("%+v, want %+v", got[i], want[i])
			}
			for k := range got[i].Overflows {
				if got[i].Overflows[k] != want[i].Overflows[k] {
					t.Errorf("%+v, want %+v", got[i].Overflows, want[i].Overflows)
				}
			}
			for k := range got[i].Displaced {
				if got[i].Displaced[k] != want[i].Displaced[k] {
					t.Errorf("%+v, want %+v", got[i].Displaced, want[i].Displaced)
				}
			}
		}
	}
	killed := func(t *testing.T) string {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0], "-test.run=^TestResumeChild$")
		cmd.Env = append(os.Environ(), "WRITER_RESUME="+dir)
		if out, err := cmd.CombinedOutput(); err == nil || bytes.Contains(out, []byte("FAIL")) {
			t.Fatalf("the child was not killed: %v\n%s", err, out)
		}
		return dir
	}
	t.Run("killed", func(t *testing.T) {
		dir := killed(t)
		broken := errors.New("breaks")
		_, first, err := resumable(dir, 10, func() error { return broken },
			Options{Workers: 3, MaxBuffer: 1 << 15, Journal: run("same")})
		if !errors.Is(err, broken) {
			t.Fatal(err)
		}
		got, last, err := resumable(dir, 1e6, nil, Options{Workers: 1, Journal: run("same")})
		check(t, dir, got, err)
		if first > allRows*3/4 || last > allRows/2 || last == 0 {
			t.Errorf("%d and %d rows read of %d", first, last, allRows)
		}
	})
	leader := gguf.ShardName("h", 0, 2) + Suffix
	for name, change := range map[string]func(dir string) error{
		"data-lost": func(dir string) error {
			f, err := os.OpenFile(filepath.Join(dir, leader), os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteAt(make([]byte, 3000), 2000)
			return err
		},
		"log-torn": func(dir string) error {
			f, err := os.OpenFile(filepath.Join(dir, leader+progressSuffix), os.O_RDWR|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.Write(make([]byte, recordBytes+9))
			return err
		},
		"log-zeros": func(dir string) error {
			f, err := os.OpenFile(filepath.Join(dir, leader+progressSuffix), os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteAt(make([]byte, 30), 0)
			return err
		},
		"shard-lost": func(dir string) error {
			return os.Remove(filepath.Join(dir,
				gguf.ShardName("s", 1, 2)+Suffix))
		},
		"shard-shrunk": func(dir string) error {
			return os.Truncate(filepath.Join(dir,
				gguf.ShardName("s", 1, 2)+Suffix), 100)
		},
		"log-lost": func(dir string) error { return os.Remove(filepath.Join(dir, leader+progressSuffix)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := killed(t)
			if err := change(dir); err != nil {
				t.Fatal(err)
			}
			got, n, err := resumable(dir, 1e6, nil, Options{Journal: run("same")})
			check(t, dir, got, err)
			if name == "log-torn" && n > allRows/2 {
				t.Errorf("%d rows read: nothing was taken over", n)
			}
			if name == "data-lost" && n == 0 {
				t.Error("lost data were taken over")
			}
		})
	}
	t.Run("other-run", func(t *testing.T) {
		dir := killed(t)
		before := contents(t, dir)
		_, _, err := resumable(dir, 1e6, nil, Options{Journal: run("other")})
		if !errors.Is(err, fault.Refused) || !strings.Contains(err.Error(), "run was same, and is other") {
			t.Errorf("another run: %v", err)
		}
		if !maps.Equal(before, contents(t, dir)) {
			t.Errorf("a run that was refused has changed files: %v", entries(t, dir))
		}
		again := run("other")
		again.Restart = true
		got, n, err := resumable(dir, 1e6, nil, Options{Journal: again})
		check(t, dir, got, err)
		if n != allRows {
			t.Errorf("%d rows read, want all %d", n, allRows)
		}
	})
	t.Run("without", func(t *testing.T) { // what is left is an ordinary leftover
		dir := killed(t)
		got, n, err := resumable(dir, 1e6, nil, Options{})
		check(t, dir, got, err)
		if n != allRows {
			t.Errorf("%d rows read, want all %d", n, allRows)
		}
	})
}

// TestAlignment lays out a file of a large alignment: the padding takes no memory.
func TestAlignment(t *testing.T) {
	f := testFile(filepath.Join(t.TempDir(), "o"))
	f.Alignment = 1 << 30
	l := f.layout()
	if len(l.header()) > 1<<16 || l.tensors[0].off != 1<<30 || l.size < 2<<30 {
		t.Errorf("header of %d bytes, data at %d, %d bytes", len(l.header()), l.tensors[0].off, l.size)
	}
}
