package main

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"ggforge/checkpoint"
	"ggforge/checkpoint/installed"
	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/mmap"
	"ggforge/publish/modelfile"
	"ggforge/writer"
)

func modelfileCommand() *cli.Command {
	return &cli.Command{
		Name:      "modelfile",
		Usage:     "write the Modelfile with which Ollama takes in a model",
		ArgsUsage: "FILE [ENCODER] [ADAPTER]",
		Description: "Prints a Modelfile for \"ollama create NAME -f Modelfile\". FILE is a GGUF file, or the\n" +
			"first shard of a model; ENCODER its vision or audio encoder (mmproj), ADAPTER a LoRA\n" +
			"adapter, in any order. The base of an adapter without FILE is named by --from.\n\n" +
			"It has what the metadata know: settings for sampling (general.sampling.*), the tokens\n" +
			"that end a turn (eot, eom) as stop sequences, the license. What a Modelfile cannot have\n" +
			"is left out with a warning: no text of a file can add an instruction. There is no\n" +
			"TEMPLATE without --template: Ollama runs the chat template of the file.\n\n" +
			"Paths are relative to the folder of the Modelfile; without --output, that of FILE.\n\n" +
			"FILE may be on a server, as for inspect.\n\n" + runs.InstalledHelp + "\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Elsewhere: []string{"ollama"},
			Examples: []string{"ggtool modelfile model-Q4_K_M.gguf",
				"ggtool modelfile -o Modelfile -c 8192 model-Q4_K_M.gguf mmproj-F16.gguf",
				"ggtool modelfile --from llama3.2 adapter-F16.gguf"},
			Result: tool.Prints[modelfileResult](),
		}.Metadata(),
		Flags: tool.Flags(
			tool.Shared("output", "write to `FILE` instead of printing").In(tool.CategoryOutput),
			tool.Flag{Name: "from", Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "the model is `NAME`, one of Ollama, instead of FILE"},
			tool.Shared("ctx-size", "run it with a context of `N` tokens (PARAMETER num_ctx)"),
			tool.Flag{Name: "system", Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "begin with the system message `TEXT`"},
			tool.Flag{Name: "template", Value: tool.File, Effect: tool.ReadsFile,
				Usage: "use the template in `FILE`, in Ollama's language, instead of the chat template of the model"},
			tool.ForceFlag(), tool.JSONFlag(),
		),
		Action: writeModelfile,
	}
}

// modelfileRequest has the flags and arguments.
type modelfileRequest struct {
	Files    []string // as named by the arguments, and where they are
	Paths    []string
	Out      string
	From     string
	Context  int
	System   string
	Template string
	Force    bool
	JSON     bool
}

// modelfileResult is the JSON output.
type modelfileResult struct {
	Output     string                `json:"output,omitempty"` // the written file
	From       []string              `json:"from"`
	Adapter    string                `json:"adapter,omitempty"`
	Parameters []modelfile.Parameter `json:"parameters"`
	Template   string                `json:"template,omitempty"`
	System     string                `json:"system,omitempty"`
	License    string                `json:"license,omitempty"`
	Text       string                `json:"text"` // of the Modelfile
	Warnings   []string              `json:"warnings,omitempty"`
}

func parseModelfile(cmd *cli.Command) (r modelfileRequest, err error) {
	r = modelfileRequest{From: cmd.String("from"), System: cmd.String("system"), Force: cmd.Bool("force"),
		JSON: cmd.Bool("json")}
	if r.Files, err = tool.Args(cmd, 1, 3); err != nil {
		return r, err
	}
	if r.Paths, err = runs.InputPaths(cmd, r.Files); err != nil {
		return r, err
	}
	if cmd.IsSet("ctx-size") {
		if r.Context, err = tool.CountValue(cmd, "ctx-size"); err == nil && r.Context == 0 {
			err = fault.Errorf(fault.Usage, "--ctx-size 0: want at least 1 token")
		}
		if err != nil {
			return r, err
		}
	}
	if r.Out, err = tool.FileValue(cmd, "output"); err != nil {
		return r, err
	}
	if r.Force && r.Out == "" {
		return r, fault.Errorf(fault.Usage, "--force goes with --output")
	}
	r.Template, err = tool.FileValue(cmd, "template")
	return r, err
}

// modelfileArgument is an argument, and the files that it names; nil for none.
type modelfileArgument struct {
	arg   string
	files []string // their paths or addresses
}

// elsewhere reports whether the files are on a server or in the store of another program.
func (a *modelfileArgument) elsewhere() bool {
	return installed.Is(a.arg) || checkpoint.IsRemote(a.files[0])
}

// names returns the names that a Modelfile in the folder dir has for the files.
func (a *modelfileArgument) names(dir string) (names []string, err error) {
	if a == nil {
		return nil, nil
	}
	if name, ok := strings.CutPrefix(a.arg, "ollama://"); ok && !strings.Contains(name, "#") {
		return []string{name}, nil // with its settings
	}
	for _, file := range a.files {
		name := file
		switch {
		case checkpoint.IsRemote(file): // to be downloaded into the folder of the Modelfile
			if u, err := url.Parse(name); err == nil && strings.HasPrefix(u.Scheme, "http") {
				name = u.Path
			}
			name = modelfile.Beside(name)
		case installed.Is(a.arg):
			name, err = filepath.Abs(file)
			name = filepath.ToSlash(name)
		default:
			name, err = modelfile.Relative(dir, file)
		}
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// modelfileParts are the files of a Modelfile.
type modelfileParts struct {
	modelfile.Modelfile
	model, encoder, adapter *modelfileArgument
	inputs                  []string // on this machine
	warnings                []string
}

// folder returns the folder of a Modelfile that is printed: that of the model, or of another file without one that is
// here.
func (p *modelfileParts) folder() string {
	for _, a := range []*modelfileArgument{p.model, p.encoder, p.adapter} {
		if a != nil && !a.elsewhere() {
			return filepath.Dir(a.files[0])
		}
	}
	return ""
}

// setNames sets what the Modelfile has for the files.
func (p *modelfileParts) setNames(r *modelfileRequest) error {
	dir := p.folder()
	if r.Out != "" {
		dir = filepath.Dir(r.Out)
	}
	if r.From != "" {
		p.From = []string{r.From}
	}
	for _, a := range []*modelfileArgument{p.model, p.encoder} {
		names, err := a.names(dir)
		if err != nil {
			return err
		}
		p.From = append(p.From, names...)
	}
	names, err := p.adapter.names(dir)
	if len(names) > 0 {
		p.Adapter = names[0]
	}
	return err
}

// add adds the file of an argument.
func (p *modelfileParts) add(ctx context.Context, r *modelfileRequest, arg, path string) error {
	var set *gguf.Set
	var err error
	if checkpoint.IsRemote(path) {
		set, err = checkpoint.OpenHeader(ctx, path, false, tool.Remote())
	} else if set, err = open(path, false); err == nil {
		for _, f := range set.Files {
			p.inputs = append(p.inputs, f.Path)
		}
	}
	if err != nil {
		return err
	}
	defer set.Close()
	found := &modelfileArgument{arg: arg}
	for _, f := range set.Files {
		found.files = append(found.files, f.Path)
	}
	twice := func(what string) error {
		return fault.Errorf(fault.Usage, "%s: the second %s, want one", arg, what)
	}
	return mmap.Guard(path, func() error {
		switch modelfile.RoleOf(set.Metadata()) {
		case modelfile.Encoder:
			if p.encoder != nil {
				return twice("encoder")
			}
			p.encoder = found
		case modelfile.Adapter:
			if p.adapter != nil {
				return twice("adapter")
			}
			if n := len(found.files); n > 1 {
				return fault.Errorf(fault.Unsupported, "%s: an adapter in %d files, want one file", arg, n)
			}
			p.adapter = found
		case modelfile.Model:
			if p.model != nil {
				return twice("model")
			}
			if r.From != "" {
				return fault.Errorf(fault.Usage, "%s: a model, and --from names another: want only one of them", arg)
			}
			p.model = found
			p.warnings = p.Read(set.Metadata())
		default:
			return fault.Errorf(fault.Usage, "%s: an importance matrix or the like, want a model, an encoder or an adapter",
				arg)
		}
		return nil
	})
}

func writeModelfile(ctx context.Context, cmd *cli.Command) error {
	r, err := parseModelfile(cmd)
	if err != nil {
		return err
	}
	var p modelfileParts
	p.System = r.System
	if r.Context > 0 {
		p.Parameters = []modelfile.Parameter{{Name: "num_ctx", Value: strconv.Itoa(r.Context)}}
	}
	if r.Template != "" {
		data, err := side(r.Template)
		if err != nil {
			return err
		}
		if p.Template = string(data); p.Template == "" {
			return fault.Errorf(fault.Usage, "%s: is empty, want a template", r.Template)
		}
		if err := modelfile.CheckTemplate(p.Template); err != nil {
			return fmt.Errorf("%s: %w", r.Template, err)
		}
		p.inputs = append(p.inputs, r.Template)
	}
	for i, arg := range r.Files {
		if err := p.add(ctx, &r, arg, r.Paths[i]); err != nil {
			return err
		}
	}
	if p.model == nil && r.From == "" {
		return fault.Errorf(fault.Usage, "no model among the files: name one, or one of Ollama with --from")
	}
	if err := p.setNames(&r); err != nil {
		return err
	}
	tool.Warn(cmd, p.warnings...)
	text, err := p.Text()
	if err != nil {
		return err
	}
	if r.Out != "" {
		if err := writer.WriteBytes(ctx, r.Out, text, writer.Options{Force: r.Force, Inputs: p.inputs}); err != nil {
			return err
		}
	}
	switch w := tool.Output(ctx, cmd); {
	case r.JSON:
		return tool.WriteJSON(w, modelfileResult{r.Out, p.From, p.Adapter, p.Parameters, p.Template, p.System, p.License,
			string(text), p.warnings})
	case r.Out == "":
		_, err = w.Write(text)
	default:
		_, err = fmt.Fprintf(tool.InfoWriter(cmd), "%s: written\n", r.Out)
	}
	return err
}
