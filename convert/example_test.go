package convert_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"ggforge/convert"
	"ggforge/quantize"
	"ggforge/writer"
)

// Convert a checkpoint, then quantize the result.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	f16, q4 := filepath.Join(dir, "model-f16.gguf"), filepath.Join(dir, "model-Q4_K_M.gguf")
	ctx := context.Background()

	conversion, err := convert.Prepare(context.Background(), "../test/testdata/gollama",
		convert.Options{Type: convert.F16})
	if err != nil {
		log.Fatal(err)
	}
	defer conversion.Close()
	if _, err := conversion.Write(ctx, f16, writer.Options{}); err != nil {
		log.Fatal(err)
	}

	recipe, _ := quantize.LookupRecipe("Q4_K_M")
	job, err := quantize.Prepare(context.Background(), f16,
		quantize.Options{PlanOptions: quantize.PlanOptions{Recipe: recipe}})
	if err != nil {
		log.Fatal(err)
	}
	defer job.Close()
	result, err := job.Write(ctx, q4, writer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d bytes, %.2f bits per weight\n", result.Bytes, job.BPW())
	// Output: 4207264 bytes, 4.97 bits per weight
}
