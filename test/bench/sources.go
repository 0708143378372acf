package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"time"

	"ggforge/convert"
	"ggforge/gguf"
	"ggforge/internal/io/mmap"
	"ggforge/quants"
	"ggforge/rows"
	"ggforge/test/hftest"
)

// precisions are the specs of package hftest that are measured, each of checkpoints in
// another precision.
var precisions = []string{"mistral", "fp8-block", "fp8-tensor", "ct-fp8", "ct-int8", "modelopt-fp8", "gptq", "awq",
	"ct-pack", "bnb-nf4", "bnb-int8", "hqq", "bitnet-packed", "nvfp4", "ct-nvfp4"}

// measured is the tensor whose rows are read.
const measured = "blk.0.ffn_down.weight"

// pieceElements is how many elements the writer takes at a time.
const pieceElements = 32 << 10

// benchSources measures the cost of reading a weight, and of encoding it as F16.
func benchSources(ctx context.Context, w io.Writer, opt *options, dir workDir) error {
	fmt.Fprintf(w, "## Precisions of checkpoints\n\n"+
		"The rows of one matrix of 2048 x 5632, from the page cache, in pieces of %d elements as the writer takes them, on one\n"+
		"thread, by the thread's CPU time; medians of %d rounds of about %v. read: the rows as float32, in MB/s of those (of\n"+
		"NVFP4: as blocks, which is what goes into the file). F16: the rows read, checked, decoded and encoded as "+
		"F16, in MB/s of\n"+
		"F16. BF16 is a checkpoint that is not quantized.\n\n", pieceElements, opt.rounds, opt.budget)
	t := table{left: 1, head: []string{"precision", "bits stored", "Mw/s read", "MB/s read", "MB/s F16"}}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, name := range precisions {
		progress("precision %s", name)
		row, err := benchSource(ctx, name, opt, dir)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		t.add(row...)
	}
	t.write(w)
	return nil
}

func benchSource(ctx context.Context, name string, opt *options, dir workDir) (row []string, err error) {
	spec := hftest.Lookup(name)
	v := hftest.Variant{Seed: 1, DType: "BF16",
		Set: `{"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 1, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": null}`}
	path, err := spec.Write(dir.path("precision"), v)
	if err != nil {
		return nil, err
	}
	stored, err := spec.Bytes(v)
	if err != nil {
		return nil, err
	}
	job, err := convert.Prepare(ctx, path, convert.Options{Type: convert.F16, Pre: spec.PreTokenizer()})
	if err != nil {
		return nil, err
	}
	defer job.Close()
	total := int64(0)
	for _, p := range job.Plan {
		total += gguf.Rows(p.Source.NE()) * gguf.RowLen(p.Source.NE())
	}
	i := slices.IndexFunc(job.Plan, func(p convert.Tensor) bool { return p.Name == measured })
	if i < 0 {
		return nil, fmt.Errorf("no tensor %s", measured)
	}
	src := job.Plan[i].Source
	var read, encoded float64
	err = mmap.Guard(path, func() error {
		if read, err = speedOf(ctx, src, opt, false); err != nil || src.Type().BlockLen() > 1 {
			return err
		}
		encoded, err = speedOf(ctx, src, opt, true)
		return err
	})
	if err != nil {
		return nil, err
	}
	bits := float64(src.Type().BlockBytes()*8) / float64(src.Type().BlockLen())
	f16 := dash
	if encoded > 0 {
		f16 = number(2 * encoded / 1e6)
		bits = 32
	}
	label := name
	if name == precisions[0] {
		label = "BF16"
	}
	return []string{label, strconv.FormatFloat(8*float64(stored)/float64(total), 'f', 1, 64), number(read / 1e6),
		number(read * bits / 8 / 1e6), f16}, nil
}

// speedOf returns how many elements of src are read in a second of one thread; with
// encode they are encoded as F16, too.
func speedOf(ctx context.Context, src rows.Source, opt *options, encode bool) (float64, error) {
	ne := src.NE()
	step := max(1, pieceElements/ne[0])
	from, to := quants.Lookup(src.Type()), quants.Lookup(gguf.TypeF16)
	var buf []byte
	values, out := make([]float32, step*ne[0]), make([]byte, 2*step*ne[0])
	plain := src.Type().BlockLen() == 1
	var speeds []float64
	for range opt.rounds {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		n, begin, cpu := int64(0), time.Now(), threadSeconds()
		for time.Since(begin) < opt.budget || n == 0 {
			for a := int64(0); a < gguf.Rows(ne); a += step {
				b := min(a+step, gguf.Rows(ne))
				raw, err := src.Raw(&buf, a, b)
				if err != nil {
					return 0, err
				}
				part := values[:(b-a)*ne[0]]
				if plain {
					if err := from.Dequantize(part, raw); err != nil {
						return 0, err
					}
				}
				if encode {
					if err := from.Validate(raw); err != nil {
						return 0, err
					}
					if err := to.Quantize(out[:2*len(part)], part, int(ne[0]), nil); err != nil {
						return 0, err
					}
				}
				n += (b - a) * ne[0]
			}
		}
		speeds = append(speeds, float64(n)/(threadSeconds()-cpu))
	}
	return median(speeds), nil
}
