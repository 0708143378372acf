package calibrate

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ggforge/convert"
	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/internal/kernel/cpu"
	"ggforge/internal/kernel/parallel"
	"ggforge/model"
	"ggforge/test/hftest"
)

// small opens a model of a few kilobytes, and returns targets: tensors with one of these
// in their names.
func small(t testing.TB, spec string, names ...string) (*model.Model, []Target) {
	dir, err := hftest.Lookup(spec).Write(t.TempDir(), hftest.Variant{Seed: 1, DType: "BF16"})
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := convert.Open(context.Background(), dir, convert.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	var targets []Target
	for i := range m.Tensors {
		if slices.ContainsFunc(names, func(s string) bool { return strings.Contains(m.Tensors[i].Name, s) }) {
			targets = append(targets, Target{i, gguf.TypeQ4_0})
		}
	}
	return m, targets
}

// TestSaved checks that blocks are the same without a file of moments, in the run that makes it, and in one that has
// only the file, with other targets and workers; that importance is in the file, and that it has the size that it
// states. Columns are taken in ranges.
func TestSaved(t *testing.T) {
	ctx := context.Background()
	for spec, names := range map[string][]string{
		"mixtral": {"blk.1.ffn_down_exps", "blk.1.attn_k.", "blk.0.attn_output", "token_embd"},
		"gemma4":  {"token_embd", "per_layer_model_proj", "blk.0.inp_gate"},
	} {
		m, targets := small(t, spec, names...)
		r, err := eval.New(m)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		path := dir + "/moments"
		run := eval.Run{Tokens: make([]int32, 2*16), Chunk: 16, Workers: 2}
		for i := range run.Tokens {
			run.Tokens[i] = int32(i * 7919 % 900)
		}
		var tensorErrors []TensorError
		var blocks []byte
		do := func(what string, targets []Target, change func(o *Options)) *imatrix.Sums {
			t.Helper()
			sums := imatrix.NewSums(run.Chunk)
			collect, err := r.Collector(sums, true)
			if err != nil {
				t.Fatal(err)
			}
			opt := Options{Run: run, Dir: dir, Passes: 2, Feedback: true, MaxColumns: 32, Gradients: 1,
				Collect: collect, Text: [32]byte{1}}
			change(&opt)
			b, err := Run(ctx, m, targets, opt)
			if err != nil {
				t.Fatalf("%s, %s: %v", spec, what, err)
			}
			defer b.Close()
			got := contents(t, m, b, targets)
			if blocks == nil {
				tensorErrors, blocks = b.Errors, got
			}
			if len(targets) == 1 {
				if !bytes.Contains(blocks, got) || !slices.Contains(tensorErrors, b.Errors[0]) {
					t.Errorf("%s, %s: other blocks of one target", spec, what)
				}
			} else if !bytes.Equal(got, blocks) || !reflect.DeepEqual(b.Errors, tensorErrors) {
				t.Errorf("%s, %s: other blocks or errors: %+v, want %+v", spec, what, b.Errors, tensorErrors)
			}
			return sums
		}
		want := do("without a file", targets, func(*Options) {})
		do("one target, which makes the file", targets[len(targets)-1:], func(o *Options) { o.Moments = path })
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if none := do("from the file", targets, func(o *Options) {
			o.Moments, o.Run.Workers, o.Run.Tokens = path, 1,
				nil
		}); none.Len() > 0 {
			t.Errorf("%s: the model was run", spec)
		}
		if cpu.HasVectors { // else it takes long, and it tests no kernel
			lazily(t, m, targets, Options{Run: eval.Run{Chunk: run.Chunk, Workers: 2}, Dir: dir, Passes: 2,
				Feedback: true, MaxColumns: 32, Gradients: 1, Moments: path, Lazy: true}, blocks, tensorErrors)
		}
		s, err := OpenMoments(path)
		if err != nil {
			t.Fatal(err)
		}
		size, parts := int64(0), int64(0)
		for _, in := range s.inputs {
			for from := 0; from < in.columns; from += 32 {
				size, parts = size+4*triangle(min(32, in.columns-from)), parts+1
			}
		}
		if s.costs != nil {
			size += 4 * triangle(int(math.Sqrt(float64(2*s.costs.Elements()))))
		}
		f, err := s.Sums.State(nil)
		if err != nil {
			t.Fatal(err)
		}
		if size += s.file.DataStart + f.Size; st.Size() < size || st.Size() > size+32*(parts+2) {
			t.Errorf("%s: %d bytes, want %d", spec, st.Size(), size)
		}
		if !reflect.DeepEqual(s.Sums.Tallies(), want.Tallies()) || s.Tokens != 32 || s.Chunk != 16 ||
			s.Text != [32]byte{1} {
			t.Errorf("%s: another importance matrix, or %d tokens in chunks of %d", spec, s.Tokens, s.Chunk)
		}
		if (s.noGradients == "") != (s.costs != nil) {
			t.Errorf("%s: gradients %v, because of %q", spec, s.costs, s.noGradients)
		}
		s.Close()
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("%s: leftover files: %v, %v", spec, left, err)
		}
	}
}

// lazily reads a third or all of the blocks of a run with Options.Lazy, from several goroutines, and checks that the
// others are not encoded.
func lazily(t *testing.T, m *model.Model, targets []Target, opt Options, want []byte, tensorErrors []TensorError) {
	t.Helper()
	ctx := context.Background()
	for _, share := range []int{0, 2} { // 2 is all
		b, err := Run(ctx, m, targets, opt)
		if err != nil {
			t.Fatal(err)
		}
		at := int64(0)
		for _, target := range targets {
			s := b.Source(target)
			count := gguf.Rows(s.NE())
			size := gguf.DataBytes(target.Type, s.NE())
			n := int64(3) // of ranges of rows
			err := parallel.For(ctx, 2, int(n), func(i, _ int) error {
				x, y := count*int64(i)/n, count*int64(i+1)/n
				if share < 2 && i != share || x == y {
					return nil
				}
				raw, err := s.Raw(new([]byte), x, y)
				if err == nil && !bytes.Equal(raw, want[at+size*x/count:at+size*y/count]) {
					t.Errorf("%s: rows %d to %d differ when they are read alone",
						m.Tensors[target.Tensor].Name, x, y)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			matrices := int64(len(b.tensors[target].seen))
			whole := matrices * ((count/matrices + batchRows - 1) / batchRows)
			if done := int64(len(b.lazy.done[target])); share == 0 && done > whole/n+1 {
				t.Errorf("%s: %d of %d batches are encoded for a third", m.Tensors[target.Tensor].Name, done, whole)
			}
			at += size
		}
		if gradients := slices.ContainsFunc(tensorErrors,
			func(l TensorError) bool { return l.Gradients }); b.Gradients() != gradients || b.Errors != nil {
			t.Errorf("gradients: %v, want %v; errors %v", b.Gradients(), gradients, b.Errors)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	opt.Moments += "x"
	if _, err := Run(ctx, m, targets, opt); !errors.Is(err, fault.Usage) ||
		!strings.Contains(err.Error(), "needs an existing moments file") {
		t.Errorf("without moments: %v", err)
	}
}

// TestSavedRefused checks files of other runs, and files that are not moments.
func TestSavedRefused(t *testing.T) {
	ctx := context.Background()
	m, targets := small(t, "mixtral", "blk.0.attn_k.", "token_embd")
	dir := t.TempDir()
	path := dir + "/moments"
	options := func() Options {
		return Options{Run: eval.Run{Tokens: []int32{1, 2, 3, 4}, Chunk: 2}, Dir: dir, Passes: 1, Moments: path,
			Text: [32]byte{1}, Gradients: 1}
	}
	run := func(m *model.Model, opt Options) error {
		b, err := Run(ctx, m, targets, opt)
		if err == nil {
			b.Close()
		}
		return err
	}
	if err := run(m, options()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := *m
	other.Metadata = append(slices.Clone(m.Metadata), gguf.KV{Key: "general.x", Value: gguf.String("y")})
	for want, change := range map[string]func(o *Options, m **model.Model){
		"text SHA-256 01":                 func(o *Options, _ **model.Model) { o.Text[0] = 2 },
		"chunk size 2, want 4":            func(o *Options, _ **model.Model) { o.Run.Chunk = 4 },
		"number of chunks 2, want 1":      func(o *Options, _ **model.Model) { o.Run.Tokens = o.Run.Tokens[:2] },
		"SHA-256 of tokens":               func(o *Options, _ **model.Model) { o.Run.Tokens[3] = 5 },
		"columns per range 8192, want 16": func(o *Options, _ **model.Model) { o.MaxColumns = 16 },
		"chunks with gradients 1, want 2": func(o *Options, _ **model.Model) { o.Gradients = 2 },
		"model identity":                  func(_ *Options, m **model.Model) { *m = &other },
	} {
		opt, of := options(), m
		change(&opt, &of)
		if err := run(of, opt); !errors.Is(err, fault.Refused) || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, whole) {
		t.Error("the file was changed")
	}
	f, err := gguf.Parse("", whole)
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseMoments(f)
	if err != nil {
		t.Fatal(err)
	}
	of := slices.IndexFunc(s.inputs, func(in storedInput) bool {
		return slices.Contains(in.readers,
			key{"blk.0.attn_k.weight", 0})
	})
	input := f.DataStart + s.inputs[of].parts[0].Offset
	for name, c := range map[string]struct {
		at   int64
		put  []byte
		kind error
	}{
		"another type": {int64(bytes.Index(whole, []byte("moments"))), []byte("imatrix"), fault.Broken},
		"another version": {int64(bytes.Index(whole, []byte("moments.version"))) + 15 + 4, []byte{1},
			fault.Refused},
		"a reader twice": {int64(bytes.Index(whole, []byte("blk.0.attn_q.weight"))),
			[]byte("blk.0.attn_k.weight"), fault.Broken},
		"a tensor is not there": {int64(bytes.Index(whole, []byte("input.1.0"))), []byte("input.x"), fault.Broken},
		"not a number":          {input + 8, binary.LittleEndian.AppendUint32(nil, 0x7fc00000), fault.Broken},
		"a square below 0":      {input, binary.LittleEndian.AppendUint32(nil, 0xbf800000), fault.Broken},
	} {
		data := bytes.Clone(whole)
		copy(data[c.at:], c.put)
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := run(m, options()); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, n := range []int{0, 100, int(input), len(whole) - 40} {
		if err := os.WriteFile(path, whole[:n], 0o666); err != nil {
			t.Fatal(err)
		}
		if err := run(m, options()); !errors.Is(err, fault.Broken) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	for to, kind := range map[string]error{path: fault.Broken, dir + "/nothing": fault.Broken} {
		opt := options()
		opt.Moments = dir + "/link"
		os.Remove(opt.Moments)
		if err := os.Symlink(to, opt.Moments); err != nil {
			t.Fatal(err)
		}
		if err := run(m, opt); !errors.Is(err, kind) || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("a link to %s: %v", to, err)
		}
	}
	if _, err := os.Stat(dir + "/nothing"); err == nil {
		t.Error("written through a link")
	}
}

// openBytes parses a moments file in memory.
func openBytes(data []byte) (*MomentsFile, error) {
	f, err := gguf.Parse("made", data)
	if err != nil {
		return nil, err
	}
	return parseMoments(f)
}

// FuzzSaved checks that files of any content are read without a panic, with memory in
// proportion to them.
func FuzzSaved(f *testing.F) {
	st, err := newMomentsWriter(f.TempDir() + "/moments")
	if err != nil {
		f.Fatal(err)
	}
	defer st.close()
	for i, names := range [][]string{{"a", "b"}, {"c"}} {
		x := &input{parts: ranges(3+i, 3, 1), matrices: 2}
		for _, name := range names {
			x.readers = append(x.readers, key{name, i})
		}
		for k, p := range x.parts {
			if err := p.AddColumns(context.Background(), []float32{1, 2, 3, 4, 5, 6, 7, 8}[:6+2*i], 3+i,
				3*k); err != nil {
				f.Fatal(err)
			}
		}
		if err := st.add(context.Background(), x); err != nil {
			f.Fatal(err)
		}
	}
	if err := st.triangle(costsName, 2, []float32{1, 0, 1, 1}); err != nil {
		f.Fatal(err)
	}
	zeros := gguf.String(strings.Repeat("0", 64))
	number := gguf.Uint64(3)
	var file bytes.Buffer
	if _, err := st.layout(gguf.Metadata{
		{Key: "general.type", Value: gguf.String(momentsType)},
		{Key: "moments.version", Value: gguf.Uint32(momentsVersion)}, {Key: "moments.model", Value: zeros},
		{Key: "moments.text_sha256", Value: zeros}, {Key: "moments.tokens_sha256", Value: zeros},
		{Key: "moments.chunk_size", Value: number},
		{Key: "moments.token_count", Value: number}, {Key: "moments.max_columns", Value: number},
		{Key: "moments.gradients", Value: number},
	}).WriteTo(&file); err != nil {
		f.Fatal(err)
	}
	whole := file.Bytes()
	if s, err := openBytes(whole); err != nil || len(s.inputs) != 2 || len(s.inputs[1].parts) != 2 {
		f.Fatalf("the seed: %v", err)
	}
	f.Add(whole)
	f.Add(whole[:1000])
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := openBytes(data)
		if err != nil {
			if !errors.Is(err, fault.Unsupported) && !errors.Is(err, fault.Broken) && !errors.Is(err, fault.Refused) {
				t.Errorf("%v", err)
			}
			return
		}
		for i := range s.inputs {
			x, err := s.input(&s.inputs[i], 1)
			if err != nil {
				if !errors.Is(err, fault.Broken) {
					t.Errorf("%v", err)
				}
				continue
			}
			numbers := 0
			for _, p := range x.parts {
				numbers += len(p.h)
			}
			if 2*numbers > len(data) {
				t.Errorf("%d numbers of %d bytes", numbers, len(data))
			}
		}
		if _, err := s.errors(2); err != nil && !errors.Is(err, fault.Broken) {
			t.Errorf("%v", err)
		}
	})
}
