package naming_test

import (
	"fmt"
	"maps"
	"strings"

	"ggforge/gguf"
	"ggforge/publish/naming"
)

func Example() {
	n, err := naming.Parse("Mixtral-8x7B-Instruct-v0.1-Q4_K_M-00001-of-00002.gguf")
	fmt.Println(n.BaseName, n.SizeLabel, n.FineTune, n.Version, n.Encoding, n.Shard, n.Shards, err)
	_, err = naming.Parse("Qwen2.5-7B-Q8_0.gguf")
	fmt.Println(strings.ReplaceAll(err.Error(), "; ", ";\n"))

	m := gguf.Metadata{{Key: gguf.KeyName, Value: gguf.String("Qwen2.5")}}
	weights := map[string][]int64{"token_embd.weight": {512, 32000}}
	fmt.Println(naming.Of(m, maps.All(weights), "Q8_0"))
	// Output:
	// Mixtral 8x7B Instruct v0.1 Q4_K_M 1 2 <nil>
	// "Qwen2.5-7B-Q8_0.gguf": no version: want v1.0 or another number between size or fine-tune and encoding;
	// '.' in "Qwen2.5": want ASCII letters, digits and dashes outside of size, version and encoding
	// Qwen2-5-16M-v1.0-Q8_0.gguf
}
