package pairs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/internal/kernel/cpu"
)

var update = flag.Bool("update", false, "write testdata/pairs.txt and the table in docs/reliability.md")

// all has every pair run. Without it a tenth of them are, so that each feature comes first and second.
var all = flag.Bool("pairs.all", false, "run all pairs, not a tenth of them")

const golden = "testdata/pairs.txt"

// relations are the ways in which a second feature meets the first, in the order of testdata/pairs.txt.
var relations = []string{"then", "onto", "over", "force", "around"}

// right is the outcome of a feature that ends as it should.
const right = "right"

// pair names two features in their order.
type pair struct{ first, second string }

// outcomes has the outcomes of a pair, by relation.
type outcomes map[string]string

func (o outcomes) String() string {
	var list []string
	for _, r := range relations {
		if what, ok := o[r]; ok {
			list = append(list, r+" "+what)
		}
	}
	return strings.Join(list, ", ")
}

// TestPairs runs a tenth of the pairs, and with -pairs.all (make pairs) all. With -run TestPairs/NAME it runs those
// whose first feature has that name.
func TestPairs(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("the build with vector kernels runs the pairs")
	}
	if testing.Short() {
		t.Skip("runs a thousand processes")
	}
	build(t)
	base := filepath.Join(t.TempDir(), "base")
	begin(t, base)
	s := &straight{base: base}

	var mu sync.Mutex
	got := map[pair]outcomes{}
	t.Run("all", func(t *testing.T) {
		for i, a := range features {
			if a.fresh {
				continue
			}
			t.Run(a.name, func(t *testing.T) {
				t.Parallel()
				r := first(t, s, a)
				for j, b := range features {
					if (i+j)%10 != 0 && !*all && !*update {
						continue
					}
					o := r.pair(t, b)
					mu.Lock()
					got[pair{a.name, b.name}] = o
					mu.Unlock()
				}
			})
		}
	})
	if testing.Verbose() {
		t.Logf("%s", write(got))
	}
	if t.Failed() {
		return
	}
	if len(got) == 0 {
		t.Error("no pair was run")
	}
	if *update {
		if err := os.WriteFile(golden, write(got), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := updateDocs(got); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := read()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range slices.SortedFunc(maps.Keys(got), comparePairs) {
		if got, want := got[p].String(), want[p].String(); got != want {
			t.Errorf("%s, %s: %s; want %s", p.first, p.second, got, want)
		}
	}
}

// TestTable compares testdata/pairs.txt with the rows, and the table of the document with testdata/pairs.txt.
func TestTable(t *testing.T) {
	table, err := read()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, a := range features {
		for _, b := range features {
			if _, ok := table[pair{a.name, b.name}]; !a.fresh {
				n++
				if !ok {
					t.Errorf("%s has no line for %s, %s", golden, a.name, b.name)
				}
			}
		}
	}
	if len(table) != n {
		t.Errorf("%s has %d pairs, want %d", golden, len(table), n)
	}
	old, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	text, err := replaceTable(old, table)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(old, text) {
		t.Errorf("%s: the table is not that of %s: go test ./test/pairs -update", document, golden)
	}
}

// begin makes the folder that every pair begins with: the first layer of the model in this repository, with tied
// embeddings, as a checkpoint, as a GGUF file and in shards, an importance matrix of it, a text, and a file of the
// user.
func begin(t *testing.T, dir string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const from = "../testdata/gollama"
	must(os.CopyFS(filepath.Join(dir, "checkpoint"), os.DirFS(from)))
	c, err := safetensorstest.OpenDir(from)
	must(err)
	defer c.Close()
	var kept []safetensorstest.Tensor
	for _, x := range c.Tensors() {
		if layer, ok := strings.CutPrefix(x.Name, "model.layers."); !ok && x.Name != "lm_head.weight" ||
			strings.HasPrefix(layer, "0.") {
			kept = append(kept, safetensorstest.Tensor{Name: x.Name, DType: x.DType, Shape: x.Shape, Data: x.Data()})
		}
	}
	must(safetensorstest.Write(filepath.Join(dir, "checkpoint", "model.safetensors"), kept,
		map[string]string{"format": "pt"}))
	config, err := os.ReadFile(filepath.Join(from, "config.json"))
	must(err)
	var keys map[string]any
	must(json.Unmarshal(config, &keys))
	keys["num_hidden_layers"], keys["tie_word_embeddings"] = 1, true
	config, err = json.Marshal(keys)
	must(err)
	must(os.WriteFile(filepath.Join(dir, "checkpoint", "config.json"), config, 0o666))
	words, err := os.ReadFile("../../cmd/ggeval/testdata/text.txt")
	must(err)
	must(os.WriteFile(filepath.Join(dir, "text.txt"), words, 0o666))
	must(os.WriteFile(filepath.Join(dir, "notes.md"), []byte("Notes of the user.\n"), 0o666))
	must(lookup("ggconv").do(dir, start, start.model, nil))
	must(lookup("ggtool split").do(dir, start, "shards", nil))
	must(lookup("ggeval imatrix").do(dir, start, start.matrix, nil))
}

// runs are the pairs of one first feature.
type runs struct {
	s       *straight
	a       *feature
	parent  string
	first   folder // after the first feature
	after   subject
	nothing bool    // the first feature has changed nothing
	clean   *folder // a folder that nothing has changed since the first feature, or nil
	n       int
}

// folder is a folder with its content when the first feature had ended.
type folder struct {
	dir    string
	before snapshot
}

// first runs the first feature of pairs in a folder of its own, and checks it.
func first(t *testing.T, s *straight, a *feature) *runs {
	t.Helper()
	r := &runs{s: s, a: a, parent: t.TempDir()}
	var err error
	if r.first, err = r.run(t); err != nil {
		t.Fatalf("%s: %v", a.name, err)
	}
	was, err := snap(s.base)
	if err != nil {
		t.Fatal(err)
	}
	r.nothing = maps.Equal(was, r.first.before)
	return r
}

// run runs the first feature in a new folder.
func (r *runs) run(t *testing.T) (f folder, err error) {
	r.n++
	f.dir = filepath.Join(r.parent, fmt.Sprint(r.n))
	for range 50 { // until it was killed in time
		if err = errors.Join(os.RemoveAll(f.dir), copyTree(f.dir, r.s.base)); err != nil {
			return f, err
		}
		if f.before, err = snap(f.dir); err != nil {
			return f, err
		}
		var what string
		what, r.after, err = r.second(t, f, r.a, start, r.a.out, nil)
		if err == nil && what != right {
			err = errors.New(what)
		}
		if !errors.Is(err, errWhole) {
			break
		}
	}
	if err == nil {
		f.before, err = snap(f.dir)
	}
	return f, err
}

// get returns a folder as it is after the first feature; with originals, it has the files that an unfinished feature
// has written, not copies of them.
func (r *runs) get(t *testing.T, originals bool) (folder, error) {
	if f := r.clean; f != nil && !originals {
		r.clean = nil
		return *f, nil
	}
	if originals && r.a.begins != "" {
		return r.run(t)
	}
	r.n++
	f := folder{filepath.Join(r.parent, fmt.Sprint(r.n)), r.first.before}
	return f, copyTree(f.dir, r.first.dir)
}

// pair runs the second feature in all its relations to the first. After features that write nothing, one run stands for
// all.
func (r *runs) pair(t *testing.T, b *feature) outcomes {
	if !r.nothing {
		return r.relate(t, b)
	}
	o, err := r.s.alone.get(b.name, func() (outcomes, error) { return r.relate(t, b), nil })
	if err != nil {
		t.Error(err)
	}
	return o
}

func (r *runs) relate(t *testing.T, b *feature) outcomes {
	o := outcomes{}
	// in calls run for a relation, with a new folder for each try.
	in := func(relation string, run func(f folder) (string, error)) {
		var what string
		var err error
		for range 50 {
			var f folder
			if f, err = r.get(t, b.knows); err != nil {
				break
			}
			if what, err = run(f); err == nil && what != right && relation != "around" {
				r.clean = &f // a refusal changes nothing
				break
			}
			os.RemoveAll(f.dir)
			if !errors.Is(err, errWhole) {
				break
			}
		}
		if err != nil {
			t.Errorf("%s, %s %s: %v", r.a.name, relation, b.name, err)
		}
		if what != "" {
			o[relation] = what
		}
	}
	force := []string{"--force"}
	// the file that the second feature reads, if the first one has written it
	written := ""
	switch {
	case b.reads&readsModel != 0 && r.after.model != start.model:
		written = r.after.model
	case b.reads&readsShards != 0 && r.after.shards != start.shards:
		written = r.after.shards
	case b.reads&readsMatrix != 0 && r.after.matrix != start.matrix:
		written = r.after.matrix
	case b.reads&readsCheckpoint != 0 && r.after.checkpoint != start.checkpoint:
		written = r.after.checkpoint
	}
	if !b.fresh {
		in("then", func(f folder) (string, error) {
			what, _, err := r.second(t, f, b, r.after, b.out, nil)
			return what, err
		})
		// as for over, one first feature stands for all
		if b.out != "" && written != "" && (r.a == b || r.a.name == "ggtool meta -o" || r.a.name == "ggtool split" ||
			r.a.folder || written != r.after.model) {
			in("onto", func(f folder) (string, error) {
				what, _, err := r.second(t, f, b, r.after, written, force)
				return what, err
			})
		}
		// Features that replace a file ignore which feature has made it: one first feature with a file stands for all
		// that have one.
		if b.out != "" && r.a.out != "" && (r.a.folder || !b.reader) && (r.a == b || r.a.name == "ggquant" ||
			r.a.begins != "" || r.a.folder || b.folder) {
			in("over", func(f folder) (string, error) {
				what, _, err := r.second(t, f, b, start, r.a.out, nil)
				return what, err
			})
			if o["over"] != right && (!r.a.folder || b.folder) { // a file never takes the place of a folder
				in("force", func(f folder) (string, error) {
					what, _, err := r.second(t, f, b, start, r.a.out, force)
					return what, err
				})
			}
		}
	}
	if r.a.begins != "" || r.a.again {
		in("around", func(f folder) (string, error) {
			what, after, err := r.second(t, f, b, r.after, b.out, nil)
			if err != nil || what != right {
				return "", err
			}
			if f.before, err = snap(f.dir); err != nil {
				return "", err
			}
			if !b.inPlace || r.a.again {
				after = start
			}
			what, _, err = r.second(t, f, lookup(cmp.Or(r.a.begins, r.a.name)), after, r.a.out, nil)
			return what, err
		})
	}
	return o
}

// second runs a feature in a folder and returns the outcome: right, or a refusal. Everything else is an error.
func (r *runs) second(t *testing.T, f folder, b *feature, s subject, out string, force []string) (string,
	subject, error) {
	dir := f.dir
	done := b.run(dir, s, out, force)
	if done.err != nil {
		return "", s, done.err
	}
	after, err := snap(dir)
	if err != nil {
		return "", s, err
	}
	changes := differences(f.before, after)
	if done.code != 0 {
		if done.code < 2 || done.code > 7 || done.code == 6 || done.message == "" {
			return "", s, fmt.Errorf("%v: exit code %d: %s", done.argv, done.code, done.message)
		}
		if len(changes) > 0 {
			return "", s, fmt.Errorf("%v: refused with exit code %d: %s, but: %s", done.argv, done.code, done.message,
				strings.Join(changes, ", "))
		}
		if testing.Verbose() {
			t.Logf("%v: %s", done.argv, strings.TrimSpace(done.message))
		}
		return fmt.Sprint("exit ", done.code), s, nil
	}
	fresh := []string{out}
	if b.writes != nil {
		fresh = b.writes(out)
	}
	var may []string // patterns of files that it may change
	if b.replaces != nil {
		may = b.replaces(s, out)
	}
	if force != nil {
		may = append(may, fresh...)
	}
	// the leftover files of the first feature are used to resume, or replaced
	if (r.a.begins != "" || r.a.again && b == r.a) && out == r.a.out {
		may = append(may, r.a.writes(out)...)
	}
	changes = slices.DeleteFunc(changes, func(c string) bool {
		kind, name, _ := strings.Cut(c, " ")
		return kind == "new" && out != "" && covered(name, fresh) || kind != "new" && covered(name, may)
	})
	if len(changes) > 0 {
		return "", s, fmt.Errorf("%v: %s", done.argv, strings.Join(changes, ", "))
	}
	is, err := b.after(dir, s, out)
	if err != nil {
		return "", s, err
	}
	for _, m := range is.models {
		if err := r.s.same(t, filepath.Join(dir, filepath.FromSlash(m.path)), m.of); err != nil {
			return "", s, fmt.Errorf("%v: %w", done.argv, err)
		}
	}
	if b.look != nil {
		want, err := r.s.look(t, b, s)
		if err != nil {
			return "", s, err
		}
		got, err := b.look(dir, out, done.text)
		if err != nil {
			return "", s, err
		}
		if got != want {
			at := 0
			for at < min(len(got), len(want)) && got[at] == want[at] {
				at++
			}
			return "", s, fmt.Errorf(
				"%v: %d bytes, want %d as the straight way has them; from byte %d: %.300q, want %.300q", done.argv,
				len(got), len(want), at, got[at:], want[at:])
		}
	}
	return right, is, nil
}
