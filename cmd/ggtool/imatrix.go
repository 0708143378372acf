package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/writer"
)

func imatrixCommand() *cli.Command {
	return &cli.Command{
		Name:  "imatrix",
		Usage: "look into importance matrices, merge and change them",
		Description: "Matrices are files of either format (.gguf, or .dat) of llama-imatrix, and of ggeval\nimatrix, " +
			"which makes them.\n\n" + tool.ExitHelp,
		Commands: []*cli.Command{imatrixShowCommand(), imatrixCheckCommand(), imatrixMergeCommand(),
			imatrixConvertCommand(), imatrixRemapCommand(), imatrixFillCommand(), imatrixStripCommand()},
		Action: tool.NeedsVerb,
	}
}

// chunkFlag says how many tokens a chunk of files has that do not say it.
func chunkFlag() cli.Flag {
	return tool.Shared("ctx-size", "chunks of legacy files have `N` tokens", "chunk-size")
}

func formatFlag() cli.Flag {
	return tool.OneOf(&cli.StringFlag{Name: "format", Category: tool.CategoryOutput, Value: imatrix.FormatGGUF.String(),
		Usage: "write `FORMAT` gguf or dat, the legacy one"}, tool.Names("gguf", "dat"))
}

func modelFlag() cli.Flag {
	return &cli.StringFlag{Name: "model", Usage: "the GGUF `FILE` whose tensors the matrix is to be of", Required: true}
}

// matrixRequest is what the flags and arguments of a verb ask for.
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

// parseMatrix returns the parser of a verb with so many inputs, at least, and an output after
// them or not.
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
		if r.Chunk, err = tool.Count(cmd, "ctx-size"); err != nil {
			return r, err
		}
		if r.Chunk == 0 {
			return r, fault.Errorf(fault.Usage, "chunks of 0 tokens: want at least 1")
		}
		if cmd.IsSet("model") {
			r.Model, err = tool.File(cmd, "model")
		}
		return r, err
	}
}

// load merges the inputs, which are one for most verbs.
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

// matrixWritten is what --json prints of the verbs that write a matrix.
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

// text prints what was written.
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

// save writes the output, and says what it is and what was changed.
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

// matrixChange changes what matrices come to, and says what it did.
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

// maxMerged is how many matrices can be merged at once.
const maxMerged = 10000

var parseMerged, parseChanged = parseMatrix(1, maxMerged, true), parseMatrix(1, 1, true)

// changeVerb returns a verb that reads matrices, changes what they come to and writes it.
func changeVerb(name, usage, args, example, about string, parse func(*cli.Command) (matrixRequest, error),
	change matrixChange, flags ...cli.Flag) *cli.Command {
	if about != "" {
		about += "\n\n"
	}
	return &cli.Command{
		Name: name, Usage: usage, ArgsUsage: args, Description: about + tool.ExitHelp,
		Metadata: tool.About{Examples: []string{"ggtool imatrix " + name + " " + example},
			Result: tool.Prints[matrixWritten]()}.Metadata(),
		Flags:  append(flags, tool.OutFlag(), formatFlag(), chunkFlag(), tool.ForceFlag(), tool.JSONFlag()),
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
		"The legacy format has means only: what it is converted to counts chunks of\n--ctx-size tokens.",
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
	return changeVerb("remap", "make a matrix of a model with fused or split tensors that of another", "FILE OUT",
		"--model fused.gguf imatrix.gguf fused-imatrix.gguf",
		"Tensors that read the same input have the same importance: attn_qkv is that of\n"+
			"attn_q, attn_k and attn_v, ffn_gate_up_exps that of ffn_gate_exps and ffn_up_exps.\n"+
			"Those that --model has and the matrix lacks are made of the others; what is of\n"+
			"no tensor of the model is left out. Both are listed.", parseChanged, remap, modelFlag())
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
	return changeVerb("fill", "say something about experts that no token has chosen", "FILE OUT",
		"--how mean imatrix.gguf filled.gguf",
		"--how uniform: all columns are of the same importance, as quantizers take them anyway.\n"+
			"--how mean: that of the tensor's other experts; where no token has chosen any, that\n"+
			"of the nearest layers on both sides.", parseChanged, fill,
		tool.OneOf(&cli.StringFlag{Name: "how", Value: string(imatrix.FillMean),
			Usage: "fill as `HOW` says: uniform or mean"}, tool.Names(imatrix.Fills...)))
}

func fill(r *matrixRequest, s *imatrix.Sums, did *matrixWritten) error {
	did.Filled = s.Fill(r.Fill)
	return nil
}

// weights returns the tensors of a model that a matrix may be about.
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
		Name: "check", Usage: "see whether a matrix is of a model", ArgsUsage: "FILE",
		Description: "Lists tensors of the model that the matrix says nothing of, or nothing of some of their\n" +
			"experts, and what it says of tensors that the model does not have. Values of another\n" +
			"size than the tensor's, or that are no importance, end with exit code 3.\n\n" + tool.ExitHelp,
		Metadata: tool.About{Examples: []string{"ggtool imatrix check --model model-F16.gguf imatrix.gguf"},
			Result: tool.Prints[matrixCheck]()}.Metadata(),
		Flags:  []cli.Flag{modelFlag(), chunkFlag(), tool.JSONFlag()},
		Action: checkMatrix,
	}
}

// matrixCheck is what --json prints.
type matrixCheck struct {
	File     string          `json:"file"`
	Model    string          `json:"model"`
	Right    int             `json:"right"`   // tensors that the matrix is right for
	Tensors  int             `json:"tensors"` // of the model
	Fits     bool            `json:"fits"`
	Findings []matrixFinding `json:"findings"`
}

// matrixFinding is what is to be said of a tensor.
type matrixFinding struct {
	Tensor string `json:"tensor"`
	Text   string `json:"text"`
	Broken bool   `json:"broken"`
}

func checkMatrix(ctx context.Context, cmd *cli.Command) error {
	r, err := parseRead(cmd)
	if err != nil {
		return err
	}
	model, err := weights(r.Model)
	if err != nil {
		return err
	}
	m, err := imatrix.Open(r.In[0])
	if err != nil {
		return err
	}
	defer m.Close()
	check := matrixCheck{File: r.In[0], Model: r.Model, Tensors: len(model), Findings: []matrixFinding{}}
	say := func(tensor string, broken bool, format string, args ...any) {
		check.Findings = append(check.Findings, matrixFinding{tensor, fmt.Sprintf(format, args...), broken})
	}
	of, bad := map[string]bool{}, 0
	for _, x := range model {
		of[x.Name] = true
		e := m.Entry(x.Name)
		if e == nil {
			say(x.Name, false, "the matrix says nothing of it")
			continue
		}
		_, warning, err := m.Lookup(x.Name, []int64{int64(x.Columns), 1, int64(x.Matrices)})
		if err = errors.Join(err, warning); err != nil {
			say(x.Name, true, "%v", err)
			bad++
			continue
		}
		if n := len(e.Unseen()); n > 0 {
			say(x.Name, false, "no token has met %d of %d matrices", n, e.Matrices())
		}
		check.Right++
	}
	for _, e := range m.Entries() {
		if !of[e.Name] {
			say(e.Name, false, "the model has no such weights")
		}
	}
	check.Fits = bad == 0 && check.Right > 0
	if err := m.Unchanged(); err != nil {
		return err
	}
	w := tool.Output(ctx, cmd)
	if r.JSON {
		err = tool.WriteJSON(w, check)
	} else {
		for _, f := range check.Findings {
			fmt.Fprintf(w, "%s: %s\n", f.Tensor, f.Text)
		}
		_, err = fmt.Fprintf(w, "%s: right for %d of %d tensors of %s\n", check.File, check.Right,
			check.Tensors, check.Model)
	}
	if err != nil {
		return err
	}
	if !check.Fits {
		return fault.Errorf(fault.Broken, "%s: is not of %s", r.In[0], r.Model)
	}
	return nil
}

func imatrixShowCommand() *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "describe what a matrix says of each tensor and layer", ArgsUsage: "FILE",
		Description: "For each tensor, with the numbers of llama-imatrix --show-statistics: mean, deviation,\n" +
			"skewness and kurtosis of the columns' means (of their mean squares where the file\n" +
			"has no sums), how even their shares are (H, 100 % for all the same), sum of the mean\n" +
			"squares; against the layer before: gain, distance, cosine, Pearson's correlation,\n" +
			"covariance. Then, of ours: experts that no token has chosen, least and largest mean\n" +
			"square, columns that are 0, the share of the largest hundredth of columns, and the\n" +
			"share of columns that are more than a standard deviation above the mean.\n\n" + tool.ExitHelp,
		Metadata: tool.About{Examples: []string{"ggtool imatrix show imatrix.gguf"},
			Result: tool.Prints[matrixReport]()}.Metadata(),
		Flags:  []cli.Flag{tool.JSONFlag(), chunkFlag()},
		Action: showMatrix,
	}
}

// real is a number that may be missing: JSON has no NaN.
type real float64

func (n real) MarshalJSON() ([]byte, error) {
	if f := float64(n); math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// matrixReport is what --json prints; doc.go describes it.
type matrixReport struct {
	File      string        `json:"file"`
	Datasets  []string      `json:"datasets"`
	Chunks    int           `json:"chunk_count"`
	ChunkSize int           `json:"chunk_size"`
	Tensors   []tensorStats `json:"tensors"`
	Layers    []layerStats  `json:"layers"`
}

type tensorStats struct {
	Tensor        string  `json:"tensor"`
	Layer         int     `json:"layer"` // -1 for none
	Counts        []int64 `json:"counts"`
	Unseen        int     `json:"unseen"`
	Columns       int64   `json:"columns"`
	Mean          real    `json:"mean"`
	Deviation     real    `json:"std_deviation"`
	Skewness      real    `json:"skewness"`
	Kurtosis      real    `json:"kurtosis"`
	Entropy       real    `json:"entropy"`
	Spread        real    `json:"h_norm"`
	Sum           real    `json:"sum_sq"`
	Gain          real    `json:"gain"`
	Distance      real    `json:"l2_dist"`
	Cosine        real    `json:"cossim"`
	Pearson       real    `json:"pearson"`
	Covariance    real    `json:"covariance"`
	Min           real    `json:"min"`
	Max           real    `json:"max"`
	Dead          int64   `json:"dead"`
	Concentration real    `json:"concentration"`
	Dense         real    `json:"z_density"`
}

type layerStats struct {
	Layer      int  `json:"layer"`
	Sum        real `json:"sum_sq"`
	Gain       real `json:"gain"`
	Distance   real `json:"l2_dist"`
	Cosine     real `json:"cossim"`
	Pearson    real `json:"pearson"`
	Covariance real `json:"covariance"`
}

func showMatrix(ctx context.Context, cmd *cli.Command) error {
	r, err := parseRead(cmd)
	if err != nil {
		return err
	}
	sums, err := r.load(cmd)
	if err != nil {
		return err
	}
	if sums.Len() == 0 {
		return fault.Errorf(fault.Broken, "%s: an importance matrix without tensors", r.In[0])
	}
	report := matrixReport{File: r.In[0], Datasets: sums.Datasets, Chunks: sums.Chunks(), ChunkSize: sums.ChunkSize()}
	tensors, layers := sums.Describe()
	for _, t := range tensors {
		report.Tensors = append(report.Tensors, tensorStats{t.Tensor, t.Layer, t.Counts, t.Unseen, t.Columns,
			real(t.Mean), real(t.Deviation), real(t.Skewness), real(t.Kurtosis), real(t.Entropy),
			real(t.Spread), real(t.Sum),
			real(t.Gain), real(t.Distance), real(t.Cosine), real(t.Pearson), real(t.Covariance), real(t.Min),
			real(t.Max), t.Dead, real(t.Concentration), real(t.Dense)})
	}
	for _, l := range layers {
		report.Layers = append(report.Layers, layerStats{l.Layer, real(l.Sum), real(l.Gain), real(l.Distance),
			real(l.Cosine), real(l.Pearson), real(l.Covariance)})
	}
	w := tool.Output(ctx, cmd)
	if r.JSON {
		return tool.WriteJSON(w, report)
	}
	return report.write(w)
}

// write prints the report as text.
func (r *matrixReport) write(w io.Writer) error {
	fmt.Fprintf(w, "%s: %d tensors, %d chunks of %d tokens", r.File, len(r.Tensors), r.Chunks, r.ChunkSize)
	if len(r.Datasets) > 0 {
		fmt.Fprintf(w, ", %q", r.Datasets)
	}
	wide := len("tensor")
	for _, t := range r.Tensors {
		wide = max(wide, len(t.Tensor))
	}
	fmt.Fprintf(w, "\n\n%-*s %9s %9s %9s %11s %8s %14s %7s %12s %8s %8s %8s %9s %11s %11s %6s %7s %7s\n", wide,
		"tensor", "mean", "std", "skew", "kurt", "H", "sum E[a^2]", "gain", "l2 dist", "cossim", "pearson", "cov",
		"unseen", "min", "max", "dead", "top 1%", "dense")
	for _, t := range r.Tensors {
		fmt.Fprintf(w, "%-*s %9.4f %9.4f %9.4f %11.4f %7.2f%% %14.4f %7.2f %12.4f %8.4f %8.4f %8.4f %9s %11.4g "+
			"%11.4g %6d %6.2f%% %6.2f%%\n", wide, t.Tensor, t.Mean, t.Deviation, t.Skewness, t.Kurtosis,
			t.Spread, t.Sum,
			t.Gain, t.Distance, t.Cosine, t.Pearson, t.Covariance, fmt.Sprintf("%d of %d", t.Unseen, len(t.Counts)),
			t.Min, t.Max, t.Dead, 100*t.Concentration, 100*t.Dense)
	}
	fmt.Fprintf(w, "\n%5s %14s %7s %12s %8s %8s %9s\n", "layer", "sum E[a^2]", "gain", "l2 dist", "cossim",
		"pearson", "cov")
	for _, l := range r.Layers {
		name := fmt.Sprint(l.Layer)
		if l.Layer < 0 {
			name = "-"
		}
		if _, err := fmt.Fprintf(w, "%5s %14.4f %7.2f %12.4f %8.4f %8.4f %9.4f\n", name, l.Sum, l.Gain, l.Distance,
			l.Cosine, l.Pearson, l.Covariance); err != nil {
			return err
		}
	}
	return nil
}
