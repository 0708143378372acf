package card_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"ggforge/gguf"
	"ggforge/publish/card"
)

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	m := gguf.Metadata{
		{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: gguf.KeyName, Value: gguf.String("Gollama <b>")},
		{Key: "general.license", Value: gguf.String("bsd-3-clause")},
	}
	if err := os.WriteFile(filepath.Join(dir, "gollama.gguf"), gguf.AppendHeader(nil, m, nil, 32), 0o666); err != nil {
		log.Fatal(err)
	}
	c, err := card.Of(context.Background(), dir, card.Options{BaseModel: "acme/Gollama"})
	if err != nil {
		log.Fatal(err)
	}
	text, err := c.Text()
	if err != nil {
		log.Fatal(err)
	}
	head, _, _ := strings.Cut(text, "<!--")
	fmt.Println(strings.TrimSpace(head))
	// Output:
	// ---
	// # ggtool card
	// base_model: acme/Gollama
	// base_model_relation: quantized
	// library_name: gguf
	// license: bsd-3-clause
	// pipeline_tag: text-generation
	// tags:
	//   - gguf
	//   - quantized
	// # /ggtool card
	// ---
	// # Gollama &lt;b&gt; GGUF
}
