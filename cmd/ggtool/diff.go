package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/mmap"
	"ggforge/internal/io/stamp"
	"ggforge/model"
	"ggforge/publish/compare"
)

func diffCommand() *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "list the differences between two models; exit code 6 if there are any",
		ArgsUsage: "A B",
		Description: "A and B are GGUF files, or the first shard of a model. For tensors whose\n" +
			"types or data differ it prints the element-wise difference of the decoded weights.\n\n" + tool.ExitHelp,
		Metadata: tool.About{Elsewhere: []string{"compare", "cmp"}, Examples: []string{"ggtool diff a.gguf b.gguf"},
			Result: tool.Prints[difference]()}.Metadata(),
		Flags:  tool.Flags(aloneFlag(), tool.JSONFlag()),
		Action: diff,
	}
}

// diffRequest has the flags and arguments.
type diffRequest struct {
	A, B        string
	Alone, JSON bool
}

// difference is the JSON output.
type difference struct {
	A     string   `json:"a"`
	B     string   `json:"b"`
	Same  bool     `json:"same"`
	Lines []string `json:"differences"`
	// tensors whose values could be compared
	Tensors []decoded `json:"tensors"`
}

// decoded is the element-wise difference of a tensor after decoding.
type decoded struct {
	Tensor string `json:"tensor"`
	A      string `json:"a_type"`
	B      string `json:"b_type"`
	Max    real   `json:"max"`
	Column int64  `json:"max_column"`
	Row    int64  `json:"max_row"`
	RMS    real   `json:"rms"`
}

// elementWise returns the element-wise differences of tensors of these names. Tensors that cannot be decoded, or have
// values that are not finite, are left out.
func elementWise(ctx context.Context, r *diffRequest, a, b *gguf.Set, names []string) (list []decoded, err error) {
	x, err := model.Of(r.A, a)
	if err != nil {
		return nil, unlessUnsupported(err)
	}
	y, err := model.Of(r.B, b)
	if err != nil {
		return nil, unlessUnsupported(err)
	}
	in := func(m *model.Model) map[string]model.Tensor {
		by := make(map[string]model.Tensor, len(m.Tensors))
		for _, t := range m.Tensors {
			by[t.Name] = t
		}
		return by
	}
	inA, inB := in(x), in(y)
	for _, name := range names {
		x.Tensors, y.Tensors = []model.Tensor{inA[name]}, []model.Tensor{inB[name]}
		found, err := compare.Compare(ctx, x, y, compare.Options{Workers: runtime.GOMAXPROCS(0)})
		switch {
		case errors.Is(err, fault.Broken):
			continue
		case err != nil:
			return nil, err
		}
		for _, t := range found.Tensors {
			list = append(list, decoded{t.Name, t.From.String(), t.To.String(), real(t.Max), t.Column, t.Row,
				real(t.RMSE())})
		}
	}
	return list, nil
}

// unlessUnsupported returns err, nil for an unknown type, which cannot be decoded.
func unlessUnsupported(err error) error {
	if errors.Is(err, fault.Unsupported) {
		return nil
	}
	return err
}

func parseDiff(cmd *cli.Command) (r diffRequest, err error) {
	args, err := tool.Args(cmd, 2, 2)
	if err != nil {
		return r, err
	}
	if args, err = runs.InputPaths(cmd, args); err != nil {
		return r, err
	}
	return diffRequest{args[0], args[1], cmd.Bool("alone"), cmd.Bool("json")}, nil
}

func diff(ctx context.Context, cmd *cli.Command) error {
	r, err := parseDiff(cmd)
	if err != nil {
		return err
	}
	a, err := open(r.A, r.Alone)
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := open(r.B, r.Alone)
	if err != nil {
		return err
	}
	defer b.Close()
	var found *gguf.Difference
	numbers := []decoded{}
	if err := mmap.Guard(r.A+" or "+r.B, func() (err error) {
		if found, err = gguf.Differ(ctx, a, b); err != nil || len(found.Numbers) == 0 {
			return err
		}
		list, err := elementWise(ctx, &r, a, b, found.Numbers)
		numbers = append(numbers, list...)
		return err
	}); err != nil {
		return err
	}
	lines := found.Lines
	if err := stamp.All(a.Unchanged, b.Unchanged)(); err != nil {
		return err
	}
	w := tool.Output(ctx, cmd)
	if r.JSON {
		if err := tool.WriteJSON(w, difference{r.A, r.B, len(lines) == 0, append([]string{}, lines...),
			numbers}); err != nil || len(lines) == 0 {
			return err
		}
		return tool.ErrDiffers
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	for _, t := range numbers {
		if _, err := fmt.Fprintf(w,
			"numbers of tensor %q: at most %.4g apart, in column %d of row %d, %.4g in the root of the mean square\n",
			t.Tensor, t.Max, t.Column, t.Row, t.RMS); err != nil {
			return err
		}
	}
	if len(lines) > 0 {
		return tool.ErrDiffers
	}
	return nil
}
