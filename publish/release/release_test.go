package release

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ggforge/checkpoint"
	"ggforge/fault"
	"ggforge/internal/kernel/cpu"
	"ggforge/model"
	"ggforge/publish/card"
	"ggforge/publish/naming"
	"ggforge/quantize"
	"ggforge/quantize/calibrate"
	"ggforge/test/buckettest"
	"ggforge/test/hftest"
	"ggforge/writer"
)

const gollama = "../../test/testdata/gollama"

// TestPlan reads invalid plans: the error names the line.
func TestPlan(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "p: is empty",
		"a: [":                       "p: yaml",
		"- x":                        "p, line 1: is a list, want an object",
		"source: x\nouptuts: [Q8_0]": `p, line 2: unknown key "ouptuts", did you mean outputs?`,
		"source: x\nsource: y":       `p, line 2: `,
		"outputs: [Q8_0]":            `p, line 1: there is no key "source"`,
		"source: x\noutputs:\n- type: Q8_0\n  bwp: 3":                                               `p, line 4: unknown key "outputs[0].bwp", did you mean bpw?`,
		"source: x\noutputs: Q8_0\nsplit: lots":                                                     `p, line 3: split: is "lots", want a size`,
		"source: x\noutputs: Q8_0\nsplit: [1]":                                                      `p, line 3: split: is a list`,
		"source: x\noutputs: Q8_0\nlayout: folder":                                                  `is "folder", want one of flat, folders, did you mean folders?`,
		"source: x\noutputs: [{type: Q8_0, bpw: -1}]":                                               "is \"-1\", want a number above 0",
		"source: &a x\noutputs: [*a]":                                                               "is an alias",
		"source: x\noutputs: [Q8_0]\ncalibration: {text: t, process_output: 1}":                     `is "1", want true or false`,
		"source: x\noutputs: [Q8_0]\ncalibration: {text: t, chunk: many}":                           `calibration.chunk: is "many", want a number`,
		"source: x\noutputs: [Q8_0]\ncalibration:\n  text:\n":                                       "line 4: calibration.text: ",
		"source: x\noutputs: [" + strings.Repeat("Q8_0,", 300) + "]":                                "300 outputs",
		"source: x\noutput: o\noutputs:\n- Q8_0\n- Q9_0":                                            `p, line 5: output Q9_0: unknown type "Q9_0"`,
		"source: x\noutput: o\noutputs:\n- {type: Q4_0, bpw: 3, kld: 1}":                            "only one of bpw",
		"source: x\noutput: o\noutputs:\n- {type: Q4_0, kld: 0.1}":                                  "want calibration.text",
		"source: x\noutput: o\noutputs:\n- {type: Q4_0, types: Q4_0}":                               "types goes with",
		"source: x\noutput: o\noutputs:\n- {type: Q4_0, name: a-b}":                                 "letters, digits and underscores",
		"source: x\noutput: o\nsplit: 1G\ncalibration: {text: t}\noutputs:\n- {type: Q4_0, bpw: 3}": "want no split",
		"source: x\noutput: o\ncalibration: {}\noutputs: [Q4_0]":                                    "want one of text and matrix",
		"source: x\noutput: o\ncalibration: {matrix: m, effort: high}\noutputs: [Q4_0]":             "go with text",
		"source: x\noutputs: [Q4_0]":                                                                "there is no output folder",
	} {
		p, err := Parse("p", []byte(text))
		if err == nil {
			_, err = p.resolve()
		}
		if !errors.Is(err, fault.Usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	p, err := Parse("p",
		[]byte(`{"source": "x", "output": "o", "split": 1000, "outputs": ["Q8_0", {"type": "Q4_0", "like": "q4_k", "types": "Q4_0,Q8_0"}], "towers": "f16", "card": {"off": true}}`))
	if err != nil || p.Split != 1000 || len(p.Outputs) != 2 || p.Outputs[1].Like != "q4_k" || p.Encoders[0] != "f16" ||
		!p.Card.Off {
		t.Errorf("%+v %v", p, err)
	}
}

// TestSchema checks that the schema in docs is that of plans, and that docs name every key.
func TestSchema(t *testing.T) {
	want, err := os.ReadFile("../../docs/release.schema.json")
	if err != nil || !bytes.Equal(want, Schema()) {
		t.Errorf("docs/release.schema.json: %v; write it with: ggtool release --schema", err)
	}
	text, err := os.ReadFile("../../docs/publishing.md")
	if err != nil {
		t.Fatal(err)
	}
	var s struct{ Properties map[string]any }
	if err := json.Unmarshal(want, &s); err != nil {
		t.Fatal(err)
	}
	for key := range s.Properties {
		if !strings.Contains(string(text), "`"+key) {
			t.Errorf("docs/publishing.md: nothing of %s", key)
		}
	}
}

// TestEfforts checks that plans accept the efforts of package calibrate, and their schema names no other.
func TestEfforts(t *testing.T) {
	f, _ := reflect.TypeFor[Calibration]().FieldByName("Effort")
	if got, want := strings.Split(f.Tag.Get("enum"), ","), calibrate.Efforts(); !slices.Equal(got, want) {
		t.Errorf("efforts of a plan: %q, want %q", got, want)
	}
	for _, effort := range calibrate.Efforts() {
		text := "source: x\noutput: o\noutputs: [Q4_0]\ncalibration: {text: t, effort: " + effort + "}"
		if _, err := Parse("p", []byte(text)); err != nil {
			t.Error(err)
		}
	}
}

// bench makes releases of the small model in the folder dir.
type bench struct {
	t     *testing.T
	dir   string
	notes []string
}

func (b *bench) plan(text string) *Plan {
	b.t.Helper()
	p, err := Parse("plan", []byte("source: "+gollama+"\noutput: "+b.dir+"\n"+text))
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// run makes a release and returns the error; note is called with the messages about its steps.
func (b *bench) run(ctx context.Context, p *Plan, opt Options, note func(string)) (*Release, error) {
	b.notes = nil
	opt.Workers, opt.Program = 2, "test 1"
	opt.Note = func(s string) {
		b.notes = append(b.notes, s)
		if note != nil {
			note(s)
		}
	}
	r, err := Prepare(ctx, p, opt)
	if err != nil {
		return nil, err
	}
	b.t.Cleanup(func() { r.Close() })
	return r, r.Run(ctx)
}

// must makes a release without errors, and compares the messages about its steps with notes.
func (b *bench) must(p *Plan, notes ...string) *Release {
	b.t.Helper()
	r, err := b.run(context.Background(), p, Options{}, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	if !slices.Equal(b.notes, notes) {
		b.t.Errorf("it did %q, want %q", b.notes, notes)
	}
	return r
}

// files returns the names of the files in the folder.
func (b *bench) files() (names []string) {
	filepath.WalkDir(b.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || strings.HasPrefix(e.Name(), ".") {
			return fs.SkipDir
		}
		if !e.IsDir() {
			rel, _ := filepath.Rel(b.dir, path)
			names = append(names, filepath.ToSlash(rel))
		}
		return nil
	})
	return names
}

// TestRelease makes a release, repeats it, and repeats it after changes of inputs, of options and of files.
func TestRelease(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("runs texts, which takes long without vector kernels")
	}
	b := &bench{t: t, dir: filepath.Join(t.TempDir(), "out")}
	text := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("func main() { return nil, err }\n", 40)), 0o666); err != nil {
		t.Fatal(err)
	}
	common := "calibration: {text: " + text + ", chunk: 32, chunks: 2}\nevaluation: {text: " + text +
		", chunk: 32, chunks: 2}\n"
	plan := b.plan("layout: folders\nsplit: 4M\noutputs: [Q8_0, {type: Q4_0, name: Q4_0_small}]\n" + common)
	const name = "Gollama-6.6M-"

	// killed twice: finished files stay, and the rest is made
	for _, at := range []string{"models: 2 of 2 are to be made", "measurements: quality.json"} {
		ctx, cancel := context.WithCancel(context.Background())
		if _, err := b.run(ctx, plan, Options{}, func(s string) {
			if s == at {
				cancel()
			}
		}); !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: %v", at, err)
		}
	}
	r := b.must(plan, "measurements: quality.json", "README.md", "SHA256SUMS", "manifest.json")
	want := []string{
		name + "imatrix.gguf", "Q4_0_small/" + name + "Q4_0_small-00001-of-00002.gguf",
		"Q4_0_small/" + name + "Q4_0_small-00002-of-00002.gguf",
		"Q8_0/" + name + "Q8_0-00001-of-00002.gguf", "Q8_0/" + name + "Q8_0-00002-of-00002.gguf", "README.md",
		"SHA256SUMS", "manifest.json", "quality.json",
	}
	if got := b.files(); !slices.Equal(got, want) {
		t.Errorf("there are %q, want %q", got, want)
	}
	sums, err := os.ReadFile(filepath.Join(b.dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Files() {
		data, err := os.ReadFile(filepath.Join(b.dir, f.Name))
		if err != nil || int64(len(data)) != f.Bytes || fmt.Sprintf("%x", sha256.Sum256(data)) != f.SHA256 ||
			!strings.Contains(string(sums), f.SHA256+"  "+f.Name+"\n") {
			t.Errorf("%+v: %v", f, err)
		}
		// names are those of ggconv; for names by the convention with a template see below
		if !strings.HasPrefix(filepath.Base(f.Name), name) && strings.HasSuffix(f.Name, ".gguf") {
			t.Errorf("%s: want it to begin with %s", f.Name, name)
		}
	}
	manifest, err := os.ReadFile(filepath.Join(b.dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	if s := string(manifest); strings.Contains(s, filepath.Dir(text)) || strings.Contains(s, b.dir) ||
		!strings.Contains(s, `"name": "text.txt"`) || !strings.Contains(s, `"name": "model.safetensors"`) {
		t.Errorf("manifest: %s", s)
	}
	readme, err := os.ReadFile(filepath.Join(b.dir, "README.md"))
	if err != nil || !strings.Contains(string(readme), "KL divergence |") {
		t.Errorf("%v: %s", err, readme)
	}

	// the model equals the output of quantizing with the matrix
	alone := filepath.Join(t.TempDir(), "alone.gguf")
	recipe, _ := quantize.LookupRecipe("Q4_0")
	batch, err := quantize.PrepareBatch(context.Background(), r.source, []*quantize.Recipe{recipe},
		quantize.Options{Matrix: r.matrix.full(), SplitMaxBytes: 4e6})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := batch.Write(context.Background(), []string{alone}, writer.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := batch.Close(); err != nil { // batch has the matrix mapped, so that Windows would not remove it below
		t.Fatal(err)
	}
	one, err1 := os.ReadFile(strings.TrimSuffix(alone, ".gguf") + "-00001-of-00002.gguf")
	two, err2 := os.ReadFile(filepath.Join(b.dir, want[1]))
	if err1 != nil || err2 != nil || !bytes.Equal(one, two) {
		t.Errorf("not what quantizing gives: %v %v", err1, err2)
	}

	// again: nothing
	times := map[string]int64{}
	for _, f := range want {
		info, err := os.Stat(filepath.Join(b.dir, f))
		if err != nil {
			t.Fatal(err)
		}
		times[f] = info.ModTime().UnixNano()
	}
	b.must(plan)
	for _, f := range want {
		if info, err := os.Stat(filepath.Join(b.dir, f)); err != nil || info.ModTime().UnixNano() != times[f] {
			t.Errorf("%s: written again: %v", f, err)
		}
	}

	// a damaged file, and a missing one
	if err := os.WriteFile(filepath.Join(b.dir, want[3]), []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	b.must(plan, "models: 1 of 2 are to be made")
	if err := os.Remove(filepath.Join(b.dir, want[0])); err != nil {
		t.Fatal(err)
	}
	b.must(plan, "importance matrix: "+want[0])

	// other options: files of the old ones are removed, text by hand stays
	if err := os.WriteFile(filepath.Join(b.dir, "README.md"), append(readme, "by hand\n"...), 0o666); err != nil {
		t.Fatal(err)
	}
	plan = b.plan("outputs: [Q8_0, {type: Q4_0, name: Q4_0_small}]\n" + common)
	notes := []string{"models: 2 of 2 are to be made", "measurements: quality.json"}
	for _, old := range want[1:5] {
		notes = append(notes, "removed: "+old+", which the plan no longer has")
	}
	b.must(plan, append(notes, "README.md", "SHA256SUMS", "manifest.json")...)
	want = []string{name + "Q4_0_small.gguf", name + "Q8_0.gguf", name + "imatrix.gguf", "README.md", "SHA256SUMS",
		"manifest.json", "quality.json"}
	if got := b.files(); !slices.Equal(got, want) {
		t.Errorf("there are %q, want %q", got, want)
	}
	if now, err := os.ReadFile(filepath.Join(b.dir, "README.md")); err != nil ||
		!strings.HasSuffix(string(now), "by hand\n") {
		t.Errorf("%v: %s", err, now)
	}
}

// TestRemoteSource makes releases of a checkpoint and of a file on a server, and again after the object has changed.
func TestRemoteSource(t *testing.T) {
	s := buckettest.Serve(t, gollama, "models/gollama/")
	make := func(source, dir string) (*Release, []byte) {
		b := &bench{t: t, dir: dir}
		plan := b.plan("outputs: [F16, Q4_0]\n")
		plan.Source = source
		r, err := b.run(context.Background(), plan, Options{Remote: checkpoint.Remote{S3Endpoint: s.URL}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Files() {
			if strings.HasSuffix(f.Name, "F16.gguf") {
				data, err := os.ReadFile(filepath.Join(dir, f.Name))
				if err != nil {
					t.Fatal(err)
				}
				s.Put("models/f16.gguf", data)
			}
		}
		for _, f := range r.Files() {
			if strings.HasSuffix(f.Name, "Q4_0.gguf") {
				data, err := os.ReadFile(filepath.Join(dir, f.Name))
				if err != nil {
					t.Fatal(err)
				}
				return r, data
			}
		}
		t.Fatalf("no output: %+v", r.Files())
		return nil, nil
	}
	_, want := make(gollama, t.TempDir())
	if _, got := make("s3://models/gollama", t.TempDir()); !bytes.Equal(got, want) {
		t.Error("the release of a checkpoint on a server is another one")
	}
	dir := t.TempDir()
	before, got := make("s3://models/f16.gguf", dir)
	if !bytes.Equal(got, want) {
		t.Error("the release of a file on a server is another one")
	}
	changed := bytes.Clone(s.Get("models/f16.gguf"))
	changed[len(changed)-1] ^= 1
	s.Put("models/f16.gguf", changed)
	if after, _ := make("s3://models/f16.gguf", dir); after.base == before.base {
		t.Error("an object that has changed counts as the same")
	}
}

// TestPredict compares predicted with actual files, for a model with an audio encoder.
func TestPredict(t *testing.T) {
	spec := hftest.Lookup("pocket_tts")
	source, err := spec.Write(t.TempDir(), spec.All()[0])
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, dir: filepath.Join(t.TempDir(), "out")}
	p, err := Parse("plan",
		[]byte("source: "+source+"\noutput: "+b.dir+"\nsplit: 200K\noutputs: [Q8_0, F16]\ntowers: [f16, "+
			"q8_0]\nmodelfile: true\nmodel_name: Seer 2.5\nname_template: \"{model}-{FTYPE}\""))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Prepare(context.Background(), p, Options{Workers: 1, Program: "test 1"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Predict(context.Background()); err != nil {
		t.Fatal(err)
	}
	predicted := map[string]int64{}
	for _, it := range r.Items {
		if it.Done || !it.Exact && it.Kind != string(kindCard) {
			t.Errorf("%+v", it)
		}
		predicted[it.Kind+it.Name] = it.Bytes
	}
	if _, err := os.Stat(b.dir); err == nil {
		t.Error("something was written")
	}
	r, err = b.run(context.Background(), p, Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range r.Items {
		if it.Kind == string(kindCard) { // people edit the card
			continue
		}
		var n int64
		for _, f := range r.state.Made[id{kind(it.Kind), it.Name}].Files {
			n += f.Bytes
			if found := naming.Check(filepath.Base(f.Name)); strings.HasSuffix(f.Name, ".gguf") &&
				(found != nil || !strings.Contains(f.Name, "Seer-2-5")) {
				t.Errorf("%s: %q", f.Name, found)
			}
		}
		if n != predicted[it.Kind+it.Name] || n == 0 {
			t.Errorf("%s: %d bytes, predicted were %d", it.Name, n, predicted[it.Kind+it.Name])
		}
	}
	if len(r.Items) != 9 || !strings.HasPrefix(r.Items[2].Files[0], "mmproj-Seer-2-5-") {
		t.Errorf("%+v", r.Items)
	}
	b.must(p)
	for _, it := range r.Items {
		if it.Kind != string(kindModelfile) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(b.dir, it.Files[0]))
		name := strings.TrimSuffix(it.Files[0], ".Modelfile")
		var want strings.Builder
		for _, f := range r.state.Made[id{kindModel, it.Name}].Files {
			fmt.Fprintf(&want, "FROM ./%s\n", f.Name)
		}
		fmt.Fprintf(&want, "FROM ./%s\n", r.Items[2].Files[0])
		if err != nil || !strings.HasPrefix(string(text), want.String()) || !strings.Contains(want.String(), name+"-00001") {
			t.Errorf("%s: %v\n%s\nwant\n%s", it.Files[0], err, text, &want)
		}
	}

	// a file that no release has made is not replaced
	other := *p
	other.Output = t.TempDir()
	foreign := filepath.Join(other.Output, r.models[1].file)
	foreign = strings.TrimSuffix(foreign, ".gguf") + "-00001-of-00007.gguf"
	if err := os.WriteFile(foreign, []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := b.run(context.Background(), &other, Options{}, nil); !errors.Is(err, fs.ErrExist) ||
		fault.Option(err) != "Force" {
		t.Errorf("foreign file: %v", err)
	}
	// errors that would end a run late are found before it
	decoder := hftest.Lookup("wavtokenizer")
	of, err := decoder.Write(t.TempDir(), decoder.All()[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ source, text, want string }{
		{source, "card: {base_model: x}", "want ORG/NAME"},
		{source, "card: {template: /no/such}", "/no/such"},
		{of, "evaluation: {text: ../../go.mod}", "is not supported by the evaluator"},
		{source, "card: {off: true}\ncalibration: {matrix: x}", "x: "},
	} {
		p, err := Parse("plan", []byte("source: "+c.source+"\noutput: "+b.dir+"\noutputs: [Q8_0]\n"+c.text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Prepare(context.Background(), p, Options{}); err == nil ||
			!strings.Contains(strings.ReplaceAll(err.Error(), "open x", "x"), c.want) {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
	// a changed source is not taken for the same
	if err := os.WriteFile(filepath.Join(source, "generation_config.json"), []byte(`{"temperature": 0.25}`),
		0o666); err != nil {
		t.Fatal(err)
	}
	r, err = b.run(context.Background(), p, Options{}, nil)
	if err != nil || !slices.Contains(b.notes, "models: 2 of 2 are to be made") {
		t.Fatalf("%v: %q", err, b.notes)
	}
	m, err := model.Open(filepath.Join(b.dir, r.state.Made[id{kindModel, "Q8_0"}].Files[0].Name))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if v, ok := m.Metadata.Get("general.sampling.temp"); !ok || v.String() != "0.25" {
		t.Errorf("temperature %v", v)
	}
}

// TestTemplates makes releases of a checkpoint with a chat template: what the template of the files makes otherwise, and what
// no template needs, are warnings.
func TestTemplates(t *testing.T) {
	for _, c := range []struct{ template, pad, want string }{
		{`{% for m in messages %}{{ m.content }}{% endfor %}{{ eos_token }}`, "<pad>", ""},
		{`{% for m in messages %}{{ m.content }}{% endfor %}{{ pad_token }}`, "<nowhere>",
			`chat template "default": conversation "user": differs at line 1, column 20: gives "What does defer do?", where it ` +
				`ends, that of the source "What does defer do?<nowhere>"`},
		{`{{ "".__class__ }}`, "<pad>", `tokenizer.chat_template: line 1: the attribute "__class__" is not for templates`},
	} {
		source := filepath.Join(t.TempDir(), "Model")
		if err := os.CopyFS(source, os.DirFS(gollama)); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"chat_template.jinja": c.template, "special_tokens_map.json": "{}",
			"tokenizer_config.json": `{"tokenizer_class": "LlamaTokenizer", "eos_token": "</s>", "pad_token": "` + c.pad + `"}`} {
			if err := os.WriteFile(filepath.Join(source, name), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		p, err := Parse("plan", []byte("source: "+source+"\noutput: "+filepath.Join(t.TempDir(), "out")+"\noutputs: [Q4_0]"))
		if err != nil {
			t.Fatal(err)
		}
		var warnings []string
		r, err := Prepare(t.Context(), p, Options{Program: "test 1", Warn: func(s ...string) { warnings = append(warnings, s...) }})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(warnings, "\n")
		if c.want == "" && strings.Contains(got, "template") || !strings.Contains(got, c.want) {
			t.Errorf("%s: warnings %q, want %s", c.template, got, c.want)
		}
	}
}

// TestPages writes pages about models in shards, and rewrites only pages about changed models.
func TestPages(t *testing.T) {
	b := &bench{t: t, dir: filepath.Join(t.TempDir(), "out")}
	const name = "Gollama-6.6M-"
	plan := b.plan("layout: folders\nsplit: 4M\noutputs: [Q8_0, Q4_0]\npages: true\ncard: {off: true}")
	if _, err := b.run(context.Background(), plan, Options{}, nil); !errors.Is(err, fault.Usage) ||
		!strings.Contains(err.Error(), "pages: ") {
		t.Errorf("without Page: %v", err)
	}
	run := func(ctx context.Context, stop string) ([]string, error) {
		var about []string
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		r, err := b.run(ctx, plan, Options{Page: func(ctx context.Context, path string,
			_ *card.Result) ([]byte, error) {
			about = append(about, filepath.Base(path))
			return []byte("about " + filepath.Base(path)), ctx.Err()
		}}, func(note string) {
			if note == stop {
				cancel()
			}
		})
		if err == nil {
			files := r.Files()
			if f := files[len(files)-1]; f.Type != "page" || f.Name != "Q4_0/"+name+"Q4_0.html" ||
				r.Items[3].Files[0] != f.Name {
				t.Errorf("%+v, items %+v", f, r.Items)
			}
		}
		return about, err
	}
	q8, q4 := name+"Q8_0-00001-of-00002.gguf", name+"Q4_0-00001-of-00002.gguf"
	page := filepath.Join(b.dir, "Q4_0", name+"Q4_0.html")

	if _, err := run(context.Background(), "page: Q4_0/"+name+"Q4_0.html"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	expect := func(want ...string) {
		t.Helper()
		if got, err := run(context.Background(), ""); err != nil || !slices.Equal(got, want) {
			t.Errorf("pages about %q, want %q: %v", got, want, err)
		}
	}
	expect(q4)
	expect()
	if data, err := os.ReadFile(page); err != nil || string(data) != "about "+q4 {
		t.Errorf("%v: %s", err, data)
	}
	for _, file := range []string{"SHA256SUMS", "manifest.json"} {
		if data, err := os.ReadFile(filepath.Join(b.dir, file)); err != nil ||
			strings.Count(string(data), ".html") != 2 {
			t.Errorf("%s: %v: %s", file, err, data)
		}
	}
	if err := os.Remove(page); err != nil {
		t.Fatal(err)
	}
	expect(q4)
	plan.Outputs[0].Type, plan.Outputs[0].Name = "Q5_0", "Q8_0" // in the same place
	expect(q8)
}

// TestModelfiles writes the Modelfiles of models in folders, and rewrites only those of changed models.
func TestModelfiles(t *testing.T) {
	b := &bench{t: t, dir: filepath.Join(t.TempDir(), "out")}
	const name = "Gollama-6.6M-"
	const common = "layout: folders\noutputs: [Q8_0, Q4_0]\n"
	plan := b.plan(common + "modelfile: true")
	q8, q4 := "Q8_0/"+name+"Q8_0.Modelfile", "Q4_0/"+name+"Q4_0.Modelfile"
	// killed before the second one
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if _, err := b.run(ctx, plan, Options{}, func(s string) {
		if s == "Modelfile: "+q4 {
			cancel()
		}
	}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	b.must(plan, "Modelfile: "+q4, "README.md", "SHA256SUMS", "manifest.json")
	b.must(plan)
	text, err := os.ReadFile(filepath.Join(b.dir, q8))
	if err != nil || !strings.HasPrefix(string(text), "FROM ./"+name+"Q8_0.gguf\n") {
		t.Errorf("%v: %s", err, text)
	}
	for file, want := range map[string]string{"SHA256SUMS": "  " + q8 + "\n", "manifest.json": `"type": "modelfile"`,
		"README.md": "| `*.Modelfile` | one for each model"} {
		if data, err := os.ReadFile(filepath.Join(b.dir, file)); err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s: %v, want %q in\n%s", file, err, want, data)
		}
	}
	// edited, and missing
	if err := os.WriteFile(filepath.Join(b.dir, q8), []byte("FROM x\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(b.dir, q4)); err != nil {
		t.Fatal(err)
	}
	b.must(plan, "Modelfile: "+q8, "Modelfile: "+q4)
	if now, err := os.ReadFile(filepath.Join(b.dir, q8)); err != nil || !bytes.Equal(now, text) {
		t.Errorf("%v: %s", err, now)
	}
	// without them
	b.must(b.plan(common), "removed: "+q4+", which the plan no longer has", "removed: "+q8+", which the plan no longer has",
		"README.md", "SHA256SUMS", "manifest.json")
	// a file that no release has made
	if err := os.WriteFile(filepath.Join(b.dir, q8), []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := b.run(context.Background(), plan, Options{}, nil); !errors.Is(err, fs.ErrExist) ||
		fault.Option(err) != "Force" {
		t.Errorf("foreign file: %v", err)
	}
}

// TestTargets allocates types by a text for one of two outputs, in the same run as the matrix.
func TestTargets(t *testing.T) {
	if !cpu.HasVectors || testing.Short() {
		t.Skip("runs texts, which takes long without vector kernels")
	}
	b := &bench{t: t, dir: filepath.Join(t.TempDir(), "out")}
	text := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("func main() { return nil, err }\n", 20)), 0o666); err != nil {
		t.Fatal(err)
	}
	plan := b.plan("outputs: [Q8_0, {type: Q4_0, size: 4M, types: 'Q4_0,Q8_0', name: Q4_0_4M}]\ncalibration: {text: " +
		text + ", chunk: 16, chunks: 2}\ncard: {off: true}")
	r := b.must(plan, "models: 2 of 2 are to be made", "SHA256SUMS", "manifest.json")
	if f := r.state.Made[id{kindModel, "Q4_0_4M"}].Files; len(f) != 1 || f[0].Bytes > 4e6 || f[0].Bytes < 3.9e6 {
		t.Errorf("%+v, want 4 MB", f)
	}
	if f := r.state.Made[id{kindMatrix, "imatrix"}].Files; len(f) != 1 || f[0].Bytes == 0 {
		t.Errorf("%+v", f)
	}
	b.must(plan)
}

// FuzzPlan reads any text as a plan.
func FuzzPlan(f *testing.F) {
	f.Add([]byte("source: x\noutput: o\nsplit: 1G\noutputs: [Q8_0, {type: Q4_0, name: x}]\ncalibration: {text: t, " +
		"chunk: 3}\ntowers: [f16]"))
	f.Add([]byte(`{"source": "x", "outputs": {"type": "Q8_0", "bpw": 1e9}, "evaluation": {"text": "t"}}`))
	f.Add([]byte("&a [*a]"))
	f.Add([]byte("? [a]\n: b"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("plan", data)
		if err == nil {
			_, err = p.resolve()
		}
		if err != nil {
			if !errors.Is(err, fault.Usage) {
				t.Errorf("%q: %v", data, err)
			}
			return
		}
		if p.Source == "" || len(p.Outputs) == 0 {
			t.Errorf("%q: %+v", data, p)
		}
	})
}

// FuzzState reads any text as a state: no name in it leads out of the folder.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"format": "ggforge release 2", "made": {"model/a": {"key": "x", "files": [{"name": "../x"}]}, "page/b": {"files": [{"name": "c"}]}}, "left": [{"name": "/x"}]}`))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := parseState(data)
		for name, m := range s.Made {
			for _, f := range m.Files {
				if !filepath.IsLocal(filepath.FromSlash(f.Name)) {
					t.Errorf("%s: %q", name, f.Name)
				}
			}
		}
		s.Inputs["x"], s.Made[id{kindModel, "x"}] = seen{}, made{}
	})
}
