package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/eval"
	"ggforge/eval/texts"
	"ggforge/fault"
	"ggforge/tokenizer/vocab"
	"ggforge/writer"
)

func embedCommand() *cli.Command {
	flags := append(tool.Group(runs.CategoryText,
		tool.Shared("file", "the texts are the lines of `FILE`"),
		tool.Flag{Name: "text", Value: tool.TextList, Effect: tool.SetsBytes,
			Usage: "embed `TEXT`, before the texts of a file; repeatable"},
		tool.Shared("escape", `expand \n, \t, \r, \", \', \\ and \xHH in texts`),
		tool.Shared("no-escape", "do not expand escapes (the default)"),
	), tool.Group(tool.CategoryOutput,
		tool.Flag{Name: "pooling", Value: tool.Text, Choices: tool.Names("none", "mean", "cls", "last", "rank"),
			Effect: tool.SetsBytes,
			Usage: "pool hidden states by `HOW`: none, mean, cls (first token), last or rank (default: the model's " +
				"metadata, else none)"},
		tool.Flag{Name: "normalize", Aliases: []string{"embd-normalize"}, Value: tool.Integer, Default: 2,
			Effect: tool.SetsBytes,
			Usage:  "divide vectors by the norm `N`: -1 none, 0 largest value 32760, 1 taxicab, 2 Euclidean, more: p-norm"},
		tool.Flag{Name: "base", Value: tool.File, Effect: tool.ReadsFile,
			Usage: "compare vectors with those of the model `BASE`"},
		tool.Shared("output", "write the vectors to `FILE`: float32, little-endian, one after the other"),
		tool.ForceFlag(),
	)...)
	return &cli.Command{
		Name:      "embed",
		Usage:     "compute embeddings of texts, or compare those of two models",
		ArgsUsage: "MODEL",
		Description: "MODEL, and BASE of --base, " + runs.ModelHelp + "\n\n" +
			"Each line of the file, and each --text, is a text. Special tokens in it are\n" +
			"parsed, and those of the vocabulary (BOS, EOS, CLS, SEP) are added.\n" +
			"Vectors are those of llama-embedding, but with exact arithmetic.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Main: strings.Fields(
				"file escape text pooling normalize base output json force threads progress via remote"),
			Elsewhere: []string{"embedding", "embeddings"},
			Examples: []string{`ggeval embed --text "a sentence" embedder-F16.gguf`,
				"ggeval embed -f lines.txt --base embedder-F16.gguf embedder-Q4_K_M.gguf"},
			Result: tool.Prints[embedResult](),
		}.Metadata(),
		Flags:  tool.Flags(append(flags, runs.ModelFlags()...)...),
		Action: embed,
	}
}

// embedRequest has the flags and arguments.
type embedRequest struct {
	Path, Base string
	Texts      []string      // of --text
	Pooling    *eval.Pooling // nil for the model's
	Norm       eval.Norm
	Out        string // "" for none
	Force      bool
	input
}

func parseEmbed(cmd *cli.Command) (r embedRequest, err error) {
	args, err := tool.Args(cmd, 1, 1)
	if err != nil {
		return r, err
	}
	if r.input, err = parseInput(cmd); err != nil {
		return r, err
	}
	r.Texts, r.Force = cmd.StringSlice("text"), cmd.Bool("force")
	if r.Path, err = runs.InputPath(cmd, args[0]); err != nil {
		return r, err
	}
	if cmd.IsSet("pooling") {
		p, err := eval.ParsePooling(cmd.String("pooling"))
		if err != nil {
			return r, fmt.Errorf("--pooling: %w", err)
		}
		r.Pooling = &p
	}
	if r.Norm, err = eval.ParseNorm(int(cmd.Int("normalize"))); err != nil {
		return r, fmt.Errorf("--normalize: %w", err)
	}
	if r.Base, err = tool.FileValue(cmd, "base"); err != nil {
		return r, err
	}
	if r.Base != "" {
		if r.Base, err = runs.InputPath(cmd, r.Base); err != nil {
			return r, err
		}
	}
	if r.Out, err = tool.FileValue(cmd, "output"); err != nil {
		return r, err
	}
	if r.File == "" && len(r.Texts) == 0 {
		return r, fault.Errorf(fault.Usage, "want texts, with -f FILE or --text TEXT (see %s --help)", cmd.FullName())
	}
	return r, nil
}

// lines returns the texts, those of --text first.
func (r *embedRequest) lines(cmd *cli.Command) ([]string, error) {
	list := slices.Clone(r.Texts)
	if r.File != "" {
		whole := r.input
		whole.Escapes = false // an escaped newline does not end a line
		text, err := whole.read(cmd)
		if err != nil {
			return nil, err
		}
		list = append(list, strings.Split(text, "\n")...)
	}
	if r.Escapes {
		for i, s := range list {
			list[i] = string(texts.Unescape([]byte(s)))
		}
	}
	return list, nil
}

// embedResult is the JSON output, described in doc.go.
type embedResult struct {
	embedSide
	Pooling string `json:"pooling"`
	Norm    int64  `json:"normalize"`
	Width   int    `json:"width"`
	Texts   int    `json:"texts"`
	Tokens  int    `json:"tokens"`
	// Vectors has a list of numbers for each text, or with pooling none a list of such lists, one for each token.
	Vectors []any           `json:"vectors,omitempty"`
	Base    *distanceResult `json:"base,omitempty"`
	costResult
}

type embedSide struct {
	Model        string  `json:"model"`
	Architecture string  `json:"architecture"`
	Bytes        int64   `json:"bytes"`
	BPW          float64 `json:"bits_per_weight"`
}

// distanceResult has the base and the distances of the vectors from the base's.
type distanceResult struct {
	embedSide
	Cosine   spread   `json:"cosine"`
	Distance spread   `json:"distance"`
	Cosines  []number `json:"cosines"`
}

// spread is the distribution of values.
type spread struct {
	Mean   number `json:"mean"`
	Min    number `json:"min"`
	P1     number `json:"p1"`
	P5     number `json:"p5"`
	P10    number `json:"p10"`
	Median number `json:"median"`
	P90    number `json:"p90"`
	P95    number `json:"p95"`
	P99    number `json:"p99"`
	Max    number `json:"max"`
}

func embed(ctx context.Context, cmd *cli.Command) error {
	r, err := parseEmbed(cmd)
	if err != nil {
		return err
	}
	cost := tool.StartCost(ctx)
	lines, err := r.lines(cmd)
	if err != nil {
		return err
	}
	c, err := r.open(ctx, cmd, r.Path)
	if err != nil {
		return err
	}
	defer c.Source.Close()
	inputs, sides := slices.Clone(c.Source.Files), 1.0
	var base *candidate
	if r.Base != "" {
		if base, err = r.open(ctx, cmd, r.Base); err != nil {
			return err
		}
		defer base.Source.Close()
		inputs, sides = append(inputs, base.Source.Files...), 2
	}
	if r.File != "" {
		inputs = append(inputs, r.File)
	}
	if r.Out != "" {
		if err := writer.Writable(r.Out, writer.Options{Force: r.Force, Inputs: inputs}); err != nil {
			return err
		}
	}
	opt := eval.EmbedOptions{Pooling: c.Model.Pooling(), Norm: r.Norm, Workers: r.Workers}
	if r.Pooling != nil {
		opt.Pooling = *r.Pooling
	}
	tool.NoteScalar(cmd)
	side := func(c *candidate, n float64) (*eval.Embeddings, [][]int32, error) {
		texts, err := r.encode(cmd, c, lines)
		if err != nil {
			return nil, nil, err
		}
		if r.Show != nil {
			opt.Progress = func(p eval.Progress) { r.Show(tool.Work{Done: (n + p.Done) / sides}) }
		}
		e, err := c.Model.Embed(ctx, texts, opt)
		if err != nil {
			return nil, nil, err
		}
		return e, texts, c.Source.Unchanged()
	}
	e, texts, err := side(c, 0)
	if err != nil {
		return err
	}
	result := embedResult{embedSide: embedSideOf(c), Pooling: opt.Pooling.String(), Norm: int64(cmd.Int("normalize")),
		Width: e.Width, Texts: len(texts)}
	if opt.Pooling == eval.PoolRank {
		result.Norm = -1
	}
	for _, ids := range texts {
		result.Tokens += len(ids)
	}
	ran := result.Tokens
	if base != nil {
		b, own, err := side(base, 1)
		if err != nil {
			return err
		}
		for i := range own {
			ran += len(own[i])
			if !slices.Equal(own[i], texts[i]) {
				if opt.Pooling == eval.PoolNone {
					return fault.Errorf(fault.Refused,
						"%s splits text %d into other tokens than %s: their vectors cannot be compared one by one",
						c.Name, i+1, base.Name)
				}
				tool.Warn(cmd, fmt.Sprintf("%s splits text %d into other tokens than %s", c.Name, i+1, base.Name))
				break
			}
		}
		if b.Width != e.Width {
			return fault.Errorf(fault.Refused,
				"vectors of %s have %d values and those of %s %d: they cannot be compared", c.Name, e.Width,
				base.Name, b.Width)
		}
		result.Base = distances(e, b)
		result.Base.embedSide = embedSideOf(base)
	}
	result.costResult = endCost(cost, ran)
	if r.Out != "" {
		var data []byte
		for _, v := range e.Texts {
			for _, x := range v {
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
			}
		}
		if err := writer.WriteBytes(ctx, r.Out, data, writer.Options{Force: r.Force, Inputs: inputs}); err != nil {
			return err
		}
	} else if base == nil || r.JSON {
		result.Vectors = vectors(e)
	}
	w := tool.Output(ctx, cmd)
	if r.JSON {
		return tool.WriteJSON(w, result)
	}
	if err := result.text(w, r.Out); err != nil {
		return err
	}
	_, err = fmt.Fprintln(tool.InfoWriter(cmd), result.costResult)
	return err
}

// encode returns the tokens of texts.
func (r *embedRequest) encode(cmd *cli.Command, c *candidate, lines []string) ([][]int32, error) {
	v, err := texts.Vocabulary(c.Source)
	if err != nil {
		return nil, err
	}
	texts := make([][]int32, len(lines))
	for i, s := range lines {
		if texts[i], err = v.Encode(s, vocab.Options{AddSpecial: true, ParseSpecial: true}); err != nil {
			return nil, fmt.Errorf("%s: text %d: %w", c.Name, i+1, err)
		}
	}
	return texts, nil
}

func embedSideOf(c *candidate) embedSide {
	return embedSide{c.Name, c.Source.Architecture(), c.Source.Bytes, c.Source.BPW()}
}

// vectors returns embeddings as they are in the JSON.
func vectors(e *eval.Embeddings) []any {
	var list []any
	for _, v := range e.Texts {
		if e.Pooling != eval.PoolNone {
			list = append(list, v)
			continue
		}
		list = append(list, slices.Collect(slices.Chunk(v, e.Width)))
	}
	return list
}

// distances compares the vectors of e with those of b, one by one.
func distances(e, b *eval.Embeddings) *distanceResult {
	var d distanceResult
	var far []number
	for i := range e.Texts {
		for x, y := e.Texts[i], b.Texts[i]; len(x) > 0; x, y = x[e.Width:], y[e.Width:] {
			var xy, xx, yy, dd float64
			for k := range e.Width {
				p, q := float64(x[k]), float64(y[k])
				xy += float64(p * q)
				xx += float64(p * p)
				yy += float64(q * q)
				dd += float64((p - q) * (p - q))
			}
			cosine, distance := xy/math.Sqrt(float64(xx*yy)), math.Sqrt(dd/yy)
			if dd == 0 {
				cosine, distance = 1, 0
			}
			d.Cosines, far = append(d.Cosines, number(max(-1, min(1, cosine)))), append(far, number(distance))
		}
	}
	d.Cosine, d.Distance = spreadOf(d.Cosines), spreadOf(far)
	return &d
}

// spreadOf returns the distribution of values, with quantiles by nearest rank.
func spreadOf(values []number) spread {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	n, sum := len(sorted), 0.0
	for _, v := range values {
		sum += float64(v)
	}
	at := func(q float64) number { return sorted[max(0, int(math.Ceil(q*float64(n)))-1)] }
	return spread{number(sum / float64(n)), sorted[0], at(0.01), at(0.05), at(0.1), at(0.5), at(0.9), at(0.95),
		at(0.99), sorted[n-1]}
}

func (r *embedResult) text(w io.Writer, out string) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s: %s, %s, %.4f bits per weight\n", r.Model, r.Architecture, tool.Bytes(r.Bytes), r.BPW)
	fmt.Fprintf(b, "%d texts of %d tokens, pooling %s, %d values each\n", r.Texts, r.Tokens, r.Pooling, r.Width)
	for i, v := range r.Vectors {
		fmt.Fprintf(b, "[%d] %.7g\n", i+1, v)
	}
	if out != "" {
		fmt.Fprintf(b, "%s: vectors as float32\n", out)
	}
	if d := r.Base; d != nil {
		fmt.Fprintf(b, "base: %s, %s, %s, %.4f bits per weight\n", d.Model, d.Architecture, tool.Bytes(d.Bytes), d.BPW)
		fmt.Fprintf(b, "%-22s %10s %10s\n", "", "cosine", "distance")
		for _, row := range []struct {
			name string
			c, d number
		}{
			{"mean", d.Cosine.Mean, d.Distance.Mean}, {"worst", d.Cosine.Min, d.Distance.Max},
			{"1 % are worse than", d.Cosine.P1, d.Distance.P99},
			{"5 % are worse than", d.Cosine.P5, d.Distance.P95}, {"10 % are worse than", d.Cosine.P10, d.Distance.P90},
			{"median", d.Cosine.Median, d.Distance.Median},
		} {
			fmt.Fprintf(b, "%-22s %10.7f %10.3g\n", row.name, float64(row.c), float64(row.d))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
