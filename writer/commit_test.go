package writer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/fault"
	"ggforge/gguf"
)

// scene is a write of several files into a directory. The data contain the number of the edition.
type scene struct {
	name  string
	write func(dir string, edition int, opt Options) error
}

var scenes = []scene{
	{"sets", func(dir string, edition int, opt Options) error {
		one := []*File{{Path: filepath.Join(dir, "one.gguf"),
			Tensors: []Tensor{{"t", gguf.TypeF32, numbers(edition), nil, nil}}}}
		_, err := WriteSets(context.Background(), [][]*File{modelShards(dir, "m", edition), one}, opt)
		return err
	}},
	{"checkpoint", func(dir string, edition int, opt Options) error {
		c := &Checkpoint{Dir: dir, MaxShard: 1}
		for _, name := range []string{"a", "b"} {
			c.Tensors = append(c.Tensors, CheckpointTensor{Tensor{name, gguf.TypeF32, numbers(edition), nil, nil},
				safetensors.F32})
		}
		_, err := WriteCheckpoint(context.Background(), c, opt)
		return err
	}},
}

// numbers is a small tensor whose size is that of its edition, too: a later one
// has longer files.
func numbers(edition int) *matrix {
	return newMatrix(slices.Repeat([]float32{1 + float32(edition)/16}, 8*edition), 8, int64(edition))
}

func modelShards(dir, name string, edition int) []*File {
	files := make([]*File, 3)
	for i := range files {
		files[i] = &File{
			Path: filepath.Join(dir, gguf.ShardName(name, i, len(files))),
			Metadata: gguf.Metadata{{Key: gguf.KeySplitNo, Value: gguf.Uint16(uint16(i))},
				{Key: gguf.KeySplitCount, Value: gguf.Uint16(uint16(len(files)))},
				{Key: gguf.KeySplitTensors, Value: gguf.Int32(int32(len(files)))}},
			Tensors: []Tensor{{fmt.Sprint("t", i), gguf.TypeF32, numbers(edition), nil, nil}},
		}
	}
	return files
}

// contents returns the files of a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range entries(t, dir) {
		all[name] = string(read(t, filepath.Join(dir, name)))
	}
	return all
}

// edition returns which edition the scene's directory holds, 0 for none. There is
// nothing else in it.
func (s scene) edition(t *testing.T, dir string, editions []map[string]string) int {
	t.Helper()
	got := contents(t, dir)
	for i, want := range editions {
		if maps.Equal(got, want) {
			return i
		}
	}
	t.Errorf("%s: neither the old files nor the new ones: %v", s.name, slices.Sorted(maps.Keys(got)))
	return -1
}

// editions returns the files of a directory for each edition; edition 0 has none.
func (s scene) editions(t *testing.T) []map[string]string {
	t.Helper()
	list := []map[string]string{{}}
	for edition := 1; edition < 4; edition++ {
		dir := t.TempDir()
		if err := s.write(dir, edition, Options{}); err != nil {
			t.Fatal(err)
		}
		list = append(list, contents(t, dir))
	}
	return list
}

// readable checks that a reader of the directory gets files of one edition or an
// error, whatever state it is in.
func readable(t *testing.T, dir string) {
	t.Helper()
	seen := map[byte]bool{}
	if set, err := gguf.OpenSet(filepath.Join(dir, gguf.ShardName("m", 0, 3))); err == nil {
		for i, x := range set.Tensors() {
			seen[set.Files[i].Data(x)[2]] = true
		}
		set.Close()
	}
	if c, err := safetensorstest.OpenDir(dir); err == nil {
		for _, x := range c.Tensors() {
			seen[x.Data()[2]] = true
		}
		c.Close()
	}
	if len(seen) > 1 {
		t.Errorf("readers take a mixture for a model: %v", entries(t, dir))
	}
}

// steps returns the steps of writing an edition over the one before it.
func (s scene) steps(t *testing.T, dir string, edition int) (list []string) {
	t.Helper()
	err := s.write(dir, edition, Options{Force: true,
		step: func(step string) error { list = append(list, step); return nil }})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestCommitFails lets every step of a commit fail, over old files and without:
// all of the old ones are left, or all of the new ones, and nothing else.
func TestCommitFails(t *testing.T) {
	broken := errors.New("step fails")
	for _, s := range scenes {
		editions := s.editions(t)
		for old := range 2 {
			first := t.TempDir()
			if old > 0 {
				if err := s.write(first, 1, Options{}); err != nil {
					t.Fatal(err)
				}
			}
			steps := s.steps(t, first, 2)
			if len(steps) < 8 {
				t.Fatalf("%s: steps %q", s.name, steps)
			}
			for k := range steps {
				dir := t.TempDir()
				if old > 0 {
					if err := s.write(dir, 1, Options{}); err != nil {
						t.Fatal(err)
					}
				}
				n := 0
				err := s.write(dir, 2, Options{Force: true, step: func(string) error {
					if n++; n == k+1 {
						return broken
					}
					return nil
				}})
				if !errors.Is(err, broken) {
					t.Errorf("%s, step %q: got %v", s.name, steps[k], err)
				}
				readable(t, dir)
				// the new files are there; the next run sweeps
				if i := slices.Index(steps, "mark journal"); i >= 0 && k > i {
					if err := s.write(dir, 3, Options{}); !errors.Is(err, fault.Usage) {
						t.Errorf("%s, step %q: a run after it: %v", s.name, steps[k], err)
					}
					old := s.edition(t, dir, editions)
					if old != 2 {
						t.Errorf("%s, step %q: edition %d", s.name, steps[k], old)
					}
					continue
				}
				if got := s.edition(t, dir, editions); got != old {
					t.Errorf("%s, step %q fails: edition %d, want %d", s.name, steps[k], got, old)
				}
			}
		}
	}
}

// TestCommitKilled kills the process before every step of a commit, and the run
// that finishes it before one of its own. In all states readers see one edition
// or none; the next run leaves the old files or the new ones.
func TestCommitKilled(t *testing.T) {
	for _, s := range scenes {
		editions := s.editions(t)
		for old := range 2 {
			first := t.TempDir()
			if old > 0 {
				if err := s.write(first, 1, Options{}); err != nil {
					t.Fatal(err)
				}
			}
			steps := s.steps(t, first, 2)
			for k := range steps {
				if testing.Short() && k%4 != 1 {
					continue
				}
				dir := t.TempDir()
				if old > 0 {
					if err := s.write(dir, 1, Options{}); err != nil {
						t.Fatal(err)
					}
				}
				die(t, s.name, dir, 2, k, true)
				readable(t, dir)
				if k%2 == 1 { // kill the run that comes next, while it finishes what this one has begun
					die(t, s.name, dir, 2, k%5, false)
					readable(t, dir)
				}
				// without Force a run can only finish what has been begun
				err := s.write(dir, 3, Options{})
				want := []int{1, 2}
				if old == 0 && err == nil {
					want = []int{3} // there was nothing to finish
				} else if !errors.Is(err, fault.Usage) {
					t.Errorf("%s, killed before step %q: the next run: %v", s.name, steps[k], err)
				}
				sweep(t, s, dir)
				if got := s.edition(t, dir, editions); !slices.Contains(want, got) {
					t.Errorf("%s, killed before step %q: edition %d (%v)", s.name, steps[k], got, err)
				}
			}
		}
	}
}

// TestCommitGivenUp ends the process, as a second signal does, before every step of
// a commit up to the first rename: the old files are left, and nothing else.
func TestCommitGivenUp(t *testing.T) {
	t.Setenv("WRITER_GIVES_UP", "1")
	for _, s := range scenes {
		editions := s.editions(t)
		first := t.TempDir()
		if err := s.write(first, 1, Options{}); err != nil {
			t.Fatal(err)
		}
		for k, step := range s.steps(t, first, 2) {
			if strings.HasPrefix(step, "move") {
				break
			}
			dir := t.TempDir()
			if err := s.write(dir, 1, Options{}); err != nil {
				t.Fatal(err)
			}
			die(t, s.name, dir, 2, k, true)
			if got := s.edition(t, dir, editions); got != 1 {
				t.Errorf("%s, given up before step %q: edition %d, want 1", s.name, step, got)
			}
		}
	}
}

// sweep removes the temporary files that stay when the run after a killed one
// refuses to write: they are replaced by one that does.
func sweep(t *testing.T, s scene, dir string) {
	t.Helper()
	for _, name := range entries(t, dir) {
		if strings.HasSuffix(name, Suffix) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// die writes an edition in another process, which is killed before step k. If must
// is set, the child has to reach step k.
func die(t *testing.T, scene, dir string, edition, k int, must bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestCommitChild$")
	cmd.Env = append(os.Environ(), "WRITER_SCENE="+scene, "WRITER_DIR="+dir, fmt.Sprintf("WRITER_EDITION=%d", edition),
		fmt.Sprintf("WRITER_STEP=%d", k))
	out, err := cmd.CombinedOutput()
	if must && (err == nil || bytes.Contains(out, []byte("FAIL")) || bytes.Contains(out, []byte("PASS"))) {
		t.Fatalf("the child was not killed: %v\n%s", err, out)
	}
}

// TestCommitChild is the process that die starts.
func TestCommitChild(t *testing.T) {
	name := os.Getenv("WRITER_SCENE")
	if name == "" {
		return
	}
	edition, _ := strconv.Atoi(os.Getenv("WRITER_EDITION"))
	last, _ := strconv.Atoi(os.Getenv("WRITER_STEP"))
	i := slices.IndexFunc(scenes, func(s scene) bool { return s.name == name })
	n := 0
	err := scenes[i].write(os.Getenv("WRITER_DIR"), edition, Options{Force: true, step: func(string) error {
		if n++; n == last+1 {
			if os.Getenv("WRITER_GIVES_UP") != "" {
				RemovePartials(false)
				os.Exit(130)
			}
			self, err := os.FindProcess(os.Getpid())
			if err != nil {
				t.Fatal(err)
			}
			if err := self.Kill(); err != nil {
				t.Fatal(err)
			}
			select {}
		}
		return nil
	}})
	t.Log(err)
}

// TestForeignJournal writes into a directory that was copied while a commit in it
// was not finished, as a checkpoint from elsewhere might be: nothing in it is
// renamed or removed.
func TestForeignJournal(t *testing.T) {
	s := scenes[0]
	dir := t.TempDir()
	if err := s.write(dir, 1, Options{}); err != nil {
		t.Fatal(err)
	}
	k := slices.IndexFunc(s.steps(t, t.TempDir(), 2),
		func(step string) bool { return strings.HasPrefix(step, "rename") })
	die(t, s.name, dir, 2, k+4, true) // with some files aside
	copied := filepath.Join(t.TempDir(), "copied")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	before := contents(t, copied)
	err := s.write(copied, 3, Options{Force: true})
	if !errors.Is(err, fault.Usage) || !strings.Contains(err.Error(), "remove the journal") ||
		!strings.Contains(err.Error(), ".commit") {
		t.Errorf("got %v", err)
	}
	if !maps.Equal(contents(t, copied), before) {
		t.Errorf("the directory has changed: %v", entries(t, copied))
	}
	if err := s.write(dir, 3, Options{Force: true}); err != nil { // the original is finished
		t.Error(err)
	}
}
