package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/partfile"
	"ggforge/cmd/internal/runs"
	"ggforge/cmd/internal/upload"
	"ggforge/eval"
	"ggforge/fault"
	"ggforge/imatrix"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/part"
	"ggforge/writer"
)

func imatrixCommand() *cli.Command {
	return &cli.Command{
		Name:      "imatrix",
		Usage:     "make an importance matrix",
		ArgsUsage: "[MODEL]",
		Description: "MODEL " + runs.ModelHelp + "\n\n" + textHelp + "\n\n" + sourceHelp + "\n\n" + streamHelp + "\n\n" +
			"The file holds, for each column of the matrices in the blocks, the sum of the squares\n" +
			"of its input activations over all tokens of all chunks: the file of llama-imatrix, but\n" +
			"with exact arithmetic. Without MODEL and text the files of --in-file are merged.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Main: strings.Fields(
				"file chats ctx-size chunks output format in-file save-every process-output parse-special part " +
					"finish json force threads progress via"),
			Elsewhere: []string{"importance", "calibrate"},
			Examples: []string{"ggeval imatrix -f calibration.txt -o imatrix.gguf model-F16.gguf",
				"ggeval imatrix --in-file a.gguf --in-file b.dat -o both.gguf"},
			Result: append(tool.Prints[imatrixResult](), tool.Prints[partResult]()...),
		}.Metadata(),
		Flags:  tool.Flags(runs.ImatrixFlags()...),
		Action: makeImatrix,
	}
}

// imatrixRequest has the flags and arguments.
type imatrixRequest struct {
	Path    string // "" to merge only
	Out     string
	Format  imatrix.Format
	Merged  []string
	Collect eval.Importance
	NextN   bool
	Force   bool
	input
	Shares shares
}

func parseImatrix(cmd *cli.Command) (imatrixRequest, error) {
	r, err := runs.ParseImatrix(cmd)
	return imatrixRequest{r.Path, r.Out, r.Format, r.Merged, r.Collect, r.NextN, r.Force, input{r.Input},
		shares{r.Shares}}, err
}

// imatrixResult is the JSON output, described in doc.go.
type imatrixResult struct {
	Model        string `json:"model,omitempty"`
	Architecture string `json:"architecture,omitempty"`
	Output       string `json:"output"`
	Format       string `json:"format"`
	Bytes        int64  `json:"bytes"`
	Entries      int    `json:"entries"`
	// Seen is the number of chunks, merged files included, and ChunkSize the number of tokens in
	// each.
	Seen      int `json:"chunk_count"`
	ChunkSize int `json:"chunk_size"`
	// NextN is the number of MTP (NextN) layers, merged files included.
	NextN    int      `json:"nextn_layers,omitempty"`
	Datasets []string `json:"datasets"`
	Merged   []string `json:"merged,omitempty"`
	// Resumed is the number of chunks that an interrupted run had done.
	Resumed int      `json:"resumed_chunks,omitempty"`
	Unseen  []unseen `json:"unseen,omitempty"`
	// Parts is the number of parts that --finish has put together.
	Parts int `json:"parts,omitempty"`
	pairsResult
	costResult
}

// unseen counts the matrices of a tensor that have seen no token, such as experts that were never chosen.
type unseen struct {
	Tensor string `json:"tensor"`
	Count  int    `json:"count"`
	Of     int    `json:"of"`
}

func makeImatrix(ctx context.Context, cmd *cli.Command) error {
	r, err := parseImatrix(cmd)
	if err != nil {
		return err
	}
	cost := tool.StartCost(ctx)
	out := r.Out
	object, path, err := upload.NewWhole(out, r.Force)
	if err != nil {
		return err
	}
	defer object.Close()
	r.Out = path
	opt := writer.Options{Force: r.Force, Inputs: slices.Clone(r.Merged)}
	if r.Shares.Part != (part.Part{}) {
		return r.part(ctx, cmd, cost, opt, object)
	}
	if !r.Shares.Finish { // which is short, and may find what an earlier one has made
		if err := object.Vacant(ctx); err != nil {
			return err
		}
	}
	sums := imatrix.NewSums(r.Text.Chunk)
	for _, path := range r.Merged {
		if err := merge(cmd, sums, path); err != nil {
			return err
		}
	}
	result := imatrixResult{Output: out, Format: r.Format.String()}
	for _, path := range r.Merged {
		result.Merged = append(result.Merged, tool.Address(cmd, path))
	}
	tokens := 0
	if r.Path == "" {
		if err := writer.Writable(r.Out, opt); err != nil {
			return err
		}
	} else if sums, tokens, err = r.calibrate(ctx, cmd, sums, &opt, &result); err != nil {
		return err
	}
	file, err := sums.Layout(r.Format)
	if err != nil {
		return fmt.Errorf("%s: %w", out, err)
	}
	if err := writer.WriteFrom(ctx, r.Out, file.Size, file, readBack, opt); err != nil {
		return err
	}
	if err := object.Send(ctx); err != nil {
		return err
	}
	if r.Path != "" && !r.Shares.Finish {
		if err := disk.Remove(r.state()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	m := sums.Matrix(r.Out)
	result.Bytes, result.Entries, result.Seen, result.ChunkSize, result.NextN, result.Datasets = file.Size, m.Len(),
		m.Chunks, m.ChunkSize, m.NextN, m.Datasets
	var blank []string
	for _, e := range m.Entries() {
		if n := len(e.Unseen()); n > 0 {
			result.Unseen = append(result.Unseen, unseen{e.Name, n, e.Matrices()})
			blank = append(blank, fmt.Sprintf("%s (%d of %d matrices)", e.Name, n, e.Matrices()))
		}
	}
	if blank != nil {
		tool.Warn(cmd, "no token has used these: "+fault.List(blank))
	}
	result.costResult = endCost(cost, tokens)
	w := cmd.Root().Writer
	if r.JSON {
		return tool.WriteJSON(w, result)
	}
	w = tool.InfoWriter(cmd)
	if r.Path != "" {
		fmt.Fprintln(w, result.pairsResult)
	}
	fmt.Fprintf(w, "%s: %s, %d tensors, %d chunks of %d tokens\n", out, tool.Bytes(file.Size), m.Len(),
		m.Chunks, m.ChunkSize)
	fmt.Fprintln(w, result.costResult)
	return nil
}

// runNextN makes runs have the MTP (NextN) layers, if it is asked for and the model has some.
func (r *imatrixRequest) runNextN(cmd *cli.Command, m *reader) {
	if m.run.NextN = r.NextN && m.Model.NextN() > 0; r.NextN != m.run.NextN {
		tool.Warn(cmd, r.Path+": has no MTP (NextN) layers: --nextn changes nothing")
	}
}

// merge adds the matrix in a file.
func merge(cmd *cli.Command, sums *imatrix.Sums, path string) error {
	m, err := imatrix.Open(path)
	if err != nil {
		return err
	}
	defer m.Close()
	warnings, err := sums.Merge(m)
	tool.Warn(cmd, warnings...)
	if err != nil {
		return err
	}
	return m.Unchanged()
}

// readBack checks a written matrix.
func readBack(path string) error {
	m, err := imatrix.Open(path)
	if err != nil {
		return err
	}
	return m.Close()
}

// state returns the path of the state file.
func (r *imatrixRequest) state() string { return r.Out + ".state" }

// calibrate runs the model over the text, adds to sums, and returns the number of tokens that were run.
func (r *imatrixRequest) calibrate(ctx context.Context, cmd *cli.Command, sums *imatrix.Sums, opt *writer.Options,
	result *imatrixResult) (*imatrix.Sums, int, error) {
	m, err := r.load(ctx, cmd, r.Path, func(files []string) error {
		opt.Inputs = append(opt.Inputs, files...)
		return writer.Writable(r.Out, *opt)
	})
	if err != nil {
		return nil, 0, err
	}
	defer m.Source.Close()
	r.runNextN(cmd, m)
	sums.SetChunk(m.run.Chunk)
	result.Model, result.Architecture, result.pairsResult = r.Path, m.Source.Architecture(), m.result(&r.input)
	if r.Shares.Finish {
		job, err := r.job(ctx, m)
		if err != nil {
			return nil, 0, err
		}
		if result.Parts, err = r.join(ctx, job, sums); err != nil {
			return nil, 0, err
		}
		gathered(cmd, job, result.Parts)
		sums.Datasets = append(sums.Datasets, filepath.Base(r.File))
		return sums, 0, m.Source.Unchanged()
	}
	tool.NoteScalar(cmd)
	sums, err = m.Model.Calibrate(ctx, m.run, sums, eval.Calibration{
		Importance: r.Collect, State: r.state(), Text: m.hash(&r.input),
		Resumed: func(done int) {
			result.Resumed = done
			tool.Note(cmd, fmt.Sprintf("%s: %d of %d chunks are done already, by a run that was interrupted", r.state(),
				done, result.Chunks))
		},
	})
	if err != nil {
		return nil, 0, err
	}
	if err := m.Source.Unchanged(); err != nil {
		return nil, 0, err
	}
	sums.Datasets = append(sums.Datasets, filepath.Base(r.File))
	if r.Source != "" {
		sums.Datasets = append(sums.Datasets, filepath.Base(r.Source))
	}
	return sums, m.ran() * (result.Chunks - result.Resumed) / result.Chunks, nil
}

// job returns the job whose parts several processes run. Its items are groups of chunks.
func (r *imatrixRequest) job(ctx context.Context, m *reader) (*partfile.Job, error) {
	model, err := modelFact(ctx, "model", m.Model)
	group, chunks := r.Collect.Group, m.run.Chunks()
	return r.Shares.job("importance", (chunks+group-1)/group, m.run, model,
		partfile.Fact{Name: "number of chunks in a group", Value: strconv.Itoa(group)},
		partfile.Fact{Name: "choice about the matrix that makes logits", Value: strconv.FormatBool(r.Collect.Output)},
		partfile.Fact{Name: "choice about MTP (NextN) layers", Value: strconv.FormatBool(m.run.NextN)},
	), err
}

// part runs a part. It neither reads merged files nor writes the output, as --finish does, but checks that the output
// can be written, unless the part is there already: then a run that was submitted again has nothing to do.
func (r *imatrixRequest) part(ctx context.Context, cmd *cli.Command, cost *tool.Cost, opt writer.Options,
	object *upload.Whole) error {
	m, err := r.load(ctx, cmd, r.Path, func(files []string) error {
		opt.Inputs = append(opt.Inputs, files...)
		return writer.Writable(r.Out, opt)
	})
	if err != nil {
		return err
	}
	defer m.Source.Close()
	r.runNextN(cmd, m)
	job, err := r.job(ctx, m)
	if err != nil {
		return err
	}
	return r.Shares.run(ctx, cmd, cost, share{job, r.Collect.Group, m.run, 1, opt,
		func(from, to int) ([]partfile.Section, error) {
			if err := object.Vacant(ctx); err != nil {
				return nil, err
			}
			list, err := r.groupsOf(ctx, m, from, to)
			if err == nil {
				err = m.Source.Unchanged()
			}
			return list, err
		}})
}
