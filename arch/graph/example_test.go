package graph_test

import (
	"fmt"

	"ggforge/arch/graph"
	"ggforge/gguf"
)

// A decoder with a sliding window of 512 tokens in every layer but the last of four, without RoPE in the others.
func Example() {
	norm := func(name string) graph.Norm { return graph.Norm{Name: name} }
	local := graph.Attention{Steps: []graph.HeadStep{graph.RoPE{}}, Window: graph.Window{Tokens: "n_swa"}}
	m := &graph.Model{
		Norm: graph.RMS,
		Layer: []graph.Step{
			graph.Residual{Pre: norm("attn_norm"), Part: graph.Choose{
				{In: graph.Sliding{N: 4}, Then: local},
				{In: graph.Every{}, Then: graph.Attention{}},
			}},
			graph.Residual{Pre: norm("ffn_norm"), Part: graph.FFN{Act: graph.SiLU}},
		},
		Final: []graph.Step{graph.Normalize{Norm: norm("output_norm")}},
		Head:  graph.LM{},
	}
	file := graph.NewFile(gguf.Metadata{
		{Key: gguf.KeyArchitecture, Value: gguf.String("mine")},
		{Key: "mine.block_count", Value: gguf.Uint32(4)},
		{Key: "mine.embedding_length", Value: gguf.Uint32(64)},
		{Key: "mine.feed_forward_length", Value: gguf.Uint32(128)},
		{Key: "mine.attention.head_count", Value: gguf.Uint32(4)},
		{Key: "mine.attention.head_count_kv", Value: gguf.Uint32(1)},
		{Key: "mine.attention.sliding_window", Value: gguf.Uint32(512)},
	}, nil)
	d, err := graph.Declare(m, file)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"attn_q", "attn_k", "ffn_down"} {
		t, _ := d.Tensor("blk.0." + name + ".weight")
		fmt.Println(t.Name, gguf.Shape(t.NE))
	}
	for _, c := range d.Caches() {
		fmt.Println(c.Layer, c.Window, c.Keys, c.Vals)
	}
	// Output:
	// blk.0.attn_q.weight 64 x 64
	// blk.0.attn_k.weight 64 x 16
	// blk.0.ffn_down.weight 128 x 64
	// 0 512 16 16
	// 1 512 16 16
	// 2 512 16 16
	// 3 0 16 16
}
