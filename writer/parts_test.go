package writer

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/disk"
	"ggforge/test/filetest"
)

// part returns the journal of part k of n.
func part(dir string, k, n int) *Journal {
	return &Journal{Facts: []Fact{{"run", "same"}}, Part: k, Parts: n, PartDir: dir}
}

// finish returns the journal of the process that puts parts together.
func finish(dir string) *Journal {
	return &Journal{Facts: []Fact{{"run", "same"}}, Finish: true, PartDir: dir}
}

// TestParts writes several models in parts: in any order, repeatedly, interrupted, at the same time, and cut in other
// ways. The result is that of one run.
func TestParts(t *testing.T) {
	clean := t.TempDir()
	want, _, err := resumable(clean, 1e6, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	const n = 5
	for name, ownFiles := range map[string]bool{"shared": false, "own files": true} {
		t.Run(name, func(t *testing.T) {
			dir, parts := t.TempDir(), ""
			if ownFiles {
				parts = t.TempDir()
			}
			write := func(j *Journal, opt Options) (int64, []*Result, error) {
				opt.Journal = j
				got, rows, err := resumable(dir, 1e6, nil, opt)
				return rows, got, err
			}
			if _, _, err := write(finish(parts), Options{}); !errors.Is(err, fault.Incomplete) {
				t.Errorf("finished without parts: %v", err)
			}
			// part 2 breaks off, and 4 stays away
			broken := errors.New("breaks")
			if _, _, err := resumable(dir, 5, func() error { return broken },
				Options{Workers: 1, MaxBuffer: 1, Journal: part(parts, 2, n)}); !errors.Is(err, broken) ||
				!Resumable(err) {
				t.Fatal(err)
			}
			for _, k := range []int{5, 3, 1} {
				rows, _, err := write(part(parts, k, n), Options{Workers: k})
				if err != nil || rows == 0 || rows > allRows/2 {
					t.Fatalf("part %d: %d rows, %v", k, rows, err)
				}
			}
			_, _, err := write(finish(parts), Options{})
			if !errors.Is(err, fault.Incomplete) ||
				!strings.Contains(err.Error(), "2 of 5 parts are incomplete, run them again: 2, 4") {
				t.Errorf("finished without 2 and 4: %v", err)
			}
			other := part(parts, 4, n)
			other.Facts = []Fact{{"run", "other"}}
			if _, _, err := write(other, Options{}); !errors.Is(err, fault.Refused) && !ownFiles {
				t.Errorf("part of another run: %v", err)
			} else if ownFiles {
				if err != nil {
					t.Fatal(err)
				}
				if _, _, err := write(finish(parts), Options{}); !errors.Is(err, fault.Refused) ||
					!strings.Contains(err.Error(), "run was other, and is same") {
					t.Errorf("finished with a part of another run: %v", err)
				}
				for _, m := range []string{"f", "h", "s"} {
					if err := os.Remove(filepath.Join(parts, gguf.ShardName(m, 0, 2)+".part-4-of-5")); err != nil {
						t.Fatal(err)
					}
				}
			}
			if _, _, err := write(part(parts, 1, 7), Options{}); !ownFiles && (!errors.Is(err, fault.Refused) ||
				!strings.Contains(err.Error(), "parts was 5, and is 7")) {
				t.Errorf("part of 7: %v", err)
			} else if ownFiles {
				if _, _, err := write(finish(parts), Options{}); !errors.Is(err, fault.Refused) {
					t.Errorf("finished with parts of 5 and of 7: %v", err)
				}
				for _, m := range []string{"f", "h", "s"} {
					if err := os.Remove(filepath.Join(parts, gguf.ShardName(m, 0, 2)+".part-1-of-7")); err != nil {
						t.Fatal(err)
					}
				}
			}
			if _, _, err := write(run("same"), Options{}); !ownFiles && !errors.Is(err, fault.Usage) {
				t.Errorf("a run of its own while there are parts: %v", err)
			} else if ownFiles {
				if err != nil {
					t.Fatal(err)
				}
				for name := range contents(t, dir) {
					os.Remove(filepath.Join(dir, name))
				}
			}
			done := make(chan error)
			for _, k := range []int{4, 2} {
				go func() {
					_, _, err := write(part(parts, k, n), Options{})
					done <- err
				}()
			}
			for range 2 {
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			}
			if rows, _, err := write(part(parts, 3, n), Options{MaxBuffer: 1}); err != nil || rows != 0 {
				t.Errorf("part 3 again: %d rows read, %v", rows, err)
			}
			for name := range contents(t, dir) {
				if !strings.Contains(name, Suffix) {
					t.Errorf("%s is there before it is finished", name)
				}
			}
			_, got, err := write(finish(parts), Options{Verify: true})
			if err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(contents(t, dir), contents(t, clean)) {
				t.Errorf("other files than of a write in one go: %v", entries(t, dir))
			}
			if ownFiles && len(contents(t, parts)) > 0 {
				t.Errorf("left: %v", entries(t, parts))
			}
			for i := range got {
				if !slices.Equal(got[i].Overflows, want[i].Overflows) ||
					!slices.Equal(got[i].Displaced, want[i].Displaced) || got[i].DataBytes != want[i].DataBytes {
					t.Errorf("%+v, want %+v", got[i], want[i])
				}
			}
		})
	}
}

// TestPartsDamaged damages files of parts: finishing reports it, and running the part again repairs it.
func TestPartsDamaged(t *testing.T) {
	clean := t.TempDir()
	if _, _, err := resumable(clean, 1e6, nil, Options{}); err != nil {
		t.Fatal(err)
	}
	leader := gguf.ShardName("h", 0, 2)
	for _, c := range []struct {
		name, file string
		ownFiles   bool
		at         int64 // from the end if it is negative
	}{
		{"data", leader + Suffix, false, 2000},
		{"journal", leader + Suffix + ".1-of-2" + progressSuffix, false, -30},
		{"part", leader + ".part-1-of-2", true, 2000},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, parts := t.TempDir(), ""
			folder := dir
			if c.ownFiles {
				parts = t.TempDir()
				folder = parts
			}
			for k := 1; k <= 2; k++ {
				if _, _, err := resumable(dir, 1e6, nil, Options{Journal: part(parts, k, 2)}); err != nil {
					t.Fatal(err)
				}
			}
			f, err := os.OpenFile(filepath.Join(folder, c.file), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			at := c.at
			if st, err := f.Stat(); err == nil && at < 0 {
				at += st.Size()
			}
			if _, err := f.WriteAt([]byte{1, 2, 3, 4, 5}, at); err != nil {
				t.Fatal(err)
			}
			f.Close()
			if _, _, err := resumable(dir, 1e6, nil, Options{Journal: finish(parts)}); !errors.Is(err,
				fault.Incomplete) || !strings.HasSuffix(err.Error(), ": 1") {
				t.Fatalf("finished with damaged rows: %v", err)
			}
			if _, n, err := resumable(dir, 1e6, nil, Options{Journal: part(parts, 1, 2)}); err != nil || n == 0 {
				t.Fatal(n, err)
			}
			if _, _, err := resumable(dir, 1e6, nil, Options{Journal: finish(parts)}); err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(contents(t, dir), contents(t, clean)) {
				t.Errorf("other files than of a write in one go: %v", entries(t, dir))
			}
		})
	}
}

// TestShare cuts jobs into parts: they cover all rows, each once, and differ in work by a block at most.
func TestShare(t *testing.T) {
	source := func(ne ...int64) *job {
		m := &matrix{ne: ne}
		o := &placed{Tensor: Tensor{Type: gguf.TypeQ4_K, Source: m}}
		return &job{source: m, ne: ne, outputs: []*placed{o}}
	}
	for _, n := range []int{1, 2, 3, 16, 1000, maxParts} {
		p := &pool{jobs: []*job{source(256, 10), source(4096, 14336, 128), source(7168, 129280), source(256, 1),
			source(0, 5), source(1<<20, 3)}}
		all, block := int64(0), int64(0)
		for _, j := range p.jobs {
			all += j.workOf(gguf.Rows(j.ne) * gguf.RowLen(j.ne))
			block = max(block, j.workOf(gguf.RowLen(j.ne)))
		}
		at := make([]int64, len(p.jobs))
		for k := 1; k <= n; k++ {
			p.share(k, n)
			work := int64(0)
			for i, j := range p.jobs {
				if j.lo != at[i] || j.hi < j.lo {
					t.Fatalf("part %d of %d: rows %d to %d of tensor %d, want them to begin with %d", k, n, j.lo,
						j.hi, i, at[i])
				}
				at[i] = j.hi
				work += j.workOf((j.hi - j.lo) * gguf.RowLen(j.ne))
			}
			if d := work - all/int64(n); d > 2*block || d < -2*block {
				t.Errorf("part %d of %d: work %d, want %d", k, n, work, all/int64(n))
			}
		}
		for i, j := range p.jobs {
			if at[i] != gguf.Rows(j.ne) {
				t.Errorf("%d parts: tensor %d is written up to row %d of %d", n, i, at[i], gguf.Rows(j.ne))
			}
		}
	}
}

// TestTerminated cancels writes: without Resume the files stay if the cause is ErrTerminated, and only then.
func TestTerminated(t *testing.T) {
	for _, c := range []struct {
		cause error
		kept  bool
	}{{ErrTerminated, true}, {context.Canceled, false}} {
		dir := t.TempDir()
		ctx, stop := context.WithCancelCause(context.Background())
		f := testFile(filepath.Join(dir, "o"))
		f.Tensors[1].Source = &scarce{matrix: f.Tensors[1].Source.(*matrix), left: counter(2), reads: counter(0),
			then: func() error { stop(c.cause); return nil }}
		_, err := Write(ctx, f, Options{Workers: 1, Journal: &Journal{Facts: []Fact{{"run", "same"}}}})
		if !errors.Is(err, context.Canceled) || Resumable(err) != c.kept || (len(entries(t, dir)) > 0) != c.kept {
			t.Errorf("%v: %v, left: %v", c.cause, err, entries(t, dir))
		}
		if !c.kept {
			continue
		}
		if _, err := Write(t.Context(), testFile(filepath.Join(dir, "o")),
			Options{Journal: run("same"), Verify: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := Write(t.Context(), testFile(filepath.Join(dir, "want")), Options{}); err != nil {
			t.Fatal(err)
		}
		if string(read(t, filepath.Join(dir, "o"))) != string(read(t, filepath.Join(dir, "want"))) ||
			len(entries(t, dir)) != 2 {
			t.Errorf("another file: %v", entries(t, dir))
		}
	}
}

// TestVerify damages a file between writing and reading back.
func TestVerify(t *testing.T) {
	for _, at := range []int64{30, 5000} { // in the header, in rows
		dir := t.TempDir()
		f := testFile(filepath.Join(dir, "o"))
		damage := &File{Path: f.Path, Metadata: f.Metadata, Tensors: f.Tensors}
		l := damage.layout()
		plain := l.check
		l.check = func(path string) error {
			if err := plain(path); err != nil {
				return err
			}
			w, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer w.Close()
			_, err = w.WriteAt([]byte{0xa5, 0x5a}, at)
			return err
		}
		_, err := write(t.Context(), []set{{files: []layout{l}}}, Options{Journal: &Journal{}, Verify: true})
		if err == nil || !strings.Contains(err.Error(), " on the disk differ") || len(entries(t, dir)) > 0 {
			t.Errorf("byte %d: %v, left: %v", at, err, entries(t, dir))
		}
	}
}

// TestFacts changes an input, and facts of the caller: resuming is refused, with the reason.
func TestFacts(t *testing.T) {
	dir := t.TempDir()
	input := filepath.Join(dir, "in.bin")
	broken := errors.New("breaks")
	write := func(value string, left int64) error {
		f := testFile(filepath.Join(dir, "o"))
		f.Tensors[1].Source = &scarce{matrix: f.Tensors[1].Source.(*matrix), left: counter(left), reads: counter(0),
			then: func() error { return broken }}
		_, err := Write(t.Context(), f, Options{Inputs: []string{input},
			Journal: &Journal{Facts: []Fact{{"--outtype", value}}, Resume: true}})
		return err
	}
	for _, c := range []struct {
		text, value string
		touch       time.Duration
		want        string
	}{
		{"abc", "f16", 0, ""},
		{"abd", "f16", 0, "input in.bin was 3 bytes"},
		{"abc", "bf16", 0, "--outtype was f16, and is bf16"},
		{"abc", "f16", time.Second, "modified"},
	} {
		when := time.Unix(1e9, 0)
		if err := errors.Join(os.WriteFile(input, []byte("abc"), 0o666), os.Chtimes(input, when, when)); err != nil {
			t.Fatal(err)
		}
		if err := write("f16", 1); !errors.Is(err, broken) || !Resumable(err) {
			t.Fatal(err)
		}
		when = when.Add(c.touch)
		if err := errors.Join(os.WriteFile(input, []byte(c.text), 0o666), os.Chtimes(input, when, when)); err != nil {
			t.Fatal(err)
		}
		err := write(c.value, 1e6)
		if c.want == "" {
			if err != nil {
				t.Fatal(err)
			}
			os.Remove(filepath.Join(dir, "o"))
		} else if !errors.Is(err, fault.Refused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
		for name := range contents(t, dir) {
			if strings.HasPrefix(name, "o.") {
				os.Remove(filepath.Join(dir, name))
			}
		}
	}
}

// FuzzHead reads any text as the head of a journal.
func FuzzHead(f *testing.F) {
	f.Add((&set{}).head([]Fact{{"a", "b"}}))
	f.Add([]byte(journalMagic + `00000000 [{"Name":"a","Value":"b"}]` + "\n"))
	f.Add(make([]byte, 40))
	f.Add([]byte("of another program\n\n"))
	f.Add([]byte(journalMagic + "[]"))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		head, torn, err := readHead(strings.NewReader(string(text)))
		if err != nil || torn == (head != nil) {
			t.Fatalf("%q, %v, %v", head, torn, err)
		}
		want := (&set{}).head([]Fact{{"a", "b"}})
		if err := sameRun("x", head, want); (err == nil) != (string(head) == string(want)) {
			t.Errorf("%q: %v", head, err)
		}
	})
}

// FuzzPart reads any bytes as the file of a part: accepted rows match their checksums.
func FuzzPart(f *testing.F) {
	layoutOf := func(dir string) *output {
		file := &File{Path: filepath.Join(dir, "o"),
			Tensors: []Tensor{{"t", gguf.TypeF16, &matrix{ne: []int64{32, 4}, data: make([]byte, 4*128)}, nil, nil}}}
		o := &output{set: set{files: []layout{file.layout()}}, result: &Result{}}
		for i, l := range o.files {
			for k, t := range l.tensors {
				t.fileNo, t.tensorNo, t.result = i, k, o.result
			}
		}
		return o
	}
	dir := f.TempDir()
	o := layoutOf(dir)
	opt := Options{Journal: part(dir, 1, 1)}
	facts, err := opt.Journal.facts(nil)
	if err == nil {
		err = o.openOwnFile(context.Background(), facts, opt)
	}
	if err == nil {
		t := o.files[0].tensors[0]
		t.log = o.log
		err = t.put(span{a: 0, b: 4}, make([]byte, 256))
	}
	if err == nil {
		err = o.endPart()
	}
	if err != nil {
		f.Fatal(err)
	}
	o.log.close(false)
	text, err := os.ReadFile(o.partFile(dir, 1, 1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(text[:len(text)-10])
	head := len(o.head(withParts(facts, 1)))
	// All executions have the same file: making a new one takes longer than reading it. A part that is accepted has the name
	// of one that is not complete.
	dir = f.TempDir()
	name := o.partFile(dir, 1, 1)
	file, err := disk.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666) // can be renamed while it is open, on Windows, too
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { file.Close() })
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.Rename(name+Suffix, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		o := layoutOf(dir)
		filetest.Refill(t, file.OS(), append(o.head(withParts(facts, 1)), text[min(len(text), head):]...))
		opt := Options{Journal: part(dir, 1, 1)}
		if err := o.openOwnFile(context.Background(), facts, opt); err != nil {
			t.Fatal(err)
		}
		o.log.close(false)
		for _, s := range o.files[0].tensors[0].done {
			if s.a < 0 || s.b > 4 || s.a >= s.b {
				t.Errorf("rows %d to %d of 4", s.a, s.b)
			}
		}
	})
}

func counter(n int64) *atomic.Int64 {
	c := &atomic.Int64{}
	c.Store(n)
	return c
}

// TestPartBusy runs a part, and puts parts together, while the part is being written.
func TestPartBusy(t *testing.T) {
	dir := t.TempDir()
	looked := false
	_, _, err := resumable(dir, 0, func() error {
		if looked {
			return nil
		}
		looked = true
		if _, _, err := resumable(dir, 1e6, nil, Options{Journal: part("", 1, 2)}); !errors.Is(err, errLocked) ||
			fault.Has(err) {
			t.Errorf("the same part: %v, want an error that may go by", err)
		}
		if _, _, err := resumable(dir, 1e6, nil, Options{Journal: finish("")}); !errors.Is(err, fault.Incomplete) ||
			errors.Is(err, fault.Usage) {
			t.Errorf("finished: %v", err)
		}
		if _, _, err := resumable(dir, 1e6, nil, Options{Journal: part("", 2, 2)}); err != nil {
			t.Error(err)
		}
		return nil
	}, Options{Workers: 1, Journal: part("", 1, 2)})
	if err != nil || !looked {
		t.Error(err)
	}
}
