package interop

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ggforge/gguf"
	"ggforge/test/vocabtest"
	"ggforge/tokenizer/vocab"
)

const idsFile = "../../tokenizer/vocab/testdata/ids.json"

// ids encodes a text with the runtime.
func (o *oracle) ids(t *testing.T, m gguf.Metadata, text string, parse bool) []int32 {
	t.Helper()
	file, textFile := work+"/vocab.gguf", work+"/text.txt"
	must(t, os.WriteFile(root+file, gguf.AppendHeader(nil, m, nil, 32), 0o666))
	must(t, os.WriteFile(root+textFile, []byte(text), 0o666))
	argv := []string{"llama-tokenize", "-m", file, "-f", textFile, "--ids", "--no-escape", "--log-disable"}
	if !parse {
		argv = append(argv, "--no-parse-special")
	}
	out := o.tool(t, argv...)
	var ids []int32
	if err := json.Unmarshal([]byte(out[strings.LastIndexByte(out, '['):]), &ids); err != nil {
		t.Fatalf("%v in %.200q", err, out)
	}
	return ids
}

// sameIDs compares ids, and shows the tokens around the first difference.
func sameIDs(t *testing.T, v *vocab.Vocab, got, want []int32) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i < len(got) && i < len(want) && got[i] == want[i] {
			continue
		}
		tokens := func(ids []int32) (out []string) {
			for _, id := range ids[min(max(0, i-3), len(ids)):min(i+6, len(ids))] {
				out = append(out, fmt.Sprintf("%q", v.Token(id)))
			}
			return out
		}
		t.Errorf("id %d of %d, want %d: %s, want %s", i, len(got), len(want), tokens(got), tokens(want))
		return
	}
}

// TestTokenize compares the ids that package vocab makes with those of the runtime, on
// texts that are new in each run, for tokenizers of every kind and all
// pre-tokenizers; and with published ones where they are at hand.
func TestTokenize(t *testing.T) {
	o := start(t)
	cases, err := vocabtest.Cases(t.Context(), t.TempDir())
	must(t, err)
	for _, c := range tokenizers {
		if !strings.HasPrefix(c.name, "real-") {
			continue
		}
		if m := o.realVocab(t, c.args, c.omit, c.name); m != nil {
			cases = append(cases, vocabtest.Case{Name: c.name, Metadata: m})
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	text := vocabtest.Text(seed, 150)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			v, err := vocab.New(c.Metadata)
			must(t, err)
			for _, parse := range []bool{false, true} {
				got, err := v.Encode(text, vocab.Options{AddSpecial: v.AddBos(), ParseSpecial: parse})
				must(t, err)
				sameIDs(t, v, got, o.ids(t, c.Metadata, text, parse))
			}
		})
	}
}

// realVocab makes a checkpoint with a published tokenizer and returns the metadata that our converter writes for its
// vocabulary, nil where the tokenizer is not at hand.
func (o *oracle) realVocab(t *testing.T, args, omit, name string) gguf.Metadata {
	t.Helper()
	arch, rest, _ := strings.Cut(args, " ")
	_, tok, _ := strings.Cut(args, "tok=real:")
	tok, _, _ = strings.Cut(tok, " ")
	if tok == "phi-2" {
		tok = "gpt2" // made of it
	}
	if _, err := os.Stat(root + work + "/oracle/tokenizers/" + tok); err != nil {
		return nil
	}
	dir := work + "/" + name
	o.script(t, "mkhf.py", append([]string{arch, dir}, strings.Fields(rest)...)...)
	for _, file := range strings.Fields(omit) {
		must(t, os.Remove(root+dir+"/"+file))
	}
	out := filepath.Join(root+work, name+".gguf")
	ours(t, "ggconv", root+dir, "--vocab-only", "--outfile", out, "--progress", "none")
	os.RemoveAll(root + dir)
	f, err := gguf.Open(out)
	must(t, err)
	defer f.Close()
	return slices.Clone(f.Metadata)
}

// TestIDsGolden checks that the ids in the repository are those of the runtime, or
// writes them anew where GOLDEN is set to write.
func TestIDsGolden(t *testing.T) {
	o := start(t)
	cases, err := vocabtest.Cases(t.Context(), t.TempDir())
	must(t, err)
	text := vocabtest.Text(vocabtest.GoldenSeed, vocabtest.GoldenLines)
	golden := map[string][]string{}
	for _, c := range cases {
		for _, parse := range []bool{false, true} {
			golden[c.Name] = append(golden[c.Name], vocabtest.Sum(o.ids(t, c.Metadata, text, parse)))
		}
	}
	var b strings.Builder
	for i, name := range slices.Sorted(maps.Keys(golden)) {
		sep := ",\n"
		if i == 0 {
			sep = "{\n"
		}
		line, err := json.Marshal(golden[name])
		must(t, err)
		fmt.Fprintf(&b, "%s%q: %s", sep, name, line)
	}
	b.WriteString("\n}\n")
	if os.Getenv("GOLDEN") == "write" {
		must(t, os.WriteFile(idsFile, []byte(b.String()), 0o666))
		return
	}
	have, err := os.ReadFile(idsFile)
	must(t, err)
	if string(have) != b.String() {
		t.Errorf("%s is not what the runtime makes", idsFile)
	}
}
