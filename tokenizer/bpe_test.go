package tokenizer_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"ggforge/test/toktest"
	"ggforge/tokenizer"
)

// TestVocabGolden compares the keys of byte-level vocabularies with those that the
// reference writes.
func TestVocabGolden(t *testing.T) {
	data, err := os.ReadFile("testdata/bpe.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden map[string][]string
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	for _, c := range toktest.Checkpoints() {
		t.Run(c.Name, func(t *testing.T) {
			want, ok := golden[c.Name]
			if !ok {
				t.Fatal("no golden")
			}
			var config struct {
				Architectures []string
				VocabSize     int `json:"vocab_size"`
			}
			if err := json.Unmarshal(c.Files["config.json"].Data, &config); err != nil {
				t.Fatal(err)
			}
			v, err := tokenizer.Load(c.Files, tokenizer.Options{Rules: tableOf(t, config.Architectures[0]).Tokenizer,
				VocabSize: config.VocabSize, Pre: "some-name"})
			if err != nil {
				t.Fatal(err)
			}
			if got := toktest.List(v.KVs()); !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s\nwarnings %q", strings.Join(got, "\n"),
					strings.Join(want, "\n"), v.Warnings)
			}
		})
	}
}
