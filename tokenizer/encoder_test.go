package tokenizer

import (
	"encoding/json"
	"os"
	"testing"
	"testing/fstest"

	"ggforge/internal/toktest"
)

func encodeGolden(t testing.TB) map[string]toktest.Golden {
	t.Helper()
	data, err := os.ReadFile("testdata/encode.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden map[string]toktest.Golden
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	return golden
}

// TestEncodeGolden compares ids and decoded texts of more than a million
// characters, and the fingerprint, with the library's.
func TestEncodeGolden(t *testing.T) {
	lines := toktest.Corpus(toktest.GoldenSeed, toktest.GoldenLines)
	chars := 0
	for _, line := range lines {
		chars += len([]rune(line))
	}
	if chars < 1e6 {
		t.Errorf("%d characters, want a million", chars)
	}
	golden := encodeGolden(t)
	for _, tok := range toktest.Tokenizers() {
		t.Run(tok.Name, func(t *testing.T) {
			t.Parallel()
			want, ok := golden[tok.Name]
			if !ok {
				t.Fatal("no golden")
			}
			e, err := NewEncoder(tok.JSON)
			if err != nil {
				t.Fatal(err)
			}
			if sum, err := fingerprint(e.tok); err != nil || sum != want.Fingerprint {
				t.Errorf("fingerprint %s (%v), want %s", sum, err, want.Fingerprint)
			}
			for i, sum := range want.Chunks {
				if testing.Short() && i%8 != 0 {
					continue
				}
				got, err := toktest.Chunk(e, lines[i*toktest.ChunkLines:min((i+1)*toktest.ChunkLines, len(lines))])
				if err != nil {
					t.Fatal(err)
				}
				if got != sum {
					t.Errorf("lines from %d on: ids and text %s, want %s", i*toktest.ChunkLines, got, sum)
				}
			}
		})
	}
}

func file(data []byte) *fstest.MapFile { return &fstest.MapFile{Data: data} }
