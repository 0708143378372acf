package naming

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestTags compares tags with what each reader does with the names that are misread in practice. That llama.cpp does so
// is what test/interop shows, with the same list.
func TestTags(t *testing.T) {
	data, err := os.ReadFile("testdata/tags.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name  string
		Paths []string
		Want  []Tag
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		got := Tags(c.Paths)
		if !slices.EqualFunc(got, c.Want, func(a, b Tag) bool {
			x, y := a, b
			x.Warnings, y.Warnings = nil, nil
			return x.File == y.File && x.LlamaCPP == y.LlamaCPP && x.Hub == y.Hub && slices.Equal(a.Warnings, b.Warnings) &&
				x.LlamaCPPDefault == y.LlamaCPPDefault && x.HubDefault == y.HubDefault
		}) {
			text, _ := json.MarshalIndent(got, "", "  ")
			t.Errorf("%s:\n%s", c.Name, text)
		}
	}
}

// FuzzTags checks that a tag leads to one file, and that the order of paths does not matter.
func FuzzTags(f *testing.F) {
	f.Add("M-BF16.gguf\nM-F16.gguf\nM-IQ2_K.gguf\nM-Q2_K.gguf\nM-Imatrix.gguf")
	f.Add("Q2_K/M-Q2_K-00001-of-00002.gguf\nQ2_K/M-Q2_K-00002-of-00002.gguf\nREADME.md\npreset.ini")
	f.Add("a.gguf.part1of2\nİ-Q4_0.gguf\n-\n/\n.gguf\n\xff-F16.GGUF")
	f.Fuzz(func(t *testing.T, text string) {
		paths := strings.Split(text, "\n")
		tags := Tags(paths)
		slices.Reverse(paths)
		again := Tags(paths)
		llama, hub := map[string]bool{}, map[string]bool{}
		byDefault := 0
		for i, tag := range tags {
			if !slices.Equal(tag.Warnings, again[i].Warnings) || tag.LlamaCPP != again[i].LlamaCPP {
				t.Errorf("%+v, the other way round %+v", tag, again[i])
			}
			if !slices.Contains(paths, tag.File) || llama[strings.ToLower(tag.LlamaCPP)] || hub[tag.Hub] {
				t.Errorf("%+v", tag)
			}
			if tag.LlamaCPP != "" {
				llama[strings.ToLower(tag.LlamaCPP)] = true
			}
			if tag.Hub != "" {
				hub[tag.Hub] = true
			}
			if tag.LlamaCPPDefault {
				byDefault++
			}
		}
		if byDefault > 1 {
			t.Errorf("%+v", tags)
		}
	})
}
