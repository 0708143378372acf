// Importer converts a Hugging Face checkpoint to F16, quantizes the result, and
// quantizes the checkpoint without the intermediate file.
//
//	importer CHECKPOINT OUTDIR
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"ggforge/convert"
	"ggforge/fault"
	"ggforge/quantize"
	"ggforge/writer"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "importer: want CHECKPOINT OUTDIR")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "importer:", err)
		if errors.Is(err, fault.Usage) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, checkpoint, dir string) error {
	f16 := filepath.Join(dir, "gollama-f16.gguf")
	conversion, err := convert.Prepare(ctx, checkpoint, convert.Options{Type: convert.F16})
	if err != nil {
		return err
	}
	defer conversion.Close()
	if _, err := conversion.Write(ctx, f16, writer.Options{}); err != nil {
		return err
	}

	// An existing file is not replaced.
	if _, err := conversion.Write(ctx, f16, writer.Options{}); !errors.Is(err, fs.ErrExist) ||
		!errors.Is(err, fault.Usage) {
		return fmt.Errorf("writing a file that exists: %v", err)
	}

	recipe, ok := quantize.LookupRecipe("Q4_K_M")
	if !ok {
		return errors.New("no recipe Q4_K_M")
	}
	job, err := quantize.Prepare(ctx, f16, quantize.Options{PlanOptions: quantize.PlanOptions{Recipe: recipe}})
	if err != nil {
		return err
	}
	defer job.Close()
	result, err := job.Write(ctx, filepath.Join(dir, "gollama-Q4_K_M.gguf"), writer.Options{})
	if err != nil {
		return err
	}
	fmt.Printf("%d bytes, %.2f bits per weight\n", result.Bytes, job.BPW())

	// Straight from the checkpoint, which is read once for both outputs.
	model, warnings, err := convert.Open(ctx, checkpoint, convert.Options{Type: convert.F16})
	if err != nil {
		return err
	}
	defer model.Close()
	for _, w := range warnings {
		fmt.Fprintln(os.Stderr, "importer:", w)
	}
	q8, _ := quantize.LookupRecipe("Q8_0")
	batch, err := quantize.PrepareBatch(ctx, model, []*quantize.Recipe{recipe, q8}, quantize.Options{})
	if err != nil {
		return err
	}
	defer batch.Close()
	straight := filepath.Join(dir, "straight")
	if err := os.Mkdir(straight, 0o777); err != nil {
		return err
	}
	_, err = batch.Write(ctx, []string{filepath.Join(straight, "gollama-Q4_K_M.gguf"),
		filepath.Join(straight, "gollama-Q8_0.gguf")}, writer.Options{})
	return err
}
