package tokenizer

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ggforge/gguf"
)

// classCase is one entry of testdata/classes.json; see testdata/README.md.
type classCase struct {
	goldenCase
	Class Class
	HF    string // the architecture whose set_vocab wrote the pairs
	Pre   string
	Sum   string // of the check text's ids, for a vocabulary in tiktoken's format
	KVs   [][3]any
}

func classCases(t testing.TB) []*classCase {
	t.Helper()
	data, err := os.ReadFile("testdata/classes.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []*classCase
	decodeNumbers(t, data, &cases)
	return cases
}

func (c *classCase) load(t testing.TB) (*Vocab, error) {
	opt := Options{Class: c.Class, VocabSize: c.VocabSize, Pre: c.Pre}
	return Load(c.dir(t), opt)
}

// TestClasses compares the pairs of every rule set with the reference's: keys,
// order, types and values. What the reference refuses is refused.
func TestClasses(t *testing.T) {
	n := make(map[Class]int)
	for _, c := range classCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			v, err := c.load(t)
			if c.Error != "" {
				if !errors.Is(err, ErrBroken) && !errors.Is(err, ErrUnsupported) {
					t.Fatalf("got %v, but the reference says: %s", err, c.Error)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			n[c.Class]++
			if msg := comparePairs(v.KVs(), c.KVs); msg != "" {
				t.Errorf("%s\nwarnings: %q", msg, v.Warnings)
			}
		})
	}
	// compared in package convert, as whole files
	whole := []Class{ClassGPT2OrSPM, ClassDream, ClassLLaDA, ClassMistral, ClassQwen3ASR, ClassQwen3Omni, ClassNone,
		ClassD1, ClassOpenJev, ClassPplxDecider, ClassVllmD3, ClassClef, ClassVllmDecision2, ClassLev, ClassKev,
		ClassNimble, ClassD1Omni, ClassDecider, ClassMuseGlimmer, ClassKimiK3, ClassQwen3TTS, ClassPocketTTS}
	for class := range loaders {
		if n[class] == 0 && !slices.Contains(whole, class) {
			t.Errorf("no case of class %q", class)
		}
	}
}

// comparePairs returns the first difference. Keys of the architecture that
// set_vocab also writes are not compared.
func comparePairs(kvs gguf.Metadata, want [][3]any) string {
	want = slices.DeleteFunc(want, func(w [3]any) bool { return !strings.HasPrefix(w[0].(string), "tokenizer.") })
	for i, w := range want {
		key := w[0].(string)
		if i >= len(kvs) {
			return fmt.Sprintf("pair %d: want %s, got the end", i, key)
		}
		got := kvs[i]
		if got.Key != key {
			return fmt.Sprintf("pair %d: want %s, got %s", i, key, got.Key)
		}
		if typ := typeName(got.Value); typ != w[1] {
			return fmt.Sprintf("%s: want type %v, got %s", key, w[1], typ)
		}
		if msg := compareValue(got.Value, w[2]); msg != "" {
			return key + msg
		}
	}
	if len(kvs) > len(want) {
		return fmt.Sprintf("pair %d: want the end, got %s", len(want), kvs[len(want)].Key)
	}
	return ""
}

func compareValue(got gguf.Value, want any) string {
	switch want := want.(type) {
	case []any:
		if got.Len() != len(want) {
			return fmt.Sprintf(": want %d elements, got %d", len(want), got.Len())
		}
		i := 0
		for e := range got.Elems() {
			if msg := compareValue(e, want[i]); msg != "" {
				return fmt.Sprintf("[%d]%s", i, msg)
			}
			i++
		}
		return ""
	case map[string]any: // a long array
		if n := fmt.Sprint(got.Len()); n != fmt.Sprint(want["n"]) {
			return fmt.Sprintf(": want %v elements, got %s", want["n"], n)
		}
		if sum := arraySum(got); sum != want["sha256"] {
			return fmt.Sprintf(": want sha256 %v, got %s", want["sha256"], sum)
		}
		return ""
	case json.Number, string: // "inf" and "nan" are no JSON numbers
		if f, ok := got.Float(); ok && got.Type() == gguf.Float32Type {
			w, err := strconv.ParseFloat(fmt.Sprint(want), 32)
			if err != nil || float32(w) != float32(f) {
				return fmt.Sprintf(": want %v, got %v", want, got)
			}
			return ""
		}
	}
	if g, w := got.String(), goldenText(want); g != w {
		return fmt.Sprintf(": want %s, got %s", w, g)
	}
	return ""
}

// arraySum is the sha256 of an array's elements as a GGUF file holds them.
func arraySum(v gguf.Value) string {
	h := sha256.New()
	for e := range v.Elems() {
		switch v.ElemType() {
		case gguf.StringType:
			s, _ := e.Str()
			binary.Write(h, binary.LittleEndian, uint64(len(s)))
			h.Write([]byte(s))
		case gguf.Float32Type:
			f, _ := e.Float()
			binary.Write(h, binary.LittleEndian, float32(f))
		case gguf.Uint8Type:
			n, _ := e.Int()
			h.Write([]byte{byte(n)})
		default:
			n, _ := e.Int()
			binary.Write(h, binary.LittleEndian, int32(n))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// TestRanks compares the fingerprints of vocabularies in tiktoken's format.
func TestRanks(t *testing.T) {
	kinds := map[Class]struct{ file, words string }{
		ClassQwen: {qwenFile, qwenWords}, ClassHunYuan: {hyFile, qwenWords}, ClassHunYuanMoE: {hyFile, qwenWords},
		ClassDeepSeek2: {kimiFile, kimiWords}, ClassKimiLinear: {kimiFile, kimiWords},
	}
	n := 0
	for _, c := range classCases(t) {
		if c.Sum == "" {
			continue
		}
		n++
		r, err := (&files{dir: c.dir(t)}).readRanks(kinds[c.Class].file)
		if err != nil {
			t.Fatal(err)
		}
		if sum, err := r.fingerprint(kinds[c.Class].words); err != nil || sum != c.Sum {
			t.Errorf("%s: got %s, %v, want %s", c.Name, sum, err, c.Sum)
		}
	}
	if n == 0 {
		t.Error("no case")
	}
}
