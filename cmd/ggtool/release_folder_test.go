package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/publish/release"
	"ggforge/test/clitest"
	"ggforge/writer"
)

// tiny makes a GGUF file as a source, and returns it and the flags for a release of it into out.
func tiny(t *testing.T, dir, out string) (source string, flags []string) {
	t.Helper()
	tensors := []gguf.Tensor{{Name: "output.weight", NE: []int64{256, 64}, Type: gguf.TypeF32}}
	m := gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: gguf.KeyName, Value: gguf.String("Tiny")}}
	source = filepath.Join(dir, "in.gguf")
	if err := os.WriteFile(source, append(gguf.AppendHeader(nil, m, tensors, 32),
		make([]byte, gguf.Layout(tensors, 32))...), 0o666); err != nil {
		t.Fatal(err)
	}
	return source, []string{"--source", source, "--output", out, "--progress", "none"}
}

// parsed decodes the JSON in a command's output, which may have warnings before it.
func parsed(t *testing.T, out string, to *releaseResult) {
	t.Helper()
	begin, end := strings.Index(out, "{"), strings.LastIndex(out, "}")
	if begin < 0 || end < begin {
		t.Fatalf("no JSON: %s", out)
	}
	if err := json.Unmarshal([]byte(out[begin:end+1]), to); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, path, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestReleaseNamesOfModels names models like other files of a release: either all files are there, each once, or the
// plan is refused before anything is written.
func TestReleaseNamesOfModels(t *testing.T) {
	source, text := checkpointAndText(t)
	dir := t.TempDir()
	run := expect(t, "release")
	flags := []string{"--source", source, "--progress", "none", "--ctx-size", "16", "--evaluate", text,
		"--evaluate-chunks", "1", "--pages"}
	for _, layout := range []string{"flat", "folders"} {
		out := filepath.Join(dir, layout)
		types := []string{"--type", "Q8_0"}
		sums := "SHA256SUMS"
		if layout == "folders" { // where the sums are
			run(2, "has the name of SHA256SUMS, which is reserved",
				append(slices.Clone(flags), "--type", "Q4_0,name="+sums, "--output", out, "--layout", layout)...)
			sums = "SHA256"
		}
		for _, name := range []string{"quality", sums, "index", "README", "manifest", "imatrix", "card", "sums"} {
			types = append(types, "--type", "Q4_0,name="+name)
		}
		for range 2 { // the second run finds everything done
			run(0, "", append(slices.Concat(flags, types), "--output", out, "--layout", layout)...)
			files := published(t, out)
			if err := whole(files); err != nil {
				t.Fatal(err)
			}
			var m release.Manifest
			if err := json.Unmarshal([]byte(files["manifest.json"]), &m); err != nil {
				t.Fatal(err)
			}
			models, seen := 0, map[string]bool{}
			for _, f := range m.Files {
				if seen[f.Name] {
					t.Errorf("%s: %s is there twice", layout, f.Name)
				}
				if seen[f.Name] = true; strings.HasSuffix(f.Name, ".gguf") {
					models++
				}
			}
			if models != 9 || len(m.Files) != 20 || !seen["index.html"] || !seen["quality.json"] || files["README.md"] == "" {
				t.Errorf("%s: %d models, files %v", layout, models, slices.Sorted(maps.Keys(seen)))
			}
		}
	}
	out := filepath.Join(dir, "new")
	for _, c := range []struct {
		text string
		args []string
	}{
		{"has the name of the importance matrix", []string{"--type", "Q4_0,name=imatrix", "--calibrate", text,
			"--chunks", "1"}},
		{"line 1: output Q8_0, ", []string{"--type", "Q8_0,name=small", "--type", "Q4_0,name=small"}},
		// the same file on file systems that ignore case
		{"line 1: output Q8_0, ", []string{"--type", "Q8_0,name=small", "--type", "Q4_0,name=SMALL"}},
		{"line 1: output Q8_0, ", []string{"--type", "Q8_0,name=small", "--type", "Q4_0,name=SMALL", "--split-max-size",
			"1M", "--layout", "folders"}},
	} {
		run(2, c.text, append(slices.Concat(flags, c.args), "--output", out, "--force")...)
		if _, err := os.Lstat(out); err == nil {
			t.Errorf("%q: something was written", c.args)
		}
	}
}

// TestReleaseInputs checks that outputs which are inputs, by name or through links, are refused whatever the flags.
func TestReleaseInputs(t *testing.T) {
	dir := t.TempDir()
	run := expect(t, "release")
	source, flags := tiny(t, dir, filepath.Join(dir, "out"))
	const name = "Tiny-16K-Q8_0"
	plan := func(text string) string {
		path := filepath.Join(dir, "out", "manifest.json")
		put(t, path, text)
		return path
	}
	before := func() map[string]string { return published(t, dir) }
	refuse := func(what string, args ...string) {
		t.Helper()
		was := before()
		run(2, "output equals input", append(args, "--force")...)
		if now := before(); !maps.Equal(was, now) {
			t.Errorf("%s: %q has changed", what, different(now, was))
		}
		if err := os.RemoveAll(filepath.Join(dir, "out")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "out"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(source, filepath.Join(dir, "out", name+".gguf")); err != nil {
		t.Fatal(err)
	}
	refuse("a model that is the source by another name", append(flags, "--type", "Q8_0")...)
	if err := os.Mkdir(filepath.Join(dir, "out"), 0o777); err != nil {
		t.Fatal(err)
	}
	if clitest.Symlink(t, source, filepath.Join(dir, "out", name+"-00001-of-00007.gguf")) {
		refuse("a shard that is a link to the source", append(flags, "--type", "Q8_0", "--split-max-size", "1M")...)
	}
	put(t, filepath.Join(dir, "out", "README.md"), "Of {{.Title}}")
	refuse("the template", append(flags, "--type", "Q8_0", "--template", filepath.Join(dir, "out", "README.md"))...)
	refuse("the plan", plan("source: ../in.gguf\noutput: .\noutputs: [Q8_0]\n"))
}

// TestReleaseIntoCheckpoint makes a release in the folder of its source: this is refused, also with --force and
// through a link, and the checkpoint does not change.
func TestReleaseIntoCheckpoint(t *testing.T) {
	source, _ := checkpointAndText(t)
	put(t, filepath.Join(source, "README.md"), "---\nlicense: mit\n---\nby the authors\n")
	was := published(t, source)
	run := expect(t, "release")
	link := filepath.Join(t.TempDir(), "link")
	outputs := []string{source, source + "/", source + "/../" + filepath.Base(source)}
	if clitest.Symlink(t, source, link) {
		outputs = append(outputs, link)
	}
	for _, out := range outputs {
		run(2, "files of the source", "--source", source, "--output", out, "--type", "Q8_0", "--force",
			"--progress", "none")
		if now := published(t, source); !maps.Equal(now, was) {
			t.Fatalf("%s: %q", out, different(now, was))
		}
	}
	if _, err := os.Lstat(filepath.Join(source, ".ggtool-release")); err == nil {
		t.Error("the source has the state of a release")
	}
}

// TestReleaseDropsTypes changes plans: files that the release has made and the plan no longer has are removed, or
// with --keep left out of card and sums; files that somebody has changed stay.
func TestReleaseDropsTypes(t *testing.T) {
	dir := t.TempDir()
	run := expect(t, "release")
	out := filepath.Join(dir, "out")
	_, flags := tiny(t, dir, out)
	all := append(slices.Clone(flags), "--type", "Q8_0", "--type", "Q4_0", "--type", "Q5_0", "--type", "F16")
	const name = "Tiny-16K-"
	run(0, "out: 4 files", all...)
	put(t, filepath.Join(out, "mine.gguf"), published(t, out)[name+"F16.gguf"])
	put(t, filepath.Join(out, name+"Q5_0.gguf"), "changed")
	check := func(there, gone []string) {
		t.Helper()
		files := published(t, out)
		if err := whole(files); err != nil {
			t.Error(err)
		}
		for _, n := range there {
			if files[n] == "" {
				t.Errorf("%s is gone", n)
			}
		}
		for _, n := range gone {
			for _, about := range []string{"README.md", "SHA256SUMS", "manifest.json"} {
				if strings.Contains(files[about], n) || files[about] == "" {
					t.Errorf("%s: has %s, or is not there", about, n)
				}
			}
		}
	}
	two := append(slices.Clone(flags), "--type", "Q8_0", "--type", "Q4_0")
	text := run(0, "not removed: "+name+"F16.gguf", append(two, "--keep")...)
	for _, want := range []string{name + "Q5_0.gguf: the plan no longer has it, and it is not what was made",
		"mine.gguf: is in the folder, but not in the card"} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q: %s", want, text)
		}
	}
	check([]string{name + "F16.gguf", name + "Q5_0.gguf", "mine.gguf"},
		[]string{name + "F16.gguf", name + "Q5_0.gguf", "mine.gguf"})
	run(0, "not removed: "+name+"F16.gguf", append(two, "--keep")...) // the state still has it
	var made releaseResult
	parsed(t, run(0, "removed: "+name+"F16.gguf", append(two, "--json")...), &made)
	if !slices.Equal(made.Removed, []string{name + "F16.gguf"}) || len(made.Left) != 0 {
		t.Errorf("%+v", made)
	}
	check([]string{name + "Q5_0.gguf", "mine.gguf"}, []string{name + "F16.gguf", name + "Q5_0.gguf", "mine.gguf"})
	if _, ok := published(t, out)[name+"F16.gguf"]; ok {
		t.Error("a file that the plan no longer has was not removed")
	}
	// it is no longer in the state, so it may be anybody's
	run(2, "is no file of this release", append(two, "--type", "Q5_0")...)

	// a name in different case is the same file on some file systems: it must not be removed as a file of the old plan
	renamed := append(slices.Clone(flags), "--type", "Q8_0", "--type", "Q4_0,name=q4_0")
	run(0, "", renamed...)
	was, now := filepath.Join(out, name+"Q4_0.gguf"), filepath.Join(out, name+"q4_0.gguf")
	if one, err := os.Stat(was); err == nil { // the file system ignores case, and may have kept the old name
		if other, err := os.Stat(now); err != nil || !os.SameFile(one, other) {
			t.Fatalf("%s is there, too; %v", was, err)
		}
		if err := errors.Join(os.Rename(was, now+".x"), os.Rename(now+".x", now)); err != nil {
			t.Fatal(err)
		}
	}
	check([]string{name + "q4_0.gguf"}, []string{name + "Q4_0.gguf"})
}

// TestReleaseOneAtATime runs a release while another process holds the lock of the folder, and with a link in place
// of the state folder.
func TestReleaseOneAtATime(t *testing.T) {
	dir := t.TempDir()
	run := expect(t, "release")
	out := filepath.Join(dir, "out")
	_, flags := tiny(t, dir, out)
	flags = append(flags, "--type", "Q8_0")
	run(0, "", flags...)
	unlock, err := writer.Lock(filepath.Join(out, ".ggtool-release", "lock"))
	if err != nil {
		t.Fatal(err)
	}
	was := published(t, out)
	if again, err := writer.Lock(filepath.Join(out, ".ggtool-release", "lock")); err == nil { // no locks on this system
		again()
	} else {
		run(2, "one release at a time", append(flags, "--type", "Q4_0")...)
		if now := published(t, out); !maps.Equal(now, was) {
			t.Errorf("%q", different(now, was))
		}
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	run(0, "", append(flags, "--type", "Q4_0")...)

	elsewhere := t.TempDir()
	if err := os.RemoveAll(filepath.Join(out, ".ggtool-release")); err != nil {
		t.Fatal(err)
	}
	clitest.NeedsSymlink(t, elsewhere, filepath.Join(out, ".ggtool-release"))
	run(2, "no link", append(flags, "--force")...)
	run(2, "no link", append(flags, "--dry-run")...)
	if list, err := os.ReadDir(elsewhere); err != nil || len(list) > 0 {
		t.Errorf("written through a link: %v %v", list, err)
	}
}

// TestReleaseReadsOnce changes inputs after a release has read them: its outputs, and the sums in its manifest, match
// the bytes that it has read. The source is read in place, and the run ends with an error.
func TestReleaseReadsOnce(t *testing.T) {
	source, text := checkpointAndText(t)
	dir := t.TempDir()
	run := expect(t, "release")
	template := filepath.Join(dir, "card.tmpl")
	put(t, template, "Of {{.Title}}, first")
	data, err := os.ReadFile(text)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.ToUpper(string(data))
	matrix := filepath.Join(dir, "matrix.gguf")
	flags := func(out string, more ...string) []string {
		return append([]string{"--source", source, "--output", filepath.Join(dir, out), "--type", "Q4_0", "--type",
			"Q4_K", "--progress", "none", "--template", template}, more...)
	}
	byText := []string{"--ctx-size", "16", "--chunks", "2", "--calibrate", text, "--evaluate", text,
		"--evaluate-chunks", "1"}
	for _, effort := range []string{"matrix", "high"} {
		args := append(slices.Clone(byText), "--effort", effort)
		run(0, "", flags("want "+effort, args...)...)
		want := published(t, filepath.Join(dir, "want "+effort))
		for _, path := range []string{text, template} {
			was, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			with := other
			if path == template {
				with = "Of {{.Title}}, other"
			}
			out := fmt.Sprintf("%s %s", effort, filepath.Base(path))
			remove := clitest.Swap(t, path, with, true)
			run(0, "", flags(out, args...)...)
			remove()
			if err := os.WriteFile(path, was, 0o666); err != nil {
				t.Fatal(err)
			}
			if got := published(t, filepath.Join(dir, out)); !maps.Equal(got, want) {
				t.Errorf("%s: %q", out, different(got, want))
			}
			if sum := fmt.Sprintf("%x", sha256.Sum256(data)); strings.Count(want["manifest.json"], sum) != 2 {
				t.Errorf("the manifest lacks %s: %s", sum, want["manifest.json"])
			}
		}
		if effort == "matrix" {
			put(t, matrix, want["Llama-190K-imatrix.gguf"])
		}
	}
	run(0, "", flags("want imatrix", "--imatrix", matrix)...)
	want := published(t, filepath.Join(dir, "want imatrix"))
	remove := clitest.Swap(t, matrix, strings.Repeat("x", 5000), false)
	run(0, "", flags("imatrix", "--imatrix", matrix)...)
	remove()
	if got := published(t, filepath.Join(dir, "imatrix")); !maps.Equal(got, want) {
		t.Errorf("%q", different(got, want))
	}

	weights := filepath.Join(source, "model.safetensors")
	bytes, err := os.ReadFile(weights)
	if err != nil {
		t.Fatal(err)
	}
	bytes[len(bytes)-1] ^= 1
	remove = clitest.Swap(t, weights, string(bytes), false)
	run(3, "changed while it was read", flags("changed source")...)
	remove()
	for name := range published(t, filepath.Join(dir, "changed source")) {
		if !strings.Contains(name, ".partial") {
			t.Errorf("made from a source that changed: %s", name)
		}
	}
}

// TestReleaseState damages the state of a release, which is an error, and changes a model without changing its size
// and time: it is made again.
func TestReleaseState(t *testing.T) {
	dir := t.TempDir()
	run := expect(t, "release")
	out := filepath.Join(dir, "out")
	_, flags := tiny(t, dir, out)
	flags = append(flags, "--type", "Q8_0")
	run(0, "", flags...)
	want := published(t, out)
	model := filepath.Join(out, "Tiny-16K-Q8_0.gguf")
	info, err := os.Stat(model)
	if err != nil {
		t.Fatal(err)
	}
	data := []byte(want[filepath.Base(model)])
	data[len(data)-1] ^= 1
	put(t, model, string(data))
	if err := os.Chtimes(model, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	run(0, "models: 1 of 1 are to be made", flags...)
	if got := published(t, out); !maps.Equal(got, want) {
		t.Errorf("%q", different(got, want))
	}
	path := filepath.Join(out, ".ggtool-release", "state")
	state, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	state[len(state)/2] ^= 1
	put(t, path, string(state))
	run(3, "remove it to start over", flags...)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	run(2, "is no file of this release", flags...)
	run(0, "", append(flags, "--force")...)
	run(0, "", flags...)
}

// TestReleaseDryRun compares the prediction with the release: all files are listed, sizes are exact or close
// estimates marked as such, and importance matrices, models and evaluations have a time.
func TestReleaseDryRun(t *testing.T) {
	source, text := checkpointAndText(t)
	run := expect(t, "release")
	for _, effort := range []string{"matrix", "high", "best"} {
		out := filepath.Join(t.TempDir(), "out")
		flags := []string{"--source", source, "--output", out, "--type", "Q8_0", "--type", "Q4_0", "--pages",
			"--calibrate", text, "--effort", effort, "--evaluate", text, "--ctx-size", "16", "--chunks", "2",
			"--progress", "none", "--quiet", "--json"}
		var planned, made releaseResult
		parsed(t, run(0, "", append(slices.Clone(flags), "--dry-run")...), &planned)
		parsed(t, run(0, "", flags...), &made)
		names := map[string]bool{}
		for i, p := range planned.Parts {
			m := made.Parts[i]
			if !slices.Equal(p.Files, m.Files) || p.Exact && p.Bytes != m.Bytes || p.Bytes < m.Bytes/2 ||
				p.Bytes > 2*m.Bytes {
				t.Errorf("%s: planned %+v, made %+v", effort, p, m)
			}
			if exact := p.Kind == "imatrix" || p.Kind == "sums" ||
				p.Kind == "model" && effort == "matrix"; p.Exact != exact || !m.Exact {
				t.Errorf("%s: %s: exact is %v and %v", effort, p.Name, p.Exact, m.Exact)
			}
			if runs := p.Kind == "imatrix" || p.Kind == "model" || p.Kind == "quality"; runs != (p.Seconds > 0) {
				t.Errorf("%s: %s: %v s", effort, p.Name, p.Seconds)
			}
			for _, f := range p.Files {
				names[f] = true
			}
		}
		for name := range published(t, out) {
			if !names[name] {
				t.Errorf("%s: %s was not predicted", effort, name)
			}
		}
		if planned.Exact || !made.Exact {
			t.Errorf("%s: exact: %v and %v", effort, planned.Exact, made.Exact)
		}
	}
}
