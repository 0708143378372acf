package quantize

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix/imatrixtest"
	"ggforge/test/gen"
	"ggforge/writer"
)

// inputs writes the golden inputs once per test.
func inputs(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	goldenInputs(t, dir)
	return dir
}

// bytesOf quantizes and returns the bytes of all files, whose sizes must be the
// predicted ones.
func bytesOf(t *testing.T, in string, opt Options, w writer.Options) (all [][]byte) {
	t.Helper()
	report, err := quantizeTo(in, filepath.Join(t.TempDir(), "out.gguf"), opt, w)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Files {
		b, err := os.ReadFile(f.Path)
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(b)) != f.Bytes {
			t.Errorf("%s: %d bytes, predicted %d", f.Path, len(b), f.Bytes)
		}
		all = append(all, b)
	}
	return all
}

func options(t *testing.T, name string) Options {
	return Options{PlanOptions: PlanOptions{Recipe: recipe(t, name)}}
}

func TestWorkersWithImportance(t *testing.T) {
	dir := inputs(t)
	names := []string{"Q4_K_M", "IQ2_XS", "IQ1_M", "IQ3_XXS"}
	if testing.Short() {
		names = names[:2]
	}
	for _, name := range names {
		opt := options(t, name)
		opt.Matrix = filepath.Join(dir, "gg/imx")
		opt.Override = []gguf.KV{{Key: "a", Value: gguf.Bool(true)}}
		opt.PruneLayers = []int64{0}
		in := filepath.Join(dir, "moe.gguf")
		one := bytesOf(t, in, opt, writer.Options{Workers: 1})
		for _, w := range []writer.Options{{Workers: 8}, {Workers: 8, MaxBuffer: 1}} {
			if !slices.EqualFunc(one, bytesOf(t, in, opt, w), bytes.Equal) {
				t.Errorf("%s, %+v: other bytes than one worker's", name, w)
			}
		}
	}
}

// content returns all tensors of files by name, with their data.
func content(t *testing.T, files [][]byte) map[string]string {
	t.Helper()
	m := map[string]string{}
	for _, b := range files {
		f, err := gguf.Parse("x", b)
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.Tensors {
			x := &f.Tensors[i]
			m[x.Name] = fmt.Sprint(x.Type, x.NE) + string(f.Data(x))
		}
	}
	return m
}

// TestSplit checks that shards have the contents of one file, and read back.
func TestSplit(t *testing.T) {
	dir := inputs(t)
	in := filepath.Join(dir, "meta.gguf") // of alignment 64
	opt := options(t, "Q4_K_M")
	whole := bytesOf(t, in, opt, writer.Options{})
	for name, c := range map[string]struct {
		tensors int
		bytes   int64
		shards  int
	}{
		"tensors":   {10, 0, 4},
		"one":       {34, 0, 1},
		"bytes":     {0, 20000, 4},
		"one-each":  {0, 1, 34},
		"all-bytes": {0, 1 << 30, 1},
	} {
		o := opt
		o.SplitMaxTensors, o.SplitMaxBytes = c.tensors, c.bytes
		out := filepath.Join(t.TempDir(), "m.gguf")
		report, err := quantizeTo(in, out, o, writer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Files) != c.shards {
			t.Errorf("%s: %d shards, want %d", name, len(report.Files), c.shards)
			continue
		}
		set, err := gguf.OpenSet(report.Files[0].Path)
		if err != nil {
			t.Fatal(err)
		}
		if c.shards > 1 && report.Files[0].Path != gguf.ShardName(strings.TrimSuffix(out, ".gguf"), 0, c.shards) {
			t.Errorf("%s: %s", name, report.Files[0].Path)
		}
		var files [][]byte
		for i, f := range report.Files {
			if st, err := os.Stat(f.Path); err != nil || st.Size() != f.Bytes {
				t.Errorf("%s: %v, predicted %d bytes", f.Path, err, f.Bytes)
			}
			b, err := os.ReadFile(f.Path)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, b)
			if i > 0 && len(set.Files[i].Metadata) != 3 {
				t.Errorf("%s has metadata %v", f.Path, set.Files[i].Metadata)
			}
		}
		a, b := content(t, whole), content(t, files)
		if len(a) != len(b) {
			t.Errorf("%s: %d tensors, want %d", name, len(b), len(a))
		}
		for k := range a {
			if a[k] != b[k] {
				t.Errorf("%s: tensor %s differs", name, k)
			}
		}
		// put together again, the shards are the whole file
		o = options(t, "COPY")
		if again := bytesOf(t, report.Files[0].Path, o, writer.Options{}); !bytes.Equal(again[0], whole[0]) {
			t.Errorf("%s: merged shards differ from the file", name)
		}
		set.Close()
	}
}

// TestKeepSplitOfOneFile follows the reference: the name of a shard, no keys.
func TestKeepSplitOfOneFile(t *testing.T) {
	dir := inputs(t)
	opt := options(t, "Q4_0")
	opt.KeepSplit = true
	out := filepath.Join(t.TempDir(), "m.x")
	report, err := quantizeTo(filepath.Join(dir, "dense.gguf"), out, opt, writer.Options{})
	if err != nil || len(report.Files) != 1 || report.Files[0].Path != out+"-00001-of-00001.gguf" {
		t.Fatalf("%v, %+v", err, report)
	}
	f, err := gguf.Open(report.Files[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, ok := f.Metadata.Get(gguf.KeySplitCount); ok {
		t.Error("has split keys")
	}
}

// TestEmptyShard prunes all layers of the middle one of three shards.
func TestEmptyShard(t *testing.T) {
	dir := inputs(t)
	opt := options(t, "Q4_0")
	opt.KeepSplit, opt.PruneLayers = true, []int64{1, 2}
	report, err := quantizeTo(filepath.Join(dir, gguf.ShardName("shard", 0, 3)), filepath.Join(t.TempDir(), "m"), opt,
		writer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := gguf.OpenSet(report.Files[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	n := 0
	for range set.Tensors() {
		n++
	}
	if len(set.Files) != 3 || len(set.Files[1].Tensors) != 0 || n != 12 {
		t.Errorf("%d files, %d tensors, %d in the second", len(set.Files), n, len(set.Files[1].Tensors))
	}
}

// TestAlignment checks that the stated alignment is the one in use.
func TestAlignment(t *testing.T) {
	dir := inputs(t)
	opt := options(t, "Q4_0")
	f, err := gguf.Parse("x", bytesOf(t, filepath.Join(dir, "meta.gguf"), opt, writer.Options{})[0])
	if err != nil || f.Alignment != 64 {
		t.Errorf("%v, alignment %d", err, f.Alignment)
	}
	opt.Override = []gguf.KV{{Key: gguf.KeyAlignment, Value: gguf.Uint32(256)}}
	f, err = gguf.Parse("x", bytesOf(t, filepath.Join(dir, "dense.gguf"), opt, writer.Options{})[0])
	if err != nil || f.Alignment != 256 {
		t.Errorf("%v, alignment %d", err, f.Alignment)
	}
	opt.Override[0].Value = gguf.Uint32(48)
	if _, err := Prepare(t.Context(), filepath.Join(dir, "dense.gguf"), opt); !errors.Is(err, fault.Usage) {
		t.Errorf("alignment 48: %v", err)
	}
}

// TestFourDimensions checks that slices of dimension 3 share the weights of
// dimension 2.
func TestFourDimensions(t *testing.T) {
	dir := t.TempDir()
	s := shape{"blk.0.four.weight", []int64{256, 3, 2, 2}}
	flat := shape{"blk.0.four.weight", []int64{256, 3, 4}}
	w := gen.Importance("uni", 512)
	for name, c := range map[string]struct {
		s shape
		w []float32
	}{"four": {s, w}, "flat": {flat, append(slices.Clone(w), w...)}} {
		entry := imatrixtest.Entry{Name: s.name, Calls: 1, Sums: c.w}
		for path, b := range map[string][]byte{
			name + ".gguf": encode(goldenMeta(1, 0), []imatrixtest.Tensor{tensorOf(c.s, gguf.TypeF32)}, 32),
			name + ".dat":  imatrixtest.Legacy([]imatrixtest.Entry{entry}, nil),
		} {
			if err := os.WriteFile(filepath.Join(dir, path), b, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	var data [2]string
	for i, name := range []string{"four", "flat"} {
		opt := options(t, "IQ2_XXS")
		opt.Matrix, opt.HideMatrix = filepath.Join(dir, name+".dat"), true
		opt.TensorTypes = []TensorTypeRule{tensorRule(t, "four=iq2_xs")}
		f, err := gguf.Parse(name, bytesOf(t, filepath.Join(dir, name+".gguf"), opt, writer.Options{})[0])
		if err != nil {
			t.Fatal(err)
		}
		data[i] = string(f.Data(&f.Tensors[0]))
	}
	if data[0] != data[1] || f32Equal(data[0]) {
		t.Error("4-D differs from the same slices in 3-D")
	}
}

// f32Equal reports whether all bytes are the same, as in a file of holes.
func f32Equal(s string) bool { return strings.Count(s, s[:1]) == len(s) }

func tensorRule(t *testing.T, s string) TensorTypeRule {
	t.Helper()
	r, err := CompileTensorRule(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestMatrixPath checks the metadata about the matrix.
func TestMatrixPath(t *testing.T) {
	dir := inputs(t)
	opt := options(t, "Q8_0")
	opt.Matrix = filepath.Join(dir, "gg", "imd")
	for _, c := range []struct {
		set  func(*Options)
		want string
	}{
		{func(*Options) {}, `"imd"`},
		{func(o *Options) { o.Reference = true }, gguf.String(opt.Matrix[:min(127, len(opt.Matrix))]).String()},
		{func(o *Options) { o.HideMatrix = true }, ""},
	} {
		o := opt
		c.set(&o)
		f, err := gguf.Parse("x", bytesOf(t, filepath.Join(dir, "dense.gguf"), o, writer.Options{})[0])
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, kv := range f.Metadata {
			if kv.Key == "quantize.imatrix.file" {
				got = kv.Value.String()
			} else if strings.HasPrefix(kv.Key, "quantize.") && c.want == "" {
				t.Errorf("hidden matrix left %s", kv.Key)
			}
		}
		if got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// TestRefusedMatrices checks matrices that must not be used.
func TestRefusedMatrices(t *testing.T) {
	dir := inputs(t)
	write := func(name string, e imatrixtest.Entry) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, imatrixtest.Legacy([]imatrixtest.Entry{e}, nil), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const q = "blk.0.attn_q.weight"
	ones := slices.Repeat([]float32{1}, 256)
	negative := slices.Clone(ones)
	negative[200] = -1
	for _, c := range []struct{ name, matrix, text string }{
		{"negative", write("negative", imatrixtest.Entry{Name: q, Sums: negative}), "value 200 is -1"},
		{"size", write("size", imatrixtest.Entry{Name: q, Sums: ones[:32]}), "has 32 values, the tensor needs 256"},
		{"strange", write("strange", imatrixtest.Entry{Name: "model.layers.0.q_proj", Sums: ones}),
			"none of the 1 entries names a tensor"},
		{"not-finite", filepath.Join(dir, "dat/imnan"), "NaN"},
	} {
		opt := options(t, "Q4_K_M")
		opt.Matrix = c.matrix
		job, err := Prepare(t.Context(), filepath.Join(dir, "dense.gguf"), opt)
		if job != nil {
			job.Close()
		}
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.text)
		}
	}
	opt := options(t, "Q4_K_M")
	opt.Matrix, opt.Reference = filepath.Join(dir, "strange"), true
	if _, err := quantizeTo(filepath.Join(dir, "dense.gguf"), filepath.Join(dir, "o.gguf"), opt,
		writer.Options{}); err != nil {
		t.Errorf("--compat reference: %v", err)
	}
}

// TestStrict checks every compromise: a warning, or an error.
func TestStrict(t *testing.T) {
	dir := inputs(t)
	q8 := ptr(gguf.TypeQ8_0)
	for _, c := range []struct {
		in, recipe string
		set        func(*Options)
		want       string // "" for none
	}{
		{"dense", "Q4_K_M", func(*Options) {}, ""},
		{"dense", "Q4_K_M", func(o *Options) { o.Matrix = "dat/imd" }, ""},
		{"meta", "Q4_K_M", func(*Options) {},
			"not whole blocks of the wanted type: blk.0.odd.weight (F16 instead of Q4_K), blk.0.odd2.weight (Q5_0 " +
				"instead of Q4_K)"},
		{"dense", "Q4_K_M", func(o *Options) { o.TensorTypes = []TensorTypeRule{tensorRule(t, "x_y=q8_0")} },
			"tensor rule x_y=Q8_0 has no effect"},
		{"dense", "Q4_K_M", func(o *Options) {
			o.TensorTypes = []TensorTypeRule{tensorRule(t, "attn=q8_0"), tensorRule(t, "attn_q=q4_0")}
		}, "tensor rule attn_q=Q4_0 has no effect"},
		{"dense", "F16", func(o *Options) { o.TensorTypes = []TensorTypeRule{tensorRule(t, "attn=q8_0")} },
			"tensor rule attn=Q8_0 has no effect"},
		{"tied", "Q4_K_M", func(o *Options) { o.OutputTensorType = q8 }, ""},
		{"tied", "F16", func(o *Options) { o.OutputTensorType = q8 }, "output tensor type has no effect"},
		{"tied", "Q4_K_M", func(o *Options) { o.LeaveOutputTensor = true },
			"leaving the output tensor as it is has no effect"},
		{"dense", "COPY", func(o *Options) { o.TokenEmbeddingType = q8 }, "token embedding type has no effect"},
		{"dense", "Q4_K_M", func(o *Options) { o.PruneLayers = []int64{2, 7} },
			"layers to prune that the model does not have: 7"},
		{"dense", "Q4_K_M", func(o *Options) { o.Matrix = "dat/imskip" },
			"tensors without an entry in the importance matrix: blk.1.ffn_up.weight"},
		{"dense", "Q8_0", func(o *Options) { o.Matrix = "dat/imskip" }, ""}, // ignores it anyway
		{"dense", "Q4_K_M", func(o *Options) { o.Matrix = "dat/imembbad" }, "token_embd.weight\" has 100 values"},
		{"dense", "Q4_K_M", func(o *Options) { o.Matrix, o.ExcludeWeights = "dat/imd", []string{"blk"} },
			"no entry is left"},
		{"dense", "Q4_K_M", func(o *Options) { o.Matrix, o.ExcludeWeights = "dat/imd", []string{"zzz"} },
			`has "zzz" in its name`},
		{"dense", "Q4_K_M", func(o *Options) { o.IncludeWeights = []string{"a"} }, "there is no matrix"},
	} {
		opt := options(t, c.recipe)
		c.set(&opt)
		if opt.Matrix != "" {
			opt.Matrix = filepath.Join(dir, opt.Matrix)
		}
		for _, strict := range []bool{false, true} {
			opt.Strict = strict
			job, err := Prepare(t.Context(), filepath.Join(dir, c.in+".gguf"), opt)
			if job == nil {
				t.Fatal(err)
			}
			text := ""
			for _, x := range job.Compromises {
				text += x.String() + "\n"
			}
			job.Close()
			if c.want == "" {
				if text != "" || err != nil {
					t.Errorf("%s %s: %q, %v", c.in, c.recipe, text, err)
				}
				continue
			}
			if !strings.Contains(text, c.want) || strings.Count(text, "\n") != 1 {
				t.Errorf("%s %s: got %q, want one line with %q", c.in, c.recipe, text, c.want)
			}
			if e := (*StrictError)(nil); strict != errors.As(err, &e) ||
				strict && (!errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s %s, strict %v: error %v", c.in, c.recipe, strict, err)
			}
		}
	}
}

func TestUsage(t *testing.T) {
	dir := inputs(t)
	for _, set := range []func(*Options){
		func(o *Options) { o.IncludeWeights, o.ExcludeWeights = []string{"a"}, []string{"b"} },
		func(o *Options) { o.KeepSplit, o.SplitMaxTensors = true, 3 },
		func(o *Options) { o.SplitMaxBytes, o.SplitMaxTensors = 5, 3 },
		func(o *Options) { o.PruneLayers = []int64{0, 1, 2} },
	} {
		opt := options(t, "Q4_0")
		set(&opt)
		if job, err := Prepare(t.Context(), filepath.Join(dir, "dense.gguf"), opt); !errors.Is(err, fault.Usage) ||
			job != nil {
			t.Errorf("%+v: %v", opt, err)
		}
	}
	opt := options(t, "Q4_0")
	opt.Matrix = filepath.Join(dir, "dat", "imd")
	if _, err := quantizeTo(filepath.Join(dir, "dense.gguf"), opt.Matrix, opt,
		writer.Options{Force: true}); !errors.Is(err, fault.Usage) {
		t.Errorf("matrix as output: %v", err)
	}
	if _, err := quantizeTo(filepath.Join(dir, "shard-00001-of-00003.gguf"),
		filepath.Join(dir, "shard-00003-of-00003.gguf"), options(t, "Q4_0"),
		writer.Options{Force: true}); !errors.Is(err, fault.Usage) {
		t.Errorf("shard of the input as output: %v", err)
	}
}
