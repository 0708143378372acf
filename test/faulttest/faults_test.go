package faulttest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ggforge/internal/io/disk"
	"ggforge/writer"
)

var (
	all  = flag.Bool("faults.all", false, "every call and every kind of fault, instead of a sample")
	seed = flag.Uint64("faults.seed", 1, "seed of the random choices")
	part = flag.String("faults.share", "0/1", "`K/N`: of the faults of -faults.all every Nth one, from the Kth, which is from 0")
)

// share returns K and N of -faults.share.
func share(t testing.TB) (k, n int) {
	if _, err := fmt.Sscanf(*part, "%d/%d", &k, &n); err != nil || n < 1 || k < 0 || k >= n {
		t.Fatalf("-faults.share %s: want K/N", *part)
	}
	return k, n
}

// sample is how many faults are injected for each scene, manner and kind without -faults.all.
const sample = 1

// ours matches the names of temporary files, which runs leave when they are killed.
var ours = regexp.MustCompile(
	`\.partial(\.|$)|^ggforge-[0-9a-f]{16}(\.commit|\.done|-\d+\.old)$|^\.ggforge-|\.part-\d+-of-\d+`)

// manner is a way to write: first is the journal of the run with a fault, next that of the run after it.
type manner struct {
	name        string
	first, next *writer.Journal
}

var facts = []writer.Fact{{Name: "made by", Value: "a test"}}

var manners = []manner{
	{"", nil, nil},
	{" with a journal", &writer.Journal{Facts: facts}, &writer.Journal{Facts: facts, Resume: true}},
	{" resumable", &writer.Journal{Facts: facts, Resume: true}, &writer.Journal{Facts: facts, Resume: true}},
}

// tree returns the files below a folder.
func tree(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	list := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		list[name], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// stage is a scene that is set up.
type stage struct {
	scene
	dir      string
	old, new map[string][]byte // files in DIR/out before and after
	random   *rand.Rand
}

func setUp(t testing.TB, s scene) *stage {
	st := &stage{scene: s, dir: t.TempDir(), random: rand.New(rand.NewPCG(*seed, 0))}
	for _, d := range []string{"in", "out", "removed"} {
		if err := os.Mkdir(filepath.Join(st.dir, d), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if s.prepare != nil {
		s.prepare(t, st.dir)
	}
	st.old = tree(t, filepath.Join(st.dir, "out"))
	return st
}

// reset restores the files as they were before the first run.
func (s *stage) reset(t testing.TB) {
	for _, d := range []string{"out", "removed", "parts"} {
		if err := os.RemoveAll(filepath.Join(s.dir, d)); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"out", "removed"} {
		if err := os.Mkdir(filepath.Join(s.dir, d), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range s.old {
		put(t, filepath.Join(s.dir, "out", name), data)
	}
}

// scraps matches the names of files that stay when a run is killed, and that no later run reads: each run has its own
// names for them.
var scraps = regexp.MustCompile(`^\.ggforge-|\.partial\.run\.\d+$`)

// results returns the files in DIR/out after a run that succeeded, but for scraps of the one before.
func (s *stage) results(t testing.TB) map[string][]byte {
	files := tree(t, filepath.Join(s.dir, "out"))
	maps.DeleteFunc(files, func(name string, _ []byte) bool { return scraps.MatchString(filepath.Base(name)) })
	return files
}

// act runs the scene under a hook.
func (s *stage) act(in *injector, j *writer.Journal) error {
	remove := disk.Install(in.hook)
	defer remove()
	return s.run(context.Background(), s.dir, j)
}

// describe lists the files of a folder.
func describe(files map[string][]byte) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		list = append(list, fmt.Sprintf("%s (%d bytes)", name, len(files[name])))
	}
	return strings.Join(list, ", ")
}

// judge compares the files after a run that returned err with the old and the new ones.
func (s *stage) judge(in *injector, err error, kept bool) error {
	now := map[string][]byte{}
	out := filepath.Join(s.dir, "out")
	var rest []string
	midCommit := false
	if e := filepath.WalkDir(out, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, _ := filepath.Rel(out, path)
		if ours.MatchString(filepath.Base(name)) {
			rest = append(rest, name)
			midCommit = midCommit || strings.HasSuffix(name, ".commit")
			return nil
		}
		now[name], err = os.ReadFile(path)
		return err
	}); e != nil {
		return e
	}
	if err == nil && in.kind != nil && in.kind.dies && in.struck && !maps.EqualFunc(now, s.new, bytes.Equal) {
		return fmt.Errorf("the run reports success, but the folder has %s", describe(now))
	}
	olds, news, lost := 0, 0, 0
	for _, name := range slices.Sorted(maps.Keys(union(s.old, s.new))) {
		before, was := s.old[name]
		after, is := s.new[name]
		got, there := now[name]
		switch {
		case there && is && bytes.Equal(got, after):
			news++
		case there && was && bytes.Equal(got, before):
			olds++
		case !there && !was:
			olds++
		case !there:
			lost++
		case s.midway != nil && s.midway(filepath.Join(out, name)) == nil:
		default:
			return fmt.Errorf("%s: neither the old file nor the new one, %d bytes", name, len(got))
		}
		delete(now, name)
	}
	if len(now) > 0 {
		return fmt.Errorf("unexpected files: %s", describe(now))
	}
	if lost > 0 && !midCommit {
		return fmt.Errorf("%d files are gone, and no journal names their places", lost)
	}
	if olds > 0 && news > 0 && !midCommit && !s.mixes {
		return fmt.Errorf("%d old files and %d new ones, and no journal", olds, news)
	}
	if err == nil && news < len(s.new) {
		return fmt.Errorf("the run reports success with %d new files of %d", news, len(s.new))
	}
	if in.kind != nil && !in.kind.dies && len(rest) > 0 && !kept && !in.excused() {
		return fmt.Errorf("leftover files: %v", rest)
	}
	return nil
}

// excused reports whether leftover files are allowed after the fault: a removal failed, or a name exists although the
// system reported that it does not.
func (in *injector) excused() bool {
	op, _, _ := strings.Cut(in.what, " ")
	return op == disk.OpRemove || strings.HasPrefix(in.kind.name, "done") && (op == disk.OpOpen || op == disk.OpRename)
}

func union(a, b map[string][]byte) map[string][]byte {
	c := maps.Clone(a)
	maps.Copy(c, b)
	return c
}

// tally counts what happened.
type tally struct{ faults, failed, succeeded int }

// try makes call number at fail. It reports whether there was such a call, and whether the run failed.
func (s *stage) try(t *testing.T, m manner, k *kind, at int) (struck bool, failed bool) {
	t.Helper()
	return s.runWith(t, m, k, &injector{kind: k, at: at, random: s.random})
}

// runWith runs the scene with an injector, judges the files, and runs the scene again without faults.
func (s *stage) runWith(t *testing.T, m manner, k *kind, in *injector) (struck bool, failed bool) {
	t.Helper()
	s.reset(t)
	if k.name == "power lost" {
		in.power = &power{root: filepath.Join(s.dir, "out"), removed: filepath.Join(s.dir, "removed")}
	}
	err := s.act(in, m.first)
	if !in.struck {
		if err != nil {
			t.Fatalf("without a fault: %v", err)
		}
		return false, false
	}
	bad := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s%s, %s, call %d: %s: error %v: %s", s.name, m.name, k.name, in.at, in.what, err,
			fmt.Sprintf(format, args...))
	}
	if in.power != nil {
		in.power.fail(t, s.random)
	}
	if k.harmless && err != nil {
		bad("want none")
	}
	if e := s.judge(in, err, s.keeps || writer.Resumable(err)); e != nil {
		bad("%v", e)
	}
	next := &injector{random: s.random}
	if e := s.act(next, m.next); e != nil {
		bad("the next run: %v", e)
	} else if now := s.results(t); !maps.EqualFunc(now, s.new, bytes.Equal) {
		bad("after the next run there are %s", describe(now))
	}
	return true, err != nil
}

// TestFaults runs every scene with one fault at a time.
func TestFaults(t *testing.T) {
	total, index := tally{}, 0
	first, step := share(t)
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			st := setUp(t, s)
			sum := tally{}
			for _, m := range manners {
				if m.first != nil && !s.journals {
					continue
				}
				st.reset(t)
				count := &injector{}
				if err := st.act(count, m.first); err != nil {
					t.Fatal(err)
				}
				st.new = tree(t, filepath.Join(st.dir, "out"))
				for i := range kinds {
					k := &kinds[i]
					if k.rots && !s.verifies {
						continue
					}
					var at []int
					for n, op := range count.ops {
						if k.applies(op) {
							at = append(at, n)
						}
					}
					if !*all && len(at) > sample {
						st.random.Shuffle(len(at), func(a, b int) { at[a], at[b] = at[b], at[a] })
						at = at[:sample]
					}
					for _, n := range at {
						if index++; *all && (index-1)%step != first {
							continue
						}
						struck, failed := st.try(t, m, k, n)
						if struck {
							sum.faults++
						}
						if failed {
							sum.failed++
						} else if struck {
							sum.succeeded++
						}
					}
				}
			}
			t.Logf("%d faults: %d runs failed, %d succeeded with the right files", sum.faults, sum.failed,
				sum.succeeded)
			total.faults, total.failed, total.succeeded = total.faults+sum.faults, total.failed+sum.failed,
				total.succeeded+sum.succeeded
		})
	}
	t.Logf("%d faults in %d scenes: %d runs failed, %d succeeded with the right files; seed %d",
		total.faults, len(scenes),
		total.failed, total.succeeded, *seed)
	if total.faults == 0 {
		t.Error("no faults")
	}
}

// TestTornJournals has the power fail when the journal of a change of names is to be synced, again and again:
// whatever is left of it, even zeros, is removed by the next run.
func TestTornJournals(t *testing.T) {
	at := slices.IndexFunc(kinds, func(k kind) bool { return k.name == "power lost" })
	for _, s := range scenes {
		if s.name != "shards" && s.name != "models replaced" && s.name != "part files" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			st := setUp(t, s)
			st.reset(t)
			if err := st.act(&injector{}, nil); err != nil {
				t.Fatal(err)
			}
			st.new = tree(t, filepath.Join(st.dir, "out"))
			for range 16 {
				in := &injector{kind: &kinds[at], random: st.random,
					on: func(c disk.Call) bool { return c.Op == disk.OpSync && strings.HasSuffix(c.Path, ".commit") }}
				if struck, _ := st.runWith(t, manners[0], in.kind, in); !struck {
					t.Fatal("no journal")
				}
			}
		})
	}
}
