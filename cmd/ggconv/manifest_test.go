package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/checkpoint/ggml/ggmltest"
	"ggforge/cmd/internal/reproduce"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/publish/manifest"
	"ggforge/test/hubtest"
)

// again reproduces the run of a manifest.
func again(path string, inputs ...string) (*reproduce.Result, string, error) {
	var warned []string
	r, err := reproduce.Run(context.Background(), path, reproduce.Options{
		Inputs: inputs, Workers: 2, Flags: []string{"--progress", "none"}, Log: io.Discard,
		Warn: func(texts ...string) { warned = append(warned, texts...) },
	})
	return r, strings.Join(warned, "\n"), err
}

// TestManifest converts with all kinds of inputs, and reproduces the run from the manifest.
func TestManifest(t *testing.T) {
	dir := t.TempDir()
	names := filepath.Join(dir, "names.json")
	must(t, os.WriteFile(names, []byte(`{"general.name": "Other"}`), 0o666))
	adapter := writeAdapter(t, "tuned", attention(4), nil)
	for _, c := range []struct {
		name, args, want string
		outputs          []string // arguments
		roles            []string
		inputs           []string
	}{
		{"type by name", "", "--outtype bf16", []string{gollama, filepath.Join(dir, "x-bf16.gguf")}, []string{"source"},
			[]string{gollama}},
		{"shards", "--split-max-tensors 20 --metadata " + names, "--max-tensors 20 --metadata names.json",
			[]string{gollama, filepath.Join(dir, "s.gguf")}, []string{"metadata", "source"}, []string{gollama, names}},
		{"vocabulary", "--vocab-only", "--vocab-only", []string{gollama, filepath.Join(dir, "v.gguf")},
			[]string{"source"}, []string{gollama}},
		{"merged", "--merge-lora " + adapter + ":0.5", "--merge-lora tuned:0.5",
			[]string{gollama, filepath.Join(dir, "m.gguf")}, []string{"merge-lora", "source"},
			[]string{gollama, adapter}},
		{"adapter", "--base " + gollama, "--base gollama", []string{adapter, filepath.Join(dir, "a.gguf")},
			[]string{"base", "source"}, []string{adapter, filepath.Dir(gollama)}},
		{"before GGUF", "--eps 1e-6", "--eps 1e-06",
			[]string{writeOld(t, "old.bin", ggmltest.Llama("tjgg", 3, 18, gguf.TypeQ6_K, true)),
				filepath.Join(dir, "o.gguf")}, []string{"source"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			kept := filepath.Join(t.TempDir(), "m.json")
			if c.inputs == nil {
				c.inputs = c.outputs[:1]
			}
			args := append([]string{"--progress", "none", "--manifest", kept}, strings.Fields(c.args)...)
			if code, out, err := call(append(args, c.outputs...)...); code != 0 {
				t.Fatalf("%v: %s", err, out)
			}
			m, err := manifest.Read(kept)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(m.Arguments, " "); got != c.want {
				t.Errorf("arguments %q, want %q", got, c.want)
			}
			var roles []string
			for _, in := range m.Inputs {
				if len(roles) == 0 || roles[len(roles)-1] != in.Role {
					roles = append(roles, in.Role)
				}
			}
			if strings.Join(roles, " ") != strings.Join(c.roles, " ") {
				t.Errorf("roles of inputs %q, want %q", roles, c.roles)
			}
			r, warned, err := again(kept, c.inputs...)
			if err != nil || !r.Same || r.Inputs != len(m.Inputs) || warned != "" {
				t.Errorf("%+v, %v, %s", r, err, warned)
			}
		})
	}
}

// TestManifestRemote converts a model of a hub: no server that only the manifest names is asked, and a local copy is
// accepted instead.
func TestManifestRemote(t *testing.T) {
	t.Setenv("HF_TOKEN", "")
	hub := hubtest.Serve(t, "org/gollama", gollama)
	t.Setenv("HF_ENDPOINT", hub.URL)
	dir := t.TempDir()
	kept, names := filepath.Join(dir, "m.json"), filepath.Join(dir, "names.json")
	must(t, os.WriteFile(names, []byte(`{"general.name": "Gollama", "general.organization": "Org"}`), 0o666))
	if code, out, err := call("--progress", "none", "--manifest", kept, "--metadata", names, "--remote", "org/gollama",
		filepath.Join(dir, "out.gguf")); code != 0 {
		t.Fatalf("%v: %s", err, out)
	}
	m, err := manifest.Read(kept)
	if err != nil {
		t.Fatal(err)
	}
	if m.Source != "hf://org/gollama" {
		t.Errorf("source %s", m.Source)
	}
	for _, in := range m.Inputs {
		if in.Role == "source" && (in.State == "" || in.SHA256 == "" != strings.HasSuffix(in.Name, ".safetensors")) {
			t.Errorf("%+v", in)
		}
	}
	if _, _, err := again(kept); !errors.Is(err, fault.Usage) {
		t.Errorf("without its address: %v", err)
	}
	for _, in := range []string{"hf://org/gollama", gollama} {
		if r, _, err := again(kept, in, names); err != nil || !r.Same {
			t.Errorf("%s: %+v, %v", in, r, err)
		}
	}
}
