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
	"ggforge/internal/hftest"
)

// widths are the config keys of the size of the residual stream.
var widths = []string{"hidden_size", "n_embd", "n_embed", "d_model", "model_dim", "dim"}

// TestWidth doubles the hidden size in the config of a checkpoint of every
// architecture: none may be converted.
func TestWidth(t *testing.T) {
	for _, s := range hftest.Specs() {
		if _, err := arch.Lookup(s.Class()); err != nil {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			dir, err := s.Write(t.TempDir(), s.All()[0])
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "config.json")
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
			job, err := convert.Prepare(context.Background(), dir, convert.Options{Pre: s.PreTokenizer()})
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
			if key == "text_config" {
				ok = double(v) || ok
			}
		}
	}
	return ok
}
