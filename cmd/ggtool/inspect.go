package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/urfave/cli/v3"

	"ggforge/arch/diffusion"
	"ggforge/checkpoint"
	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/page"
	"ggforge/cmd/internal/runs"
	"ggforge/eval/memory"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/mmap"
	"ggforge/model/limits"
	"ggforge/publish/card"
)

func inspectCommand() *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "list a model's header, metadata and tensors",
		ArgsUsage: "FILE",
		Description: "FILE is a GGUF file, or the first shard of a model, whose shards are listed as\n" +
			"one model. Unknown tensor types are listed by number; the bytes of such a tensor\n" +
			"are those up to the next one.\n\n" +
			"FILE may be on a server: hf://ORG/NAME/FILE.gguf, hf://ORG/NAME@REVISION/FILE.gguf\n" +
			"or an address with http(s)://, or an object, s3://BUCKET/KEY. Only the header is\n" +
			"fetched. HF_TOKEN and HF_ENDPOINT apply, and for objects AWS_ENDPOINT_URL and the\n" +
			"other variables of S3 tools.\n\n" + runs.InstalledHelp + "\n\n" +
			"--memory lists the memory that llama.cpp needs to run the model without accelerators:\n" +
			"weights, caches and states to the byte, compute buffers as an estimate. Of image and video\n" +
			"models it lists the weights only.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Elsewhere: []string{"info", "show", "dump", "list", "ls", "metadata"},
			Examples: []string{"ggtool inspect model-Q4_K_M.gguf",
				"ggtool inspect --get tokenizer.chat_template model-Q4_K_M.gguf",
				"ggtool inspect --json --full model-Q4_K_M.gguf", "ggtool inspect --memory model-Q4_K_M.gguf"},
		}.Metadata(),
		Flags: tool.Flags(append([]tool.Flag{
			tool.JSONFlag(),
			tool.Flag{Name: "markdown", Effect: tool.RunsOnly,
				Usage: "print Markdown tables"},
			tool.Flag{Name: "full", Effect: tool.RunsOnly,
				Usage: "print long arrays and strings in full"},
			tool.Flag{Name: "get", Value: tool.Text, Effect: tool.RunsOnly,
				Usage: "print only the value of `KEY`, in full: arrays element by element"},
			tool.Flag{Name: "tensors", Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "list only tensors whose names match `EXPRESSION`, such as attn_q|ffn_"},
			aloneFlag(),
			tool.Flag{Name: "memory", Effect: tool.RunsOnly,
				Usage: "print only the memory needed to run the model"},
			tool.Flag{Name: "ctx-size", Aliases: []string{"c", "context"}, Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "(--memory) context lengths, such as `4k,32k` (default: several, up to the trained one)"},
			tool.Flag{Name: "cache-type", Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "(--memory) type of the cache, such as `q8_0`, or of keys and values: q8_0,f16 (default: f16)"},
			tool.Flag{Name: "parallel", Value: tool.Count, Unit: "sequences", Default: uint(1), Effect: tool.SetsBytes,
				Usage: "(--memory) `N` sequences at the same time, as llama-server -np N"},
			tool.Flag{Name: "ubatch-size", Value: tool.Count, Unit: "tokens", Default: uint(512),
				Effect: tool.SetsBytes,
				Usage:  "(--memory) compute `N` tokens at once"},
			tool.Flag{Name: "results", Value: tool.File, Category: tool.CategoryOutput, Effect: tool.ReadsFile,
				Usage: "(--html) take divergence and perplexity from `FILE`, which ggeval compare --json or ggtool " +
					"release (quality.json) has written"},
		}, runs.PageFlags()...)...),
		Action: inspect,
	}
}

// inspectRequest has the flags and arguments.
type inspectRequest struct {
	File        string
	Alone, JSON bool
	Markdown    bool
	Get         string
	Tensors     string
	Dump        gguf.DumpOptions

	Memory   bool
	Contexts []int64 // of memory
	Run      memory.Options

	// Results is a file of ggeval, from which a page takes the divergence from the model before quantization.
	Results string
	runs.PageOutput
}

func parseInspect(cmd *cli.Command) (r inspectRequest, err error) {
	args, err := tool.Args(cmd, 1, 1)
	if err != nil {
		return r, err
	}
	if args, err = runs.InputPaths(cmd, args); err != nil {
		return r, err
	}
	r = inspectRequest{File: args[0], Alone: cmd.Bool("alone"), JSON: cmd.Bool("json"), Markdown: cmd.Bool("markdown"),
		Get:     cmd.String("get"),
		Tensors: cmd.String("tensors"), Dump: gguf.DumpOptions{Full: cmd.Bool("full")}, Memory: cmd.Bool("memory")}
	if r.Tensors != "" {
		if r.Dump.Tensors, err = regexp.Compile(r.Tensors); err != nil {
			return r, fault.Errorf(fault.Usage, "--tensors: %w", err)
		}
	}
	if r.Markdown && r.JSON {
		return r, fault.Errorf(fault.Usage, "--json and --markdown: want only one of them")
	}
	if r.PageOutput, err = runs.ParsePage(cmd); err != nil {
		return r, err
	}
	if r.Results, err = tool.FileValue(cmd, "results"); err != nil {
		return r, err
	}
	if r.Results != "" && r.HTML == "" {
		return r, fault.Errorf(fault.Usage, "--results: needs --html")
	}
	return r, r.parseMemory(cmd)
}

// parseMemory reads the flags of --memory, which need it.
func (r *inspectRequest) parseMemory(cmd *cli.Command) (err error) {
	for _, name := range []string{"ctx-size", "cache-type", "parallel", "ubatch-size"} {
		if cmd.IsSet(name) && !r.Memory && r.HTML == "" {
			return fault.Errorf(fault.Usage, "--%s: needs --memory or --html", name)
		}
	}
	if text := cmd.String("ctx-size"); text != "" {
		for part := range strings.SplitSeq(text, ",") {
			n, err := memory.ParseContext(part)
			if err != nil {
				return fault.Errorf(fault.Usage, "--ctx-size %q: %w", text, err)
			}
			r.Contexts = append(r.Contexts, n)
		}
	}
	if text := cmd.String("cache-type"); text != "" {
		keys, values, ok := strings.Cut(text, ",")
		if !ok {
			values = keys
		}
		if r.Run.Keys, err = memory.ParseCacheType(keys); err == nil {
			r.Run.Values, err = memory.ParseCacheType(values)
		}
		if err != nil {
			return fault.Errorf(fault.Usage, "--cache-type: %w", err)
		}
	}
	r.Run.Sequences, r.Run.Batch = int64(cmd.Uint("parallel")), int64(cmd.Uint("ubatch-size"))
	r.Run.Unified = r.Run.Sequences > 1
	return nil
}

// writeMemory writes the memory that the model needs to run.
func (r *inspectRequest) writeMemory(w io.Writer, set *gguf.Set) error {
	if diffusion.Has(set.Metadata().Architecture()) {
		return r.writeWeights(w, set)
	}
	report, err := memory.Of(memory.From(set), r.Run, r.Contexts...)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", r.File, err)
	case r.JSON:
		return report.WriteJSON(w)
	case r.Markdown:
		return report.WriteMarkdown(w)
	}
	return report.WriteText(w)
}

// onlyWeights is the JSON output of --memory for models of which only the memory of weights is known.
type onlyWeights struct {
	Architecture string `json:"architecture"`
	Weights      int64  `json:"weights"`
	OnlyWeights  bool   `json:"only_weights"`
}

// writeWeights writes the memory of the weights of an image model: what else it takes depends on the program that runs it
// and on the size of images.
func (r *inspectRequest) writeWeights(w io.Writer, set *gguf.Set) error {
	x := onlyWeights{Architecture: set.Metadata().Architecture(), OnlyWeights: true}
	for _, t := range set.Tensors() {
		x.Weights += t.Bytes()
	}
	if r.JSON {
		return tool.WriteJSON(w, x)
	}
	_, err := fmt.Fprintf(w, "%s: weights %s (%d bytes), as they are in the file. Weights only: what else a program takes "+
		"depends on\nthe program and on the size of images or videos, and text encoders and autoencoders are other files.\n",
		x.Architecture, memory.Size(x.Weights), x.Weights)
	return err
}

func inspect(ctx context.Context, cmd *cli.Command) error {
	r, err := parseInspect(cmd)
	if err != nil {
		return err
	}
	var set *gguf.Set
	if checkpoint.IsRemote(r.File) {
		set, err = checkpoint.OpenHeader(ctx, r.File, r.Alone, tool.Remote())
	} else {
		set, err = open(r.File, r.Alone)
	}
	if err != nil {
		return err
	}
	defer set.Close()
	tool.Warn(cmd, limits.Unread(set.Shapes())...)
	var inputs []string
	if !checkpoint.IsRemote(r.File) {
		for _, f := range set.Files {
			inputs = append(inputs, f.Path)
		}
	}
	var results *card.Result
	if r.Results != "" {
		inputs = append(inputs, r.Results)
		found, err := card.ReadResult(r.Results)
		if err != nil {
			return err
		}
		results = &found
	}
	if err := r.Check(ctx, inputs); err != nil {
		return err
	}
	var shown *page.Page
	w := tool.Output(ctx, cmd)
	err = mmap.Guard(r.File, func() (err error) {
		if r.HTML != "" {
			if shown, err = r.page(set, results); err != nil {
				return err
			}
		}
		switch {
		case r.Get != "":
			v, ok := set.Metadata().Get(r.Get)
			if !ok {
				return fault.Errorf(fault.Refused, "%s: has no key %q", r.File, r.Get)
			}
			return gguf.WriteValue(w, v, r.JSON)
		case r.Memory:
			return r.writeMemory(w, set)
		case r.JSON:
			return set.WriteJSON(w, r.Dump)
		case r.Markdown:
			return set.WriteMarkdown(w, r.Dump)
		}
		return set.WriteText(w, r.Dump)
	})
	if err != nil {
		return err
	}
	if err := set.Unchanged(); err != nil {
		return err
	}
	return r.Write(ctx, inputs, func() *page.Page { return shown })
}
