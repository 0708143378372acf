package convert_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/arch"
	"ggforge/convert"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/test/hftest"
)

// widths are the config keys of the size of the residual stream.
var widths = []string{"hidden_size", "n_embd", "n_embed", "d_model", "model_dim", "dim"}

// TestWidth doubles the hidden size in the config of a checkpoint of every
// architecture: none may be converted.
func TestWidth(t *testing.T) {
	for _, s := range hftest.Specs() {
		if text, ok := s.Files["config.json"]; ok && text == "" {
			continue // its width follows from its tensors
		}
		if _, err := arch.Lookup(s.Class()); err != nil {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			dir, err := s.Write(t.TempDir(), s.All()[0])
			if err != nil {
				t.Fatal(err)
			}
			path := s.ConfigPath(dir)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var config map[string]any
			if err := json.Unmarshal(data, &config); err != nil {
				t.Fatal(err)
			}
			if !double(config) {
				t.Fatalf("config.json without %q", widths)
			}
			if data, err = json.Marshal(config); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, data, 0o666); err != nil {
				t.Fatal(err)
			}
			opt := convert.Options{Pre: s.PreTokenizer(), Base: s.BaseDir(dir)}
			if s.Target != "" {
				opt.Target = filepath.Join(dir, s.Target)
			}
			job, err := convert.Prepare(context.Background(), dir, opt)
			if err == nil {
				job.Close()
				t.Error("converted")
			} else if !fault.Has(err) || !strings.Contains(err.Error(), dir) {
				t.Error(err)
			}
		})
	}
}

// double doubles the sizes of a config and those of the language model in it.
func double(config map[string]any) (ok bool) {
	for key, v := range config {
		switch v := v.(type) {
		case float64:
			if slices.Contains(widths, key) {
				config[key], ok = 2*v, true
			}
		case map[string]any:
			if key == "text_config" || key == "thinker_config" || key == "language_config" ||
				key == "transformer_layer_config" || key == "talker_config" {
				ok = double(v) || ok
			}
		}
	}
	return ok
}

// TestLongDecoder converts a model whose decoder has more layers than its encoder.
func TestLongDecoder(t *testing.T) {
	s := hftest.Lookup("mt5")
	v := s.All()[0]
	v.Set = `{"num_layers": 1, "num_decoder_layers": 3}`
	dir, err := s.Write(t.TempDir(), v)
	if err != nil {
		t.Fatal(err)
	}
	job, err := convert.Prepare(context.Background(), dir, convert.Options{Pre: s.PreTokenizer()})
	if err != nil {
		t.Fatal(err)
	}
	defer job.Close()
	var names []string
	for _, x := range job.Plan {
		names = append(names, x.Name)
	}
	for name, want := range map[string]bool{
		"enc.blk.0.attn_q.weight": true, "enc.blk.1.attn_q.weight": false, "dec.blk.2.attn_q.weight": true,
		"dec.blk.2.cross_attn_q.weight": true,
	} {
		if slices.Contains(names, name) != want {
			t.Errorf("%s: %v, want %v", name, !want, want)
		}
	}
	for key, want := range map[string]int64{"t5.block_count": 1, "t5.decoder_block_count": 3} {
		if v, _ := job.Metadata().Get(key); v != gguf.Uint32(uint32(want)) {
			t.Errorf("%s is %v, want %d", key, v, want)
		}
	}
}
