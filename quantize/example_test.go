package quantize_test

import (
	"context"
	"fmt"
	"log"

	"ggforge/quantize"
	"ggforge/writer"
)

func Example() {
	recipe, _ := quantize.LookupRecipe("IQ3_M")
	job, err := quantize.Prepare(context.Background(), "model-F16.gguf", quantize.Options{
		PlanOptions: quantize.PlanOptions{Recipe: recipe},
		Matrix:      "imatrix.gguf",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer job.Close()
	for _, c := range job.Compromises {
		log.Print(c)
	}
	result, err := job.Write(context.Background(), "model-IQ3_M.gguf", writer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Bytes, "bytes,", job.BPW(), "bits per weight")
}
