package main

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ggforge/arch"
	"ggforge/checkpoint/safetensors"
	"ggforge/test/hftest"
)

// written converts a checkpoint of a spec and returns the file and the command's messages. rename maps tensor names;
// "" removes a tensor.
func written(t *testing.T, s hftest.Spec, rename func(string) string) ([]byte, string) {
	t.Helper()
	dir, err := s.Write(t.TempDir(), s.All()[0])
	if err != nil {
		t.Fatal(err)
	}
	if rename != nil {
		renameTensors(t, filepath.Join(dir, "model.safetensors"), rename)
	}
	code, out, err := convertSpec(&s, dir)
	if code != 0 {
		t.Fatalf("%s: %v", s.Class(), err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "out.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	return data, out
}

// renameTensors gives the tensors of a file other names.
func renameTensors(t *testing.T, path string, rename func(string) string) {
	t.Helper()
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var list []safetensors.Tensor
	data := map[string][]byte{}
	for _, x := range f.Tensors() {
		if name := rename(x.Name); name != "" {
			list = append(list, safetensors.Tensor{Name: name, DType: x.DType, Shape: x.Shape})
			data[name] = slices.Clone(x.Data())
		}
	}
	if err := f.Close(); err != nil { // Windows does not replace a mapped file
		t.Fatal(err)
	}
	out, _, err := safetensors.Layout(list, map[string]string{"format": "pt"})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list, func(a, b safetensors.Tensor) int { return cmp.Compare(a.Offset(), b.Offset()) })
	for _, x := range list {
		out = append(out, data[x.Name]...)
	}
	if err := os.WriteFile(path, out, 0o666); err != nil {
		t.Fatal(err)
	}
}

// ofClass returns the spec with another class in its config.
func ofClass(s hftest.Spec, class string) hftest.Spec {
	s.Config = strings.Replace(s.Config, `"`+s.Class()+`"`, `"`+class+`"`, 1)
	return s
}

// TestClassNames converts checkpoints under alternative class names of the transformers library: only the name in the
// file may differ.
func TestClassNames(t *testing.T) {
	for _, c := range []struct {
		spec, class string
		head        string // tensors of the class that the spec lacks
	}{
		{"mpt", "MptForCausalLM", ""},
		{"bert", "BertForPreTraining",
			"cls.predictions.bias | vocab_size\ncls.seq_relationship.weight | 2, hidden_size\n"},
		{"roberta", "RobertaForMaskedLM",
			"lm_head.dense.weight | hidden_size, hidden_size\nlm_head.bias | vocab_size\n"},
		{"xlm-roberta", "XLMRobertaForMaskedLM",
			"lm_head.layer_norm.weight | hidden_size\nlm_head.bias | vocab_size\n"},
		{"eurobert", "EuroBertForMaskedLM", "lm_head.weight | vocab_size, hidden_size\n"},
		{"t5-encoder", "MT5EncoderModel", ""},
		{"t5-encoder", "UMT5EncoderModel", ""},
	} {
		t.Run(c.class, func(t *testing.T) {
			known := *hftest.Lookup(c.spec)
			other := ofClass(known, c.class)
			other.Tensors += "\n" + c.head
			want, _ := written(t, known, nil)
			got, _ := written(t, other, nil)
			if !bytes.Equal(got, want) {
				t.Errorf("%d bytes differ from the %d of %s", len(got), len(want), known.Class())
			}
		})
	}
}

// furtherLayers matches the keys with the number of MTP (NextN) layers.
var furtherLayers = regexp.MustCompile(`("mtp_num_hidden_layers"|"num_nextn_predict_layers"): \d+`)

// TestBodies converts checkpoints of classes without an output head: the file is that of the class with a head,
// without this tensor.
func TestBodies(t *testing.T) {
	tested := map[string]bool{}
	for _, s := range hftest.Specs() {
		a, err := arch.Lookup(s.Class())
		if err != nil || strings.Contains(s.Config, "text_config") || strings.Contains(s.Config, "language_config") {
			continue
		}
		for _, class := range a.Body.Classes {
			if tested[class] || !strings.Contains(s.Tensors, "\t"+a.Body.Prefix) {
				continue
			}
			tested[class] = true
			t.Run(class, func(t *testing.T) {
				s := *s
				s.Config = furtherLayers.ReplaceAllString(s.Config, "$1: 0") // the body has no MTP layers
				body := func(name string) bool { return strings.HasPrefix(name, a.Body.Prefix) }
				want, _ := written(t, s, func(name string) string {
					if !body(name) {
						return ""
					}
					return name
				})
				got, out := written(t, ofClass(s, class), func(name string) string {
					if !body(name) {
						return ""
					}
					return strings.TrimPrefix(name, a.Body.Prefix)
				})
				if !bytes.Equal(got, want) {
					t.Errorf("%d bytes differ from the %d of %s", len(got), len(want), s.Class())
				}
				if tied := strings.Contains(s.Config, `"tie_word_embeddings": true`); tied == strings.Contains(out,
					"has no output head") && strings.Contains(s.Config, "tie_word_embeddings") {
					t.Errorf("tied %v, but\n%s", tied, out)
				}
			})
		}
	}
	for _, a := range arch.All() {
		for _, class := range a.Body.Classes {
			if !tested[class] {
				t.Errorf("%s: no spec", class)
			}
		}
	}
}
