package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/writer"
)

func imatrixCommand() *cli.Command {
	return &cli.Command{
		Name:  "imatrix",
		Usage: "show, check, merge and change importance matrices",
		Description: "Matrices are files of either format (.gguf, or .dat) of llama-imatrix, or ggeval\nimatrix.\n\n" +
			tool.ExitHelp,
		Commands: []*cli.Command{imatrixShowCommand(), imatrixCheckCommand(), imatrixMergeCommand(),
			imatrixConvertCommand(), imatrixRemapCommand(), imatrixFillCommand(), imatrixStripCommand()},
		Action: tool.NeedsVerb,
	}
}

// chunkFlag returns --ctx-size: tokens of a chunk, for files that do not have that number.
func chunkFlag() tool.Flag {
	return tool.Shared("ctx-size", "chunks of legacy files have `N` tokens", "chunk-size")
}

func formatFlag() tool.Flag {
	return tool.Flag{Name: "format", Value: tool.Text, Default: imatrix.FormatGGUF.String(),
		Choices: tool.Names("gguf", "dat"), Category: tool.CategoryOutput, Effect: tool.SetsBytes,
		Usage: "write `FORMAT` gguf or dat, the legacy one"}
}

func modelFlag() tool.Flag {
	return tool.Flag{Name: "model", Value: tool.File, Effect: tool.ReadsFile, Required: true,
		Usage: "the GGUF `FILE` whose tensors the matrix is for"}
}

// matrixRequest has the flags and arguments of a verb.
type matrixRequest struct {
	In     []string
	Out    string // "" for a verb that writes nothing
	Model  string
	Fill   imatrix.Fill
	Format imatrix.Format
	Chunk  int
	JSON   bool
	Write  writer.Options
}

// parseMatrix returns the parser of a verb with lo to hi inputs, followed by an output if out is set.
func parseMatrix(lo, hi int, out bool) func(cmd *cli.Command) (matrixRequest, error) {
	return func(cmd *cli.Command) (r matrixRequest, err error) {
		var in []string
		var to string
		if out {
			in, to, err = tool.ArgsOut(cmd, lo, hi)
		} else {
			in, err = tool.Args(cmd, lo, hi)
		}
		if err != nil {
			return r, err
		}
		r = matrixRequest{In: in, Out: to, Fill: imatrix.Fill(cmd.String("how")), JSON: cmd.Bool("json"),
			Write: writer.Options{Force: cmd.Bool("force")}}
		if out {
			if r.Format, err = imatrix.ParseFormat(cmd.String("format")); err != nil {
				return r, err
			}
		}
		if cmd.String("how") != "" && !slices.Contains(imatrix.Fills, r.Fill) {
			return r, fault.Errorf(fault.Usage, "--how %q: want one of %v", r.Fill, imatrix.Fills)
		}
		if r.Chunk, err = tool.CountValue(cmd, "ctx-size"); err != nil {
			return r, err
		}
		if r.Chunk == 0 {
			return r, fault.Errorf(fault.Usage, "chunks of 0 tokens: want at least 1")
		}
		if cmd.IsSet("model") {
			if r.Model, err = tool.FileValue(cmd, "model"); err == nil {
				r.Model, err = runs.InputPath(cmd, r.Model)
			}
		}
		return r, err
	}
}

// load merges the inputs; most verbs have only one.
func (r *matrixRequest) load(cmd *cli.Command) (*imatrix.Sums, error) {
	sums := imatrix.NewSums(r.Chunk)
	for _, path := range r.In {
		m, err := imatrix.Open(path)
		if err != nil {
			return nil, err
		}
		warnings, err := sums.Merge(m)
		tool.Warn(cmd, warnings...)
		if err == nil {
			err = m.Unchanged()
		}
		if err = errors.Join(err, m.Close()); err != nil {
			return nil, err
		}
	}
	return sums, nil
}

// matrixWritten is the JSON output of the verbs that write a matrix.
type matrixWritten struct {
	Output    string         `json:"output"`
	Format    string         `json:"format"`
	Bytes     int64          `json:"bytes"`
	Tensors   int            `json:"tensors"`
	Chunks    int            `json:"chunk_count"`
	ChunkSize int            `json:"chunk_size"`
	Added     []string       `json:"added,omitempty"`   // remap: tensors
	Dropped   []string       `json:"dropped,omitempty"` // remap: tensors
	Filled    map[string]int `json:"filled,omitempty"`  // fill: matrices by tensor
}

// text prints the result.
func (m *matrixWritten) text(w io.Writer) error {
	for _, name := range m.Added {
		fmt.Fprintf(w, "+ %s\n", name)
	}
	for _, name := range m.Dropped {
		fmt.Fprintf(w, "- %s\n", name)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Filled)) {
		fmt.Fprintf(w, "%s: %d matrices\n", name, m.Filled[name])
	}
	_, err := fmt.Fprintf(w, "%s: %s, %d tensors, %d chunks of %d tokens\n", m.Output, tool.Bytes(m.Bytes), m.Tensors,
		m.Chunks, m.ChunkSize)
	return err
}

// save writes the output, and reports its size and the changes.
func (r *matrixRequest) save(ctx context.Context, cmd *cli.Command, sums *imatrix.Sums, changed matrixWritten) error {
	file, err := sums.Layout(r.Format)
	if err != nil {
		return fmt.Errorf("%s: %w", r.Out, err)
	}
	opt := r.Write
	opt.Inputs = r.In
	readBack := func(path string) error {
		m, err := imatrix.Open(path)
		if err != nil {
			return err
		}
		return m.Close()
	}
	if err := writer.WriteFrom(ctx, r.Out, file.Size, file, readBack, opt); err != nil {
		return err
	}
	m := &changed
	m.Output, m.Format, m.Bytes, m.Tensors, m.Chunks, m.ChunkSize = r.Out, r.Format.String(), file.Size, sums.Len(),
		sums.Chunks(), sums.ChunkSize()
	if r.JSON {
		return tool.WriteJSON(tool.Output(ctx, cmd), m)
	}
	return m.text(tool.InfoWriter(cmd))
}

// matrixChange changes the sum of the matrices, and reports the changes in did.
type matrixChange func(r *matrixRequest, s *imatrix.Sums, did *matrixWritten) error

// changes returns the action of a verb that reads, changes and writes.
func changes(parse func(*cli.Command) (matrixRequest, error), change matrixChange) cli.ActionFunc {
	return func(ctx context.Context, cmd *cli.Command) error {
		r, err := parse(cmd)
		if err != nil {
			return err
		}
		if err := writer.Writable(r.Out, writer.Options{Force: r.Write.Force, Inputs: r.In}); err != nil {
			return err
		}
		sums, err := r.load(cmd)
		if err != nil {
			return err
		}
		var did matrixWritten
		if err := change(&r, sums, &did); err != nil {
			return err
		}
		return r.save(ctx, cmd, sums, did)
	}
}

// maxMerged is the largest number of matrices to merge.
const maxMerged = 10000

var parseMerged, parseChanged = parseMatrix(1, maxMerged, true), parseMatrix(1, 1, true)

// changeVerb returns a verb that reads and adds matrices, changes the sum and writes it.
func changeVerb(name, usage, args, example, about string, parse func(*cli.Command) (matrixRequest, error),
	change matrixChange, flags ...tool.Flag) *cli.Command {
	if about != "" {
		about += "\n\n"
	}
	return &cli.Command{
		Name: name, Usage: usage, ArgsUsage: args, Description: about + tool.ExitHelp,
		Metadata: tool.About{Examples: []string{"ggtool imatrix " + name + " " + example},
			Result: tool.Prints[matrixWritten]()}.Metadata(),
		Flags: tool.Flags(append(flags, tool.OutFlag(), formatFlag(), chunkFlag(), tool.ForceFlag(),
			tool.JSONFlag())...),
		Action: changes(parse, change),
	}
}

func imatrixMergeCommand() *cli.Command {
	return changeVerb("merge", "add matrices of several texts", "FILE... OUT", "code.gguf prose.dat both.gguf",
		"Sums and counts are added, in any mix of formats, as llama-imatrix --in-file does.", parseMerged, unchanged)
}

func imatrixConvertCommand() *cli.Command {
	return changeVerb("convert", "write a matrix in another format", "FILE OUT",
		"--format dat imatrix.gguf imatrix.dat",
		"The legacy format has means only: a matrix converted from it has chunks of\n--ctx-size tokens.",
		parseChanged, unchanged)
}

func unchanged(*matrixRequest, *imatrix.Sums, *matrixWritten) error { return nil }

func imatrixStripCommand() *cli.Command {
	return changeVerb("strip", "leave out the folders of the texts' names", "FILE OUT", "imatrix.gguf public.gguf", "",
		parseChanged, func(_ *matrixRequest, s *imatrix.Sums, _ *matrixWritten) error {
			s.Strip()
			return nil
		})
}

func imatrixRemapCommand() *cli.Command {
	return changeVerb("remap", "make a matrix for a model with fused tensors from one with split tensors, or back",
		"FILE OUT",
		"--model fused.gguf imatrix.gguf fused-imatrix.gguf",
		"Tensors that read the same input have the same importance: attn_qkv is that of\n"+
			"attn_q, attn_k and attn_v, ffn_gate_up_exps that of ffn_gate_exps and ffn_up_exps.\n"+
			"Entries of tensors that --model has and the matrix lacks are made from the others;\n"+
			"entries of no tensor of the model are left out. Both are listed.", parseChanged, remap, modelFlag())
}

func remap(r *matrixRequest, s *imatrix.Sums, did *matrixWritten) error {
	model, err := weights(r.Model)
	if err != nil {
		return err
	}
	did.Added, did.Dropped, err = s.Remap(model)
	return err
}

func imatrixFillCommand() *cli.Command {
	return changeVerb("fill", "give values to experts that no token has chosen", "FILE OUT",
		"--how mean imatrix.gguf filled.gguf",
		"--how uniform: all columns get the same importance, as quantizers treat such experts\n"+
			"anyway.\n"+
			"--how mean: the mean of the tensor's other experts; where no token has chosen any, that\n"+
			"of the nearest layers on both sides.", parseChanged, fill,
		tool.Flag{Name: "how", Value: tool.Text, Default: string(imatrix.FillMean),
			Choices: tool.Names(imatrix.Fills...), Effect: tool.SetsBytes,
			Usage: "fill method `HOW`: uniform or mean"})
}

func fill(r *matrixRequest, s *imatrix.Sums, did *matrixWritten) error {
	did.Filled = s.Fill(r.Fill)
	return nil
}

// weights returns the tensors of a model that a matrix can have entries for.
func weights(path string) ([]imatrix.Weight, error) {
	set, err := gguf.OpenSet(path)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	var list []imatrix.Weight
	for _, t := range set.Tensors() {
		if len(t.NE) < 2 || !strings.HasSuffix(t.Name, ".weight") || strings.Contains(t.Name, "_norm.") {
			continue
		}
		w := imatrix.Weight{Name: t.Name, Columns: int(t.NE[0]), Matrices: 1}
		if len(t.NE) > 2 {
			w.Matrices = int(t.NE[2])
		}
		list = append(list, w)
	}
	return list, nil
}

var parseRead = parseMatrix(1, 1, false)

func imatrixCheckCommand() *cli.Command {
	return &cli.Command{
		Name: "check", Usage: "check whether a matrix fits a model", ArgsUsage: "FILE",
		Description: "Lists tensors of the model without an entry in the matrix, tensors whose entry lacks\n" +
			"some experts, and entries of tensors that the model does not have. Entries of another\n" +
			"size than the tensor's, or with invalid values, end with exit code 3.\n\n" + tool.ExitHelp,
		Metadata: tool.About{Examples: []string{"ggtool imatrix check --model model-F16.gguf imatrix.gguf"},
			Result: tool.Prints[matrixCheck]()}.Metadata(),
		Flags:  tool.Flags(modelFlag(), chunkFlag(), tool.JSONFlag()),
		Action: checkMatrix,
	}
}

func imatrixShowCommand() *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "show the statistics of each tensor and layer", ArgsUsage: "FILE",
		Description: "For each tensor, with the numbers of llama-imatrix --show-statistics: mean, deviation,\n" +
			"skewness and kurtosis of the columns' means (of their mean squares where the file\n" +
			"has no sums), how even their shares are (H, 100 % for all the same), sum of the mean\n" +
			"squares; against the layer before: gain, distance, cosine, Pearson's correlation,\n" +
			"covariance. Then, of ours: experts that no token has chosen, least and largest mean\n" +
			"square, columns that are 0, the share of the largest hundredth of columns, and the\n" +
			"share of columns that are more than a standard deviation above the mean.\n\n" + tool.ExitHelp,
		Metadata: tool.About{Examples: []string{"ggtool imatrix show imatrix.gguf"},
			Result: tool.Prints[matrixReport]()}.Metadata(),
		Flags:  tool.Flags(tool.JSONFlag(), chunkFlag()),
		Action: showMatrix,
	}
}
