package tokenizer

import (
	"encoding/json"
	"flag"
	"os"
	"testing"
	"testing/fstest"

	"ggforge/test/toktest"
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

var encodeAll = flag.Bool("encode.all", false, "encode all of the text, not a quarter of it")

// TestEncodeGolden compares ids and decoded texts of more than a million
// characters, and the fingerprint, with those of the tokenizers library.
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
	share := 4
	switch {
	case *encodeAll:
		share = 1
	case testing.Short():
		share = 8
	}
	for k, tok := range toktest.Tokenizers() {
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
				if (i+k)%share != 0 {
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

// unigramJSON returns a tokenizer.json of the pieces and the character map of a
// SentencePiece model.
func unigramJSON(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := readSPM(path, data)
	if err != nil {
		t.Fatal(err)
	}
	vocab, unk := [][]any{}, 0
	for i, p := range m.pieces {
		vocab = append(vocab, []any{p.text, p.score})
		if p.typ == Unknown {
			unk = i
		}
	}
	out, err := json.Marshal(map[string]any{
		"version":      "1.0",
		"added_tokens": []any{},
		// bytes become base64
		"normalizer": map[string]any{"type": "Precompiled", "precompiled_charsmap": m.charsMap},
		"pre_tokenizer": map[string]any{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always",
			"split": true},
		"decoder": map[string]any{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always",
			"split": true},
		"model": map[string]any{"type": "Unigram", "unk_id": unk, "vocab": vocab},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPrecompiled compares ids and texts of a Unigram model with a character map with those of the tokenizers
// library (test/interop/encode.py), for the first lines of the corpus.
func TestPrecompiled(t *testing.T) {
	e, err := NewEncoder(unigramJSON(t, "testdata/tiny-unigram-t5/spiece.model"))
	if err != nil {
		t.Fatal(err)
	}
	lines := toktest.Corpus(toktest.GoldenSeed, 2*toktest.ChunkLines)
	for i, want := range []string{"447c76056f23e42a 41b729e99967549a", "c0ae7834074ff015 6dcbcaa795934fd6"} {
		got, err := toktest.Chunk(e, lines[i*toktest.ChunkLines:(i+1)*toktest.ChunkLines])
		if err != nil || got != want {
			t.Errorf("lines from %d on: %s (%v), want %s", i*toktest.ChunkLines, got, err, want)
		}
	}
}
