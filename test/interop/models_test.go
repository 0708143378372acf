package interop

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ggforge/arch"
	"ggforge/test/hftest"
)

// madeOptions are sets of arguments of mkhf.py, with the output type.
var madeOptions = []struct{ args, out string }{
	{"", "f16"},
	{"--seed 2 --shards 3 --dtype f32 --opt edge=1", "q8_0"},
	{"--seed 3 --dtype f16 --opt index=1", "auto"},
}

// result holds the results for one GGUF architecture (general.architecture), or for one table of encoders.
type result struct {
	classes     map[string]bool
	files       int               // files that equal the reference's
	loads       map[string]bool   // results of loading the files with the runtime
	notLoaded   map[string]string // spec → why the runtime cannot use its file
	noReference map[string]string // spec → why the reference writes no file
}

func newResult() *result {
	return &result{classes: map[string]bool{}, loads: map[string]bool{}, notLoaded: map[string]string{},
		noReference: map[string]string{}}
}

// TestArchitectures converts checkpoints of every architecture with the built command and loads the files with the
// runtime. Checkpoints of package hftest are compared with goldens of the reference's files, those of the oracle's
// mkhf.py with the reference's conversion. The first table in docs/architectures.md must have these results; rows of
// architectures of which some checkpoints were skipped are left as they are.
func TestArchitectures(t *testing.T) {
	o := start(t)
	results, left := newResults(), map[string]int{}
	for _, s := range hftest.Specs() {
		if _, err := arch.Lookup(s.Class()); err != nil {
			continue // the class has no table yet
		}
		want, err := os.ReadFile(filepath.Join(archGoldens, s.Name+".txt"))
		must(t, err)
		names := hftest.Architectures(string(want))
		all := slices.Compact(slices.Sorted(maps.Values(names)))
		for _, name := range all {
			left[name]++
		}
		t.Run(s.Name, func(t *testing.T) {
			var g hftest.Golden
			for i, v := range s.All() {
				_, err := s.Write(root+work+"/specs/"+v.Name, v)
				must(t, err)
				out := work + "/specs/" + v.Name + "/" + s.Name + ".gguf"
				var base []string
				if dir := s.BaseDir(root + work + "/specs/" + v.Name + "/" + s.Name); dir != "" {
					base = []string{"--base", dir}
				}
				convertBy(t, root+work+"/specs/"+v.Name+"/"+s.Name, root+out, v.Out, s.PreTokenizer(),
					slices.Concat([]string{"--compat", "reference"}, base,
						s.Arguments(root+work+"/specs/"+v.Name+"/"+s.Name, v))...)
				must(t, g.Add(v, root+out))
				r := results[names[v.Name]]
				if i == 0 {
					flags := base
					if s.Target != "" {
						flags = s.Arguments(root+work+"/specs/"+v.Name+"/"+s.Name, v)
					}
					convertBy(t, root+work+"/specs/"+v.Name+"/"+s.Name, root+work+"/loaded.gguf", v.Out,
						s.PreTokenizer(), flags...)
					if found := o.loadSpec(t, s, work+"/loaded.gguf"); found != "" {
						r.loads[found] = true
					} else {
						r.notLoaded[s.Name] = s.NoLoad
					}
				}
				if s.NoReference == "" {
					r.files++
				}
			}
			if g.String() != string(want) {
				t.Errorf("not the reference's file; go test ./convert shows the difference")
			}
			for _, name := range all {
				if s.NoReference != "" {
					results[name].noReference[s.Name] = s.NoReference
				}
				left[name]--
			}
		})
	}
	for _, m := range o.madeUp(t) {
		may := arch.Names(m.class) // general.architecture is one of them
		s := hftest.Lookup(m.name)
		if may == nil || s != nil && s.NoReference != "" {
			continue
		}
		for _, opt := range madeOptions {
			if m.name == "gpt_oss" {
				// the reference takes the blocks it saw last with the scales: those of another
				// tensor when a shard ends between the two
				opt.args = strings.Replace(opt.args, "--shards 3", "", 1)
			}
			for _, name := range may {
				left[name]++
			}
			t.Run("mkhf-"+m.name+"-"+opt.out, func(t *testing.T) {
				k := o.keep(t, m.name, opt.args, opt.out, s != nil && s.RawConfig)
				mine := work + "/ours.gguf"
				convertOurs(t, root+k.hf, root+mine, opt.out, k.pre)
				same(t, root+mine, root+k.ref)
				r := results[architectureOf(t, root+mine)]
				r.files++
				if opt.args == "" {
					convertBy(t, root+k.hf, root+mine, opt.out, k.pre)
					found, err := o.load(t, mine)
					must(t, err)
					r.loads[found] = true
				}
				for _, name := range may {
					left[name]--
				}
			})
		}
	}
	for name, r := range results {
		if left[name] == 0 && r.files == 0 && len(r.noReference) == 0 {
			t.Errorf("%s: no checkpoint of this architecture", name)
		}
	}
	if t.Failed() {
		return
	}
	old, err := os.ReadFile(tableFile)
	must(t, err)
	models, encoders, _ := strings.Cut(string(old), encodersTitle)
	now := modelsPart(results, left, models)
	if *docs {
		must(t, os.WriteFile(tableFile, []byte(now+encodersTitle+encoders), 0o666))
	} else if models != now {
		t.Errorf("the first table of %s differs from these results: run make architectures", tableFile)
	}
}

// newResults returns a result without files for each architecture, with the classes whose models, or some of
// them, become files that name it.
func newResults() map[string]*result {
	results := map[string]*result{}
	for _, class := range arch.Classes() {
		for _, name := range arch.Names(class) {
			if results[name] == nil {
				results[name] = newResult()
			}
			results[name].classes[class] = true
		}
	}
	return results
}

// convertOurs converts with the built command and --compat reference.
func convertOurs(t *testing.T, dir, out, outtype, pre string) {
	t.Helper()
	convertBy(t, dir, out, outtype, pre, "--compat", "reference")
}

// convertBy is convertOurs with other flags.
func convertBy(t *testing.T, dir, out, outtype, pre string, flags ...string) {
	t.Helper()
	must(t, tryOurs(dir, out, outtype, pre, flags...))
}

// tryOurs is convertBy for a checkpoint that we may refuse.
func tryOurs(dir, out, outtype, pre string, flags ...string) error {
	argv := append(flags, "--force", "--progress", "none", "--outtype", outtype, "--outfile", out, dir)
	if pre != "" {
		argv = append(argv, "--pre", pre)
	}
	text, err := exec.Command(filepath.Join(bin, "ggconv"), argv...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ggconv %q: %w\n%s", argv, err, text)
	}
	return nil
}

// madeUp is an architecture of mkhf.py.
type madeUp struct{ name, class string }

func (o *oracle) madeUp(t *testing.T) []madeUp {
	t.Helper()
	o.script(t, "mkhf.py", "--list")
	text, err := os.ReadFile(root + work + "/log.txt")
	must(t, err)
	var all []madeUp
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 3 && f[2] == "tokenizer" {
			all = append(all, madeUp{f[0], f[1]})
		}
	}
	if len(all) < 50 {
		t.Fatalf("mkhf.py lists %d architectures", len(all))
	}
	return all
}

// kept is a checkpoint of mkhf.py and what the reference made of it: paths inside
// the chroot, and the name of the pre-tokenizer.
type kept struct{ hf, ref, pre string }

// keptFolder holds kept checkpoints from one run to the next; start leaves it alone.
const keptFolder = "kept"

// keep makes a checkpoint and has the reference convert it, unless an earlier run
// has. The scripts' bytes are part of the name.
func (o *oracle) keep(t *testing.T, name, args, out string, raw bool) kept {
	t.Helper()
	h := sha256.New()
	for _, script := range []string{"mkhf.py", "toklib.py", "refconvert.py"} {
		text, err := os.ReadFile(root + work + "/oracle/" + script)
		must(t, err)
		h.Write(text)
	}
	fmt.Fprintf(h, "%s %s %s %v", name, args, out, raw)
	folder := fmt.Sprintf("%s/%s/%x", work, keptFolder, h.Sum(nil)[:8])
	k := kept{hf: folder + "/" + name, ref: folder + "/reference.gguf"}
	pre, err := os.ReadFile(root + folder + "/pre") // written last
	if err == nil {
		k.pre = string(pre)
		return k
	}
	must(t, os.RemoveAll(root+folder))
	must(t, os.MkdirAll(root+folder, 0o777))
	o.script(t, "mkhf.py", append([]string{name, k.hf}, strings.Fields(args)...)...)
	k.pre = preOf(t, root+work+"/log.txt")
	argv := []string{k.hf, k.ref, "--outtype", out, "--quiet"}
	if k.pre != "" {
		argv = append(argv, "--pre-force", k.pre)
	}
	if raw {
		argv = append(argv, "--raw-config")
	}
	o.script(t, "refconvert.py", argv...)
	must(t, os.WriteFile(root+folder+"/pre", []byte(k.pre), 0o666))
	return k
}

var preWord = regexp.MustCompile(`values, pre (\S+)`)

// preOf returns the name of the pre-tokenizer that mkhf.py prints, "" where it
// prints None.
func preOf(t *testing.T, log string) string {
	t.Helper()
	text, err := os.ReadFile(log)
	must(t, err)
	m := preWord.FindSubmatch(text)
	if m == nil {
		t.Fatalf("mkhf.py printed %q", text)
	}
	return strings.TrimSuffix(string(m[1]), "None")
}

// Results of loading a file with the runtime. A reason after a semicolon is not a fault of the file.
const (
	runsText    = "yes"
	runsEncoder = "yes, as an encoder"
	loadsOnly   = "loads; llama-perplexity refuses vocabularies that end a text by themselves"
	noLoader    = "the runtime has no such architecture"
	runsMute    = "yes; it generates no text"
)

var (
	finalPPL  = regexp.MustCompile(`Final estimate: PPL = ([0-9.]+)`)
	firstPPL  = regexp.MustCompile(`\[1\]([0-9.]+)`)
	addsEOS   = "GGML_ASSERT(!llama_vocab_get_add_eos(vocab)) failed"
	noSuch    = regexp.MustCompile(`(unknown|unsupported) model architecture`)
	evalWords = strings.Repeat("The quick brown fox jumps over the lazy dog. 12345 def main(argv): return None\n", 60)
)

// loadsFile caches results of load, by the SHA-256 of the file; start leaves it alone.
const loadsFile = "loads.tsv"

// loadSpec is load for the file of a spec; it returns "" for a spec with NoLoad, whose file the runtime must refuse.
func (o *oracle) loadSpec(t *testing.T, s *hftest.Spec, path string) string {
	t.Helper()
	found, err := o.load(t, path)
	switch {
	case s.GeneratesNoText && errors.Is(err, errMute):
		return runsMute
	case s.GeneratesNoText:
		t.Errorf("the spec has GeneratesNoText, but the runtime: %v", err)
		return ""
	case s.NoLoad == "":
		must(t, err)
		return found
	case err == nil:
		t.Errorf("loads, but the spec has NoLoad %q", s.NoLoad)
	}
	return ""
}

// load loads a file, a path inside the chroot, into the reference's runtime and
// returns how far that goes: three chunks of text must have finite logits. An error
// says why the runtime cannot use the file.
func (o *oracle) load(t *testing.T, path string) (string, error) {
	t.Helper()
	data, err := os.ReadFile(root + path)
	must(t, err)
	sum := sha256.Sum256(data)
	key := hex.EncodeToString(sum[:])
	known := root + work + "/" + loadsFile
	old, err := os.ReadFile(known)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(old)) {
		if k, v, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); k == key {
			return v, nil
		}
	}
	found, err := o.run(t, path)
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(known, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	must(t, err)
	_, err = fmt.Fprintf(f, "%s\t%s\n", key, found)
	must(t, err)
	return found, f.Close()
}

// run is load without the cache. It tries again, since the runtime now and then crashes or ends without a figure on a
// file that it takes the next time.
func (o *oracle) run(t *testing.T, path string) (found string, err error) {
	t.Helper()
	for range 8 {
		if found, err = o.runOnce(t, path); err == nil {
			break
		}
	}
	return found, err
}

func (o *oracle) runOnce(t *testing.T, path string) (string, error) {
	t.Helper()
	must(t, os.WriteFile(root+work+"/words.txt", []byte(evalWords), 0o666))
	// Weights as the file has them: with those that it rearranges for the matrix units
	// of some CPUs (AMX), the runtime stops at an assertion of its own.
	text, err := exec.Command("chroot", root, "timeout", "20", "llama-perplexity", "-m", path, "-f", work+"/words.txt",
		"-c", "64", "-b", "64",
		"--chunks", "3", "-t", "1", "-ngl", "0", "--no-warmup", "--no-repack").CombinedOutput()
	switch {
	case (err == nil || ended(err) && slices.Contains(heapErrors, architectureOf(t, root+path))) &&
		(finalPPL.Match(text) || firstPPL.Match(text)):
		return runsText, nil
	case err == nil && mutePPL.Match(text):
		return "", errMute
	case err == nil:
		return "", fmt.Errorf("the runtime computes no finite perplexity: %s", tail(text))
	case strings.Contains(string(text), addsEOS): // after the weights are loaded
		return loadsOnly, nil
	case noSuch.Match(text):
		return noLoader, nil
	}
	bench, err := exec.Command("chroot", root, "timeout", "20", "llama-bench", "-m", path, "-p", "16", "-n", "0", "-r",
		"1", "-t", "1", "-ngl", "0").CombinedOutput()
	if err == nil {
		return runsEncoder, nil
	}
	return "", fmt.Errorf("the runtime cannot use the file: %w\n%s", err, complaints(slices.Concat(text, bench)))
}

// heapErrors are the architectures with which the runtime corrupts its heap, so that a signal may end it after its
// figures: the same file gives them without one the next time.
var heapErrors = []string{"arwkv7", "rwkv7"}

// ended reports whether a command was ended by a signal; timeout passes that on as an exit code.
func ended(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && (exit.ExitCode() < 0 || exit.ExitCode() > 128)
}

// errMute is the error of a model that gives text the probability 0.
var errMute = errors.New("the runtime computes an infinite perplexity")

var mutePPL = regexp.MustCompile(`(?m)^\[1\]inf,`)

var complaint = regexp.MustCompile(`(?m)^.*(error|ASSERT).*$`)

// complaints are the first lines of a log that name an error.
func complaints(log []byte) []byte {
	lines := complaint.FindAll(log, 6)
	return bytes.Join(lines, []byte("\n"))
}
