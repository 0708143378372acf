package quantize

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
)

func TestParseOverride(t *testing.T) {
	for _, c := range []struct {
		s, key string
		want   gguf.Value
	}{
		{"a=int:5", "a", gguf.Uint32(5)},
		{"a=int:-5", "a", gguf.Uint32(5)},
		{"a=int:4294967295", "a", gguf.Uint32(4294967295)},
		{"a=float:1e-3", "a", gguf.Float32(1e-3)},
		{"a=bool:false", "a", gguf.Bool(false)},
		{"a=str:", "a", gguf.String("")},
		{"a.b=str:c=d:e", "a.b", gguf.String("c=d:e")},
		{"a=str:" + strings.Repeat("x", 127), "a", gguf.String(strings.Repeat("x", 127))},
	} {
		if kv, err := ParseOverride(c.s); err != nil || kv.Key != c.key || kv.Value != c.want {
			t.Errorf("%s: got %+v, %v", c.s, kv, err)
		}
	}
	for _, s := range []string{
		"", "a", "a=int", "=int:1", "a=int:x", "a=int:", "a=int:4294967296", "a=int:-9223372036854775808",
		"a=float:x", "a=bool:1",
		"a=bool:TRUE", "a=uint:1", "a=str:" + strings.Repeat("x", 128), strings.Repeat("k", 128) + "=int:1",
	} {
		if kv, err := ParseOverride(s); !errors.Is(err, fault.Usage) {
			t.Errorf("%q: got %+v, %v", s, kv, err)
		}
	}
}

// TestOverriddenCounts checks which overrides change the types of a recipe, as those of llama-quantize 0.7.0 do.
func TestOverriddenCounts(t *testing.T) {
	dir := inputs(t)
	for _, c := range []struct {
		recipe, override, tensor string
		want                     gguf.Type
	}{
		{"Q2_K", "x=int:1", "blk.0.attn_v.weight", gguf.TypeQ4_K},
		{"Q2_K", "llama.attention.head_count_kv=int:8", "blk.0.attn_v.weight", gguf.TypeQ3_K},
		{"Q4_K_M", "x=int:1", "blk.0.ffn_down.weight", gguf.TypeQ4_K},
		{"Q4_K_M", "llama.block_count=int:30", "blk.0.ffn_down.weight", gguf.TypeQ6_K},
		{"Q4_K_M", "llama.block_count=float:30", "blk.0.ffn_down.weight", gguf.TypeQ4_K},
		{"Q4_K_M", "llama.block_count=str:30", "blk.0.ffn_down.weight", gguf.TypeQ4_K},
	} {
		opt := options(t, c.recipe)
		kv, err := ParseOverride(c.override)
		if err != nil {
			t.Fatal(err)
		}
		opt.Override = []gguf.KV{kv}
		job, err := Prepare(t.Context(), filepath.Join(dir, "dense.gguf"), opt)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range job.Decisions {
			if d.Name == c.tensor && d.To != c.want {
				t.Errorf("%s %s: %s is %v, want %v", c.recipe, c.override, d.Name, d.To, c.want)
			}
		}
		if last := job.metadata[len(job.metadata)-1]; last != kv {
			t.Errorf("%s: last pair is %+v", c.override, last)
		}
		job.Close()
	}
}

func TestReadTensorRules(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules")
	write := func(s string) {
		if err := os.WriteFile(path, []byte(s), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("attn_q=q8_0\tattn_k=Q5_0\n\n  ffn_up=q4_0\r\n")
	rules, err := ReadTensorRules(path)
	if err != nil || len(rules) != 3 || rules[2].Pattern != "ffn_up" || rules[1].Type != gguf.TypeQ5_0 {
		t.Errorf("%+v, %v", rules, err)
	}
	write("")
	if rules, err := ReadTensorRules(path); err != nil || len(rules) != 0 {
		t.Errorf("%+v, %v", rules, err)
	}
	for _, s := range []string{"# comment", "attn_q=q8_0,attn_k=q5_0"} {
		write(s)
		if _, err := ReadTensorRules(path); !errors.Is(err, fault.Usage) {
			t.Errorf("%q: %v", s, err)
		}
	}
}
