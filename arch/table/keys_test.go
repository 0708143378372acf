package table

import (
	"errors"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
)

func TestKeys(t *testing.T) {
	k := (&Arch{Name: "llama"}).Keys(gguf.Metadata{
		{Key: "llama.block_count", Value: gguf.Uint32(7)},
		{Key: "llama.attention.head_count", Value: gguf.Uint64(4)},
	})
	if n, err := k.BlockCount(); n != 7 || err != nil {
		t.Errorf("layers: %d %v", n, err)
	}
	if n, err := k.HeadsKV(); n != 4 || err != nil {
		t.Errorf("key heads without a key: %d %v, want the query heads", n, err)
	}
	k.metadata.Set("llama.attention.head_count_kv", gguf.Int32s([]int32{1, 2}))
	if _, err := k.HeadsKV(); !errors.Is(err, fault.Unsupported) ||
		!strings.Contains(err.Error(), "llama.attention.head_count_kv") {
		t.Errorf("a number per layer: %v", err)
	}
	if _, err := (&Arch{Name: "llama"}).Keys(nil).Heads(); !errors.Is(err, fault.Broken) ||
		!strings.Contains(err.Error(), "llama.attention.head_count") {
		t.Errorf("no key: %v", err)
	}
}
