package hftest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"ggforge/gguf"
)

// Golden collects the output files of a spec's variants, as text:
//
//	= plain f16 SIZE SHA256              the file
//	llama.block_count u32 2              each metadata pair in order; long values as *HASH
//	blk.0.attn_k.weight F16 64x32 *HASH  each tensor in order
//	= edge q8_0 SIZE SHA256              the next variant: pairs equal to the first variant's are left out
//	- llama.vocab_size                   a key that only the first variant has
//
// A hash is the beginning of the SHA-256 of the bytes as they are in the file.
type Golden struct {
	text  strings.Builder
	first map[string]string // the pairs of the first variant
	order []string
}

// hashed returns the beginning of the SHA-256 of b.
func hashed(b []byte) string {
	sum := sha256.Sum256(b)
	return "*" + hex.EncodeToString(sum[:5])
}

// longValue is the length up to which values are shown in full.
const longValue = 60

// Add appends the output file of a variant.
func (g *Golden) Add(v Variant, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f, err := gguf.Parse(path, data)
	if err != nil {
		return err
	}
	fmt.Fprintf(&g.text, "= %s %s %d %x\n", v.Name, v.Out, len(data), sha256.Sum256(data))
	pairs := map[string]string{}
	for _, kv := range f.Metadata {
		text := kv.Value.Type().String() + " " + kv.Value.String()
		if len(text) > longValue || strings.Contains(text, "\n") {
			text = fmt.Sprintf("%v %d bytes %s", kv.Value.Type(), len(text), hashed([]byte(text)))
		}
		pairs[kv.Key] = text
		if g.first[kv.Key] != text {
			fmt.Fprintf(&g.text, "%s %s\n", kv.Key, text)
		}
	}
	if g.first == nil {
		g.first = pairs
		for _, kv := range f.Metadata {
			g.order = append(g.order, kv.Key)
		}
	}
	for _, key := range g.order {
		if _, ok := pairs[key]; !ok {
			fmt.Fprintf(&g.text, "- %s\n", key)
		}
	}
	for i := range f.Tensors {
		t := &f.Tensors[i]
		fmt.Fprintf(&g.text, "%s %v %s %s\n", t.Name, t.Type, strings.ReplaceAll(gguf.Shape(t.NE), " ", ""),
			hashed(f.Data(t)))
	}
	return nil
}

func (g *Golden) String() string { return g.text.String() }

// Architectures returns general.architecture in a golden, by variant.
func Architectures(golden string) map[string]string {
	names := map[string]string{}
	variant, first := "", ""
	for line := range strings.Lines(golden) {
		switch f := strings.Fields(line); {
		case len(f) > 1 && f[0] == "=":
			variant = f[1]
			names[variant] = first
		case len(f) == 3 && f[0] == gguf.KeyArchitecture:
			name := strings.Trim(f[2], `"`)
			if first == "" {
				first = name
			}
			names[variant] = name
		}
	}
	return names
}
