package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/internal/kernel/cpu"
	"ggforge/publish/sign/signtest"
	"ggforge/test/buckettest"
)

// releasePlans are flags of releases whose models several processes share.
func releasePlans(source, text, key string) map[string][]string {
	flags := func(more ...string) []string {
		return append([]string{"--source", source, "--ctx-size", "16", "--threads", "1", "--progress", "none", "--quiet"},
			more...)
	}
	return map[string][]string{
		"matrix": flags("--type", "Q8_0", "--type", "Q4_0", "--type", "F16", "--calibrate", text, "--chunks", "2", "--evaluate",
			text, "--evaluate-chunks", "1", "--layout", "folders", "--pages", "--modelfile", "--provenance", "--key", key),
		"shards": flags("--type", "Q8_0", "--type", "Q4_1", "--split-max-size", "100K", "--evaluate", text, "--evaluate-chunks",
			"1"),
		"chosen": flags("--type", "Q4_0,bpw=6,types=Q4_0+Q8_0", "--type", "Q8_0", "--type", "Q5_0", "--calibrate", text,
			"--chunks", "2"),
		"divergence": flags("--type", "Q4_0,kld=0.001,types=Q4_0+Q8_0", "--type", "Q8_0", "--type", "Q5_0", "--calibrate", text,
			"--chunks", "2"),
		"blocks": flags("--type", "Q4_0", "--type", "Q5_0", "--type", "Q4_1", "--calibrate", text, "--chunks", "2", "--effort",
			"high"),
	}
}

// TestReleaseParts makes releases in parts, in random order, with kills at random calls of the file system, and compares
// all files with those of one process.
func TestReleaseParts(t *testing.T) {
	source, text := checkpointAndText(t)
	key, _ := signtest.Keys(t)
	rounds := 4
	if !cpu.HasVectors || testing.Short() {
		rounds = 1
	}
	for name, flags := range releasePlans(source, text, key) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			run := func(more ...string) []string { return slices.Concat([]string{"release"}, flags, more) }
			alone := filepath.Join(dir, "one", "out")
			if code, text := unsynced(run("--output", alone)); code != 0 {
				t.Fatalf("exit code %d: %s", code, text)
			}
			want := published(t, alone)
			if err := whole(want); err != nil || want["manifest.json"] == "" {
				t.Fatal(err)
			}
			random := rand.New(rand.NewPCG(5, uint64(len(name))))
			kills := 0
			for round := range rounds {
				out := filepath.Join(dir, fmt.Sprint("parts", round), "out")
				files := []string{"--output", out}
				if round%2 == 1 {
					files = append(files, "--part-files", filepath.Join(dir, fmt.Sprint("files", round)))
				}
				n := 1 + random.IntN(4)
				one := func(args []string) {
					for range random.IntN(4) {
						if !killed(t, random.IntN(60), args) {
							break
						}
						kills++
						if err := whole(published(t, out)); err != nil {
							t.Error(err)
						}
					}
					if code, text := unsynced(args); code != 0 {
						t.Fatalf("%q: exit code %d: %s", args, code, text)
					}
				}
				if code, text := unsynced(run(append(files, "--finish")...)); code != 7 {
					t.Errorf("without parts: exit code %d, want 7: %s", code, text)
				}
				for _, k := range random.Perm(n) {
					one(run(append(slices.Clone(files), "--part", fmt.Sprintf("%d/%d", k+1, n))...))
				}
				one(run(append(files, "--finish")...))
				if got := published(t, out); !maps.Equal(got, want) {
					t.Errorf("%d parts made other files: %q", n, different(got, want))
				}
				left, _ := filepath.Glob(filepath.Join(out, ".ggtool-release", "part-*"))
				more, _ := filepath.Glob(filepath.Join(dir, "files*", "part-*"))
				if left = append(left, more...); len(left) > 0 {
					var files []string
					for _, dir := range left {
						files = append(files, slices.Collect(maps.Keys(published(t, dir)))...)
					}
					t.Errorf("folders of parts are left: %q, with %q", left, files)
				}
				if code, text := unsynced(run(files[:2]...)); code != 0 || !maps.Equal(published(t, out), want) {
					t.Errorf("a release of one process changes it: exit code %d: %s", code, text)
				}
			}
			t.Logf("%d rounds, %d kills", rounds, kills)
		})
	}
}

// TestReleasePartsMissing names parts that are missing, damaged, of other inputs, or running, and leaves the previous
// release whole.
func TestReleasePartsMissing(t *testing.T) {
	source, text := checkpointAndText(t)
	out := filepath.Join(t.TempDir(), "out")
	args := func(more ...string) []string {
		return append([]string{"release", "--source", source, "--output", out, "--threads", "1", "--progress", "none",
			"--quiet", "--type", "Q8_0", "--type", "Q4_0", "--type", "Q5_0"}, more...)
	}
	run := func(code int, want string, more ...string) {
		t.Helper()
		got, text, err := call(args(more...)...)
		if text += fmt.Sprint(err); got != code || !strings.Contains(text, want) {
			t.Errorf("%q: exit code %d, want %d with %q: %s", more, got, code, want, text)
		}
	}
	run(7, "3 files are missing", "--finish")
	if _, err := os.Stat(filepath.Join(out, "SHA256SUMS")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	run(0, "", "--part", "2/3")
	run(7, "1/3: ", "--finish")
	run(7, "3/3: ", "--finish")
	run(0, "", "--part", "1/3")
	run(0, "", "--part", "3/3")
	parts, _ := filepath.Glob(filepath.Join(out, ".ggtool-release", "part-2-of-3", "*.gguf"))
	if len(parts) != 1 {
		t.Fatalf("%q", parts)
	}
	data, err := os.ReadFile(parts[0])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1]++
	if err := os.WriteFile(parts[0], data, 0o666); err != nil {
		t.Fatal(err)
	}
	run(7, "SHA-256 is ", "--finish")
	run(0, "", "--part", "2/3")
	run(7, "from other inputs or options", "--finish", "--split-max-size", "100K")
	run(0, "", "--finish")
	before := published(t, out)
	run(7, "are missing", "--finish", "--calibrate", text, "--ctx-size", "16", "--chunks", "1")
	if after := published(t, out); !maps.Equal(before, after) {
		t.Errorf("a release whose parts are missing changes the folder: %q", different(after, before))
	}
	run(0, "", "--finish") // nothing to do
	run(0, "", "--part", "1/1")
	if parts, _ := filepath.Glob(filepath.Join(out, ".ggtool-release", "part-*", "*.gguf")); parts != nil {
		t.Errorf("models that are there already are made again: %q", parts)
	}
	run(2, "want one of them", "--part", "1/2", "--finish")
	run(2, "part 3, want 1 to 2", "--part", "3/2")
	run(2, "--push", "--part", "1/2", "--push", "s3://bucket/p")
}

// TestReleasePartsPush finishes a release in parts whose push is interrupted, and whose measurements are lost: the next
// --finish makes them again and sends the files of one process.
func TestReleasePartsPush(t *testing.T) {
	source, text := checkpointAndText(t)
	s := buckettest.Serve(t, "", "")
	flags := []string{"release", "--source", source, "--type", "Q8_0", "--type", "Q4_0", "--evaluate", text,
		"--evaluate-chunks", "1", "--ctx-size", "16", "--threads", "1", "--progress", "none", "--quiet"}
	run := func(want int, more ...string) {
		t.Helper()
		if code, text := unsynced(append(slices.Clone(flags), more...)); code != want {
			t.Fatalf("%q: exit code %d, want %d: %s", more, code, want, text)
		}
	}
	alone, out := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "out")
	run(0, "--output", alone)
	want := published(t, alone)
	to := []string{"--output", out, "--push", "s3://bucket/r"}
	run(7, append(to, "--finish")...)
	if names := s.Names(); len(names) > 0 {
		t.Errorf("sent without parts: %q", names)
	}
	run(0, "--output", out, "--part", "2/2")
	run(7, append(to, "--finish")...)
	run(0, "--output", out, "--part", "1/2")
	s.SetAnswer(func(n int, w http.ResponseWriter, r *http.Request) bool {
		if n < 20 {
			return false
		}
		buckettest.Fail(w, 403, "AccessDenied")
		return true
	})
	run(5, append(to, "--finish")...)
	s.SetAnswer(nil)
	lost := 0
	for name := range want { // figures and what is made of them
		if strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".md") {
			if err := os.Remove(filepath.Join(out, name)); err != nil {
				t.Fatal(err)
			}
			lost++
		}
	}
	run(0, append(to, "--finish")...)
	if got := published(t, out); lost < 2 || !maps.Equal(got, want) {
		t.Errorf("%d files lost: other files than those of one process: %q", lost, different(got, want))
	}
	for name := range want {
		data, err := os.ReadFile(filepath.Join(alone, name))
		if err != nil || !bytes.Equal(s.Get("bucket/r/"+name), data) {
			t.Errorf("%s was not sent as one process makes it: %v", name, err)
		}
	}
}

// TestReleaseSubmit checks the commands of releases in parts.
func TestReleaseSubmit(t *testing.T) {
	slurm := expect(t, "submit", "slurm", "--parts", "4", "--")
	slurm(0, "'ggtool' 'release' '--part' 'auto/4' '/nowhere/plan.yaml' &", "ggtool", "release", "--push", "hf://o/m",
		"--private", "/nowhere/plan.yaml")
	slurm(0, "'ggtool' 'release' '--finish' '--push' 'hf://o/m' '--private' '/nowhere/plan.yaml' &", "ggtool", "release",
		"--push", "hf://o/m", "--private", "/nowhere/plan.yaml")
	slurm(2, "did you mean --type", "ggtool", "release", "--typ", "Q8_0", "--source", "s", "--output", "o")
	slurm(2, "the command would write nothing", "ggtool", "release", "--dry-run", "plan.yaml")
	slurm(2, "with one of [release]", "ggtool", "push", "a", "hf://o/m")
	expect(t, "submit", "k8s", "--image", "i", "--parts", "4", "--")(2, "the machines share no disk", "ggtool", "release",
		"plan.yaml")
}
