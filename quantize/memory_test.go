package quantize

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model"
	"ggforge/writer"
)

// readRows returns the rows of a tensor, read from several goroutines, a few at a time.
func readRows(t *testing.T, x *model.Tensor) []byte {
	t.Helper()
	n, size := gguf.Rows(x.NE), x.Source.Type().RowBytes(gguf.RowLen(x.NE))
	all := make([]byte, n*size)
	var wg sync.WaitGroup
	for from := int64(0); from < n; from += 5 {
		wg.Go(func() {
			end := min(from+5, n)
			raw, err := x.Source.Raw(new([]byte), from, end)
			if err != nil {
				t.Errorf("%s: %v", x.Name, err)
			}
			copy(all[from*size:end*size], raw)
		})
	}
	wg.Wait()
	return all
}

// TestModel compares models in memory with the files that are written.
func TestModel(t *testing.T) {
	dir := inputs(t)
	for _, c := range []struct {
		in, recipe, matrix string
		change             func(*Options)
	}{
		{in: "dense", recipe: "Q4_K_M"},
		{in: "dense16", recipe: "Q2_K"},
		{in: "densebf", recipe: "IQ4_XS", matrix: "gg/imd"},
		{in: "tied", recipe: "Q8_0"},
		{in: "moe", recipe: "IQ2_XS", matrix: "gg/imx"},
		{in: "moe16", recipe: "MXFP4_MOE"},
		{in: "moe", recipe: "Q4_K_M", matrix: "gg/imm"},
		{in: "meta", recipe: "Q3_K_L"}, // rows of 72 and 96: fallbacks
		{in: "dense80", recipe: "Q5_K_M", change: func(o *Options) { o.AllowRequantize = true }},
		{in: "dense", recipe: "COPY"},
		{in: "dense", recipe: "Q4_K_M", change: func(o *Options) {
			o.PruneLayers, o.Override = []int64{1}, []gguf.KV{{Key: "a", Value: gguf.Bool(true)}}
			rule, err := CompileTensorRule("ffn_up=q6_k")
			if err != nil {
				t.Fatal(err)
			}
			o.TensorTypes = []TensorTypeRule{rule}
		}},
	} {
		opt := options(t, c.recipe)
		if c.matrix != "" {
			opt.Matrix = filepath.Join(dir, c.matrix)
		}
		if c.change != nil {
			c.change(&opt)
		}
		in := filepath.Join(dir, c.in+".gguf")
		job, err := Prepare(context.Background(), in, opt)
		if err != nil {
			t.Fatal(err)
		}
		defer job.Close()
		path := filepath.Join(t.TempDir(), "out.gguf")
		if _, err := job.Write(context.Background(), path, writer.Options{Workers: 2}); err != nil {
			t.Fatal(err)
		}
		file, err := model.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		m, err := job.Model(nil)
		if err != nil {
			t.Fatal(err)
		}
		if m.Path != in+" as "+opt.Recipe.Name || m.Bytes != file.Bytes || m.Shards != 1 ||
			len(m.Tensors) != len(file.Tensors) || len(m.Metadata) != len(file.Metadata) {
			t.Errorf("%s as %s: %s of %d bytes, %d keys, %d tensors; the file has %d, %d, %d", c.in, c.recipe, m.Path,
				m.Bytes, len(m.Metadata), len(m.Tensors), file.Bytes, len(file.Metadata), len(file.Tensors))
			continue
		}
		for i, kv := range file.Metadata {
			if m.Metadata[i].Key != kv.Key || m.Metadata[i].Value.String() != kv.Value.String() {
				t.Errorf("%s as %s: key %d is %v, in the file %v", c.in, c.recipe, i, m.Metadata[i], kv)
			}
		}
		for i := range file.Tensors {
			a, b := &m.Tensors[i], &file.Tensors[i]
			if a.Name != b.Name || a.Type != b.Type || !slices.Equal(a.NE, b.NE) || a.Source.Type() != b.Type ||
				!slices.Equal(a.Source.NE(), b.NE) {
				t.Errorf("%s as %s: tensor %d is %+v, in the file %+v", c.in, c.recipe, i, a.Tensor, b.Tensor)
			} else if !bytes.Equal(readRows(t, a), readRows(t, b)) {
				t.Errorf("%s as %s: tensor %s has other bytes than in the file", c.in, c.recipe, a.Name)
			}
		}
		if err := m.Unchanged(); err != nil {
			t.Error(err)
		}
	}
}

// TestModelOfSome checks that only the selected tensors change, and the others keep their sources.
func TestModelOfSome(t *testing.T) {
	dir := inputs(t)
	job, err := Prepare(context.Background(), filepath.Join(dir, "dense.gguf"), options(t, "Q4_K_M"))
	if err != nil {
		t.Fatal(err)
	}
	defer job.Close()
	m, err := job.Model(func(d *Decision) bool { return strings.Contains(d.Name, "attn_v") })
	if err != nil {
		t.Fatal(err)
	}
	all, err := job.Model(nil)
	if err != nil {
		t.Fatal(err)
	}
	if m.Bytes <= all.Bytes || m.Bytes >= job.Input.Bytes {
		t.Errorf("%d bytes, with all %d, with none %d", m.Bytes, all.Bytes, job.Input.Bytes)
	}
	changed := 0
	for i, x := range m.Tensors {
		if in := job.Input.Tensors[job.Decisions[i].Tensor]; x.Source == in.Source && x.Type == in.Type {
			continue
		}
		changed++
		if !strings.Contains(x.Name, "attn_v") || x.Type != gguf.TypeQ6_K && x.Type != gguf.TypeQ4_K ||
			!bytes.Equal(readRows(t, &x), readRows(t, &all.Tensors[i])) {
			t.Errorf("%s is %v", x.Name, x.Type)
		}
	}
	if changed != 3 {
		t.Errorf("%d tensors are encoded, want 3", changed)
	}
}

// TestModelErrors checks that weights which a file could not hold are an error here, too.
func TestModelErrors(t *testing.T) {
	dir := inputs(t)
	for in, c := range map[string]struct{ recipe, want string }{
		"nan": {"Q8_0", "row 0, column 5"},
		"inf": {"Q4_K_M", "finite"},
		"big": {"F16", "weights too large for F16"},
	} {
		job, err := Prepare(context.Background(), filepath.Join(dir, in+".gguf"), options(t, c.recipe))
		if err != nil {
			t.Fatal(err)
		}
		defer job.Close()
		m, err := job.Model(nil)
		if err != nil {
			t.Fatal(err)
		}
		var found error
		for _, x := range m.Tensors {
			if _, err := x.Source.Raw(new([]byte), 0, gguf.Rows(x.NE)); err != nil {
				found = errors.Join(found, err)
			}
		}
		if !errors.Is(found, fault.Broken) || !strings.Contains(found.Error(), c.want) {
			t.Errorf("%s: %v, want %s", in, found, c.want)
		}
	}
	path := filepath.Join(dir, "dense.gguf")
	job, err := Prepare(context.Background(), path, options(t, "Q8_0"))
	if err != nil {
		t.Fatal(err)
	}
	defer job.Close()
	m, err := job.Model(nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(data, 0), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Unchanged(); !errors.Is(err, fault.Broken) {
		t.Errorf("a file that has changed: %v", err)
	}
}
