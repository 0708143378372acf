package quantize_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"ggforge/gguf"
	"ggforge/quantize"
	"ggforge/rows"
	"ggforge/writer"
)

// Quantize a file, here one with two tensors, of which one is too short for
// blocks of 256.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	in := filepath.Join(dir, "in.gguf")
	matrix := func(columns int64) rows.Source {
		s, err := rows.Reshape(rows.Float32s(make([]float32, columns*2)), []int64{columns, 2})
		if err != nil {
			log.Fatal(err)
		}
		return s
	}
	if _, err := writer.Write(ctx, &writer.File{
		Path: in,
		Metadata: gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
			{Key: "llama.block_count", Value: gguf.Uint32(1)}},
		Tensors: []writer.Tensor{
			{Name: "blk.0.attn_k.weight", Type: gguf.TypeF32, Source: matrix(256)},
			{Name: "blk.0.attn_q.weight", Type: gguf.TypeF32, Source: matrix(32)},
		},
	}, writer.Options{}); err != nil {
		log.Fatal(err)
	}

	recipe, _ := quantize.LookupRecipe("Q4_K_M")
	job, err := quantize.Prepare(ctx, in, quantize.Options{PlanOptions: quantize.PlanOptions{Recipe: recipe}})
	if err != nil {
		log.Fatal(err)
	}
	defer job.Close()
	for _, c := range job.Compromises {
		fmt.Println("compromise:", c.Names)
	}
	result, err := job.Write(ctx, filepath.Join(dir, "out.gguf"), writer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range job.Decisions {
		fmt.Println(d.Name, d.From, "->", d.To)
	}
	fmt.Println(result.Bytes, "bytes")
	// Output:
	// compromise: [blk.0.attn_q.weight (Q5_0 instead of Q4_K)]
	// blk.0.attn_k.weight F32 -> Q4_K
	// blk.0.attn_q.weight F32 -> Q5_0
	// 672 bytes
}
