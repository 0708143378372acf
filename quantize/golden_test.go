package quantize

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/writer"
)

// testdata/imatrix_golden.json holds the results of llama-quantize 0.7.0 for made-up
// inputs (golden_input_test.go):
//
//	inputs   file → sha256
//	runs     name → in, args (of the tool; the last is the recipe), imatrix (the
//	         file that imatrix.bin is a copy of), threads, and either sha and size
//	         of the output (lists for shards), kv and types (of some; lists for
//	         shards), or rc and error
type goldenRuns struct {
	Inputs map[string]string
	Runs   map[string]goldenRun
}

type goldenRun struct {
	In      string
	Args    []string
	Imatrix string
	Threads string
	RC      int
	Sha     oneOrMore[string]
	Size    oneOrMore[int64]
	KV      json.RawMessage
	Types   json.RawMessage
}

// oneOrMore is a value or a list of values.
type oneOrMore[T any] []T

func (v *oneOrMore[T]) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		return json.Unmarshal(b, (*[]T)(v))
	}
	var one T
	err := json.Unmarshal(b, &one)
	*v = []T{one}
	return err
}

// goldenErrors gives the kind of error of the runs in which the tool fails.
var goldenErrors = map[string]error{
	"dense/":        ErrRefused, // no importance matrix
	"dense80/":      ErrRefused, // requantizing
	"ids/":          gguf.ErrUnsupported,
	"kv/dat/imsize": ErrRefused, "kv/dat/imnan": ErrRefused,
	"kv/gg/imnometa": imatrix.ErrBroken,
	"skip/":          ErrRefused,
	"pure/IQ2_XS":    ErrRefused,
	"missing-file":   os.ErrNotExist,
	"nan/":           fault.Broken, "inf/": fault.Broken, "big/": fault.Broken,
	"tt/q8_k": gguf.ErrUnsupported, "tt/q8_1": gguf.ErrUnsupported, "tt/i8": gguf.ErrUnsupported,
	"split/second": fault.Usage,
}

// goldenDeviations lists the runs whose output differs on purpose.
var goldenDeviations = map[string]struct {
	why  string
	kind error // nil: it succeeds
}{
	"dim4/Q4_K_M": {"4-D tensors are converted slice by slice; the tool aborts", nil},
	"dim4/F16":    {"as above", nil},
}

func TestGoldenRuns(t *testing.T) {
	data, err := os.ReadFile("testdata/imatrix_golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden goldenRuns
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	goldenInputs(t, dir)
	for name, want := range golden.Inputs {
		if got := fileSum(t, filepath.Join(dir, name)); got != want {
			t.Fatalf("input %s: sha256 %s, want %s", name, got, want)
		}
	}
	if len(golden.Runs) != 365 || len(golden.Inputs) != 34 {
		t.Errorf("%d runs, %d inputs", len(golden.Runs), len(golden.Inputs))
	}
	for i, name := range slices.Sorted(maps.Keys(golden.Runs)) {
		if testing.Short() && i%10 != 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden.Runs[name].check(t, name, dir)
		})
	}
}

func fileSum(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// options reads the arguments of the tool.
func (g *goldenRun) options(t *testing.T, dir string) Options {
	t.Helper()
	opt := Options{PlanOptions: PlanOptions{Recipe: recipe(t, g.Args[len(g.Args)-1])}}
	typ := func(s string) *gguf.Type {
		v, ok := gguf.ParseType(s)
		if !ok {
			t.Fatal(s)
		}
		return &v
	}
	fail := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	// meta.gguf states an alignment of 64, which the tool copies and ignores.
	opt.Reference = strings.HasPrefix(g.In, "meta.")
	for args := g.Args[:len(g.Args)-1]; len(args) > 0; args = args[1:] {
		value := ""
		if len(args) > 1 {
			value = args[1]
		}
		switch flag := args[0]; flag {
		case "--pure":
			opt.Pure = true
			continue
		case "--leave-output-tensor":
			opt.LeaveOutputTensor = true
			continue
		case "--allow-requantize":
			opt.AllowRequantize = true
			continue
		case "--keep-split":
			opt.KeepSplit = true
			continue
		case "--imatrix":
			opt.Matrix = filepath.Join(dir, value)
			if g.Imatrix != "" { // a copy under the name that goes into the metadata
				opt.Matrix = filepath.Join(t.TempDir(), value)
				data, err := os.ReadFile(filepath.Join(dir, g.Imatrix))
				fail(err)
				fail(os.WriteFile(opt.Matrix, data, 0o666))
			}
		case "--include-weights":
			opt.IncludeWeights = append(opt.IncludeWeights, value)
		case "--exclude-weights":
			opt.ExcludeWeights = append(opt.ExcludeWeights, value)
		case "--output-tensor-type":
			opt.OutputTensorType = typ(value)
		case "--token-embedding-type":
			opt.TokenEmbeddingType = typ(value)
		case "--tensor-type":
			r, err := CompileTensorRule(value)
			fail(err)
			opt.TensorTypes = append(opt.TensorTypes, r)
		case "--override-kv":
			kv, err := ParseOverride(value)
			fail(err)
			opt.Override = append(opt.Override, kv)
		case "--prune-layers":
			layers, err := ParseLayers(value)
			fail(err)
			opt.PruneLayers = layers
		case "--max-buffer-size":
		default:
			t.Fatalf("unknown flag %s", flag)
		}
		args = args[1:]
	}
	return opt
}

func (g goldenRun) check(t *testing.T, name, dir string) {
	opt := g.options(t, dir)
	out := filepath.Join(t.TempDir(), "out.gguf")
	w := writer.Options{}
	w.Workers, _ = strconv.Atoi(g.Threads)
	if slices.Contains(g.Args, "--max-buffer-size") {
		w.MaxBuffer = 1 << 10
	}
	report, err := quantizeTo(filepath.Join(dir, g.In), out, opt, w)

	wantErr := error(nil)
	if g.RC != 0 {
		for prefix, kind := range goldenErrors {
			if strings.HasPrefix(name, prefix) {
				wantErr = kind
			}
		}
		if wantErr == nil && goldenDeviations[name].why == "" {
			t.Fatalf("no kind is listed for this error; got %v", err)
		}
	}
	deviation, deviates := goldenDeviations[name]
	if deviates {
		wantErr = deviation.kind
	}
	switch {
	case wantErr != nil:
		if !errors.Is(err, wantErr) {
			t.Errorf("got error %v, want one of kind %v", err, wantErr)
		}
		return
	case err != nil:
		t.Fatal(err)
	case deviates:
		return
	}
	if len(report.Files) != len(g.Sha) {
		t.Fatalf("%d files, want %d", len(report.Files), len(g.Sha))
	}
	for i, f := range report.Files {
		if f.Bytes != g.Size[i] {
			t.Errorf("%s: predicted %d bytes, want %d", f.Path, f.Bytes, g.Size[i])
		}
		if got := fileSum(t, f.Path); got != g.Sha[i] {
			t.Errorf("%s: sha256 %s, want %s", f.Path, got, g.Sha[i])
		}
		g.checkContent(t, f.Path, i)
	}
}

// quantizeTo runs a whole job and returns the predicted report.
func quantizeTo(in, out string, opt Options, w writer.Options) (*Report, error) {
	job, err := Prepare(context.Background(), in, opt)
	if job != nil {
		defer job.Close()
	}
	if err != nil {
		return nil, err
	}
	report, err := job.Report(out, nil)
	if err != nil {
		return nil, err
	}
	_, err = job.Write(context.Background(), out, w)
	return report, err
}

// checkContent compares metadata and types, for a message with more than a hash.
func (g *goldenRun) checkContent(t *testing.T, path string, shard int) {
	if g.KV == nil || strings.HasPrefix(g.In, "meta.") { // the latter's output states a wrong alignment
		return
	}
	var kv [][3]json.RawMessage
	var types map[string]string
	pick := func(raw json.RawMessage, v any) {
		if len(g.Sha) > 1 {
			var all []json.RawMessage
			if err := json.Unmarshal(raw, &all); err != nil {
				t.Fatal(err)
			}
			raw = all[shard]
		}
		if err := json.Unmarshal(raw, v); err != nil {
			t.Fatal(err)
		}
	}
	pick(g.KV, &kv)
	pick(g.Types, &types)
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if len(f.Metadata) != len(kv) {
		t.Errorf("%d pairs, want %d", len(f.Metadata), len(kv))
	}
	for i, want := range kv[:min(len(kv), len(f.Metadata))] {
		var key string
		if err := json.Unmarshal(want[0], &key); err != nil {
			t.Fatal(err)
		}
		got := f.Metadata[i]
		if got.Key != key {
			t.Errorf("pair %d is %s, want %s", i, got.Key, key)
		}
		text := got.Value.String()
		if v, ok := got.Value.Float(); ok {
			text = fmt.Sprint(v)
		}
		var w, h any
		if err := json.Unmarshal(want[2], &w); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(text), &h); err != nil || fmt.Sprint(w) != fmt.Sprint(h) {
			t.Errorf("key %s is %s, want %s", key, text, bytes.TrimSpace(want[2]))
		}
	}
	if len(types) != len(f.Tensors) {
		t.Errorf("%d tensors, want %d", len(f.Tensors), len(types))
	}
	for _, x := range f.Tensors {
		if types[x.Name] != x.Type.String() {
			t.Errorf("tensor %s is %v, want %s", x.Name, x.Type, types[x.Name])
		}
	}
}
