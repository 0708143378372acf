package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"ggforge/gguf"
)

// The shape of files with many tensors: single experts of 4 kB in F16.
const (
	manyColumns, manyRows, manyLayers = 256, 8, 32
)

var manyCounts = []int{1_000, 10_000, 100_000}

// manyReference is the largest number of tensors for the reference: its time grows with the square.
const manyReference = 10_000

// benchTensors measures the cost of a tensor apart from its size.
func benchTensors(ctx context.Context, w io.Writer, opt *options, dir workDir) error {
	n := strconv.Itoa(opt.threads)
	t := table{left: 1, head: []string{"job", "tensors", "wall s", "CPU s", "CPU us a tensor", "own MB"}}
	if opt.root != "" {
		t.head = append(t.head, "CPU x", "bytes")
	}
	differ := false
	for _, count := range manyCounts {
		const name = "many.gguf"
		if err := writeMany(dir.path(name), count); err != nil {
			return err
		}
		ours := &job{name: "ggquant Q8_0", ours: true, command: func(out string) []string {
			return []string{filepath.Join(opt.bin, "ggquant"), "--progress", "none", dir.path(name), out, "Q8_0", n}
		}}
		theirs := &job{name: "reference: llama-quantize Q8_0", inside: true, command: func(out string) []string {
			return []string{"llama-quantize", dir.inside(name), out, "Q8_0", n}
		}}
		for round := range opt.rounds {
			if err := ours.run(ctx, dir, round == 0); err != nil {
				return err
			}
			if opt.root != "" && count <= manyReference {
				if err := theirs.run(ctx, dir, round == 0); err != nil {
					return err
				}
			}
			progress("round %d/%d  %d tensors: %.2f s", round+1, opt.rounds, count, ours.runs[round].wall)
		}
		row := func(j *job, more ...string) {
			c := j.median()
			t.add(append([]string{j.name, strconv.Itoa(count), number(c.wall), number(c.cpu),
				number(1e6 * c.cpu / float64(count)), number(float64(c.own) / 1e6)}, more...)...)
		}
		switch {
		case opt.root == "":
			row(ours)
		case count > manyReference:
			row(ours, dash, dash)
		default:
			same := "same"
			if ours.sum != theirs.sum {
				same, differ = "DIFFER", true
			}
			row(ours, ratio(theirs.median().cpu, ours.median().cpu), same)
			row(theirs, dash, dash)
		}
		if err := os.Remove(dir.path(name)); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "## Many tensors\n\n"+
		"Files of tensors of %d x %d zeros in F16, experts each by itself, %s; medians of %d rounds. What a tensor "+
		"costs does not grow\n"+
		"with their number; with the reference it does, which is why it is not measured with the most.\n\n",
		manyColumns, manyRows, plural(opt.threads), opt.rounds)
	t.write(w)
	if differ {
		return fmt.Errorf("tensors: %w", errBytes)
	}
	return nil
}

// writeMany writes a file of that many tensors, whose data is a hole in the file.
func writeMany(path string, count int) error {
	m := gguf.Metadata{
		{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: "llama.block_count", Value: gguf.Uint32(manyLayers)},
		{Key: "llama.context_length", Value: gguf.Uint32(2048)},
		{Key: "llama.embedding_length", Value: gguf.Uint32(manyColumns)},
		{Key: "llama.feed_forward_length", Value: gguf.Uint32(manyRows)},
		{Key: "llama.attention.head_count", Value: gguf.Uint32(8)},
		{Key: "llama.attention.layer_norm_rms_epsilon", Value: gguf.Float32(1e-5)},
		{Key: "llama.rope.dimension_count", Value: gguf.Uint32(manyColumns / 8)},
	}
	tensors := make([]gguf.Tensor, count)
	for i := range tensors {
		tensors[i] = gguf.Tensor{Name: fmt.Sprintf("blk.%d.ffn_gate.%d.weight", i%manyLayers, i/manyLayers),
			NE: []int64{manyColumns, manyRows}, Type: gguf.TypeF16}
	}
	size := gguf.Layout(tensors, gguf.DefaultAlignment)
	header := gguf.AppendHeader(nil, m, tensors, gguf.DefaultAlignment)
	return errors.Join(os.WriteFile(path, header, 0o666), os.Truncate(path, int64(len(header))+size))
}
