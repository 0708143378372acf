package convert_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/convert"
	"ggforge/fault"
	"ggforge/test/hftest"
	"ggforge/writer"
)

// TestAdapters converts adapters of all linear layers: each file must equal that of the reference's classes, also
// where these exchange the two factors.
func TestAdapters(t *testing.T) {
	for _, name := range hftest.Adapted {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, dir := hftest.Lookup(name), t.TempDir()
			base, err := s.Write(dir, s.All()[0])
			if err != nil {
				t.Fatal(err)
			}
			adapter := filepath.Join(dir, "adapter")
			if n, err := hftest.WriteAdapter(adapter, base); err != nil || n == 0 {
				t.Fatalf("%d pairs, %v", n, err)
			}
			opt := convert.Options{Base: base, Reference: true}
			if s.Target != "" {
				opt.Target = filepath.Join(base, s.Target)
			}
			job, err := convert.Prepare(t.Context(), adapter, opt)
			if err != nil {
				t.Fatal(err)
			}
			defer job.Close()
			out := filepath.Join(dir, "out.gguf")
			if _, err := job.Write(t.Context(), out, writer.Options{}); err != nil {
				t.Fatal(err)
			}
			var got hftest.Golden
			if err := got.Add(hftest.Variant{Name: "adapter", Out: "f32"}, out); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", "lora", name+".txt")
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != string(want) {
				t.Errorf("differs from %s:\n%s", path, differences(got.String(), string(want)))
			}
		})
	}
}

// TestAdapterSizes converts adapters of weights whose sizes depend on config keys or tensors that few models have, with
// their base model and with another one.
func TestAdapterSizes(t *testing.T) {
	for _, c := range []struct {
		spec, tensor string
		other, want  string // what the other model has in config.json
		without      []string
	}{
		{"eagle3-llama", "fc.weight", `{"target_hidden_size": 96}`,
			`tensor "fc.weight": dimensions 192 x 64, want 288 x 64 (n_seen, n_embd)`, nil},
		{"qwen4_exp-text", "blk.1.ple_key.weight", `{"ple_embed_dim": 128}`,
			`tensor "model.layers.1.ple.key_proj.weight" (blk.1.ple_key.weight): dimensions 64 x 256, want 128 x 256: "qwen4exp.embedding_length"`,
			[]string{"mtp.fc_embedding.weight", "mtp.fc_hidden.weight"}},
	} {
		t.Run(c.spec, func(t *testing.T) {
			s, dir := hftest.Lookup(c.spec), t.TempDir()
			v := s.All()[0]
			base, err := s.Write(dir, v)
			if err != nil {
				t.Fatal(err)
			}
			adapter := filepath.Join(dir, "adapter")
			if _, err := hftest.WriteAdapter(adapter, base, c.without...); err != nil {
				t.Fatal(err)
			}
			opt := convert.Options{Base: base}
			if s.Target != "" {
				opt.Target = filepath.Join(base, s.Target)
			}
			job, err := convert.Prepare(t.Context(), adapter, opt)
			if err != nil {
				t.Fatal(err)
			}
			defer job.Close()
			if !slices.ContainsFunc(job.Plan, func(p convert.Tensor) bool { return p.Name == c.tensor+".lora_a" }) {
				t.Errorf("no pair of %s", c.tensor)
			}
			v.Set = c.other
			if _, err := s.Write(dir, v); err != nil {
				t.Fatal(err)
			}
			if _, err := convert.Prepare(t.Context(), adapter, opt); !errors.Is(err, fault.Broken) ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %s", err, c.want)
			}
		})
	}
}

// TestAdapterOptional converts adapters whose base models have, by their configuration, tensors that runtimes require
// and some checkpoints lack.
func TestAdapterOptional(t *testing.T) {
	for _, name := range []string{"granite_swa", "granite_moe_swa"} {
		s, dir := hftest.Lookup(name), t.TempDir()
		base, err := s.Write(dir, s.All()[0])
		if err != nil {
			t.Fatal(err)
		}
		adapter := filepath.Join(dir, "adapter")
		if n, err := hftest.WriteAdapter(adapter, base); err != nil || n == 0 {
			t.Fatalf("%s: %d pairs, %v", name, n, err)
		}
		job, err := convert.Prepare(t.Context(), adapter, convert.Options{Base: base})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		job.Close()
	}
}
