package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"ggforge/checkpoint"
	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/mmap"
	"ggforge/internal/text/pyjson"
	"ggforge/tokenizer/chat"
)

func renderCommand() *cli.Command {
	return &cli.Command{
		Name:      "render",
		Usage:     "print the text that a model's chat template makes of a conversation",
		ArgsUsage: "MODEL",
		Description: "MODEL is a GGUF file, or a checkpoint directory, or one of them on a server:\n" +
			"hf://ORG/NAME/FILE.gguf, hf://ORG/NAME. Prints the text as transformers makes it, with\n" +
			"special tokens as texts. Without --messages, the conversation is a short example.\n\n" +
			"FILE of --messages is a JSON list of messages (role, content, tool_calls …), or an object\n" +
			"with messages, tools, documents and further variables of the template.\n\n" +
			"strftime_now, by which templates print the day, shows " + chat.Fixed.Format(time.DateOnly) +
			", unless --date is given.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Elsewhere: []string{"chat-template", "apply-template"},
			Examples: []string{"ggtool render model.gguf",
				"ggtool render --messages chat.json --no-generation-prompt hf://org/Model"},
			Result: tool.Prints[rendered](),
		}.Metadata(),
		Flags: tool.Flags(
			tool.Flag{Name: "messages", Value: tool.File, Effect: tool.ReadsFile,
				Usage: "render the conversation in the JSON file `FILE`; - reads standard input"},
			tool.Flag{Name: "tools", Value: tool.File, Effect: tool.ReadsFile,
				Usage: "give the template the tools in the JSON file `FILE`, a list of functions"},
			tool.Flag{Name: "no-generation-prompt", Effect: tool.SetsBytes,
				Usage: "leave out what precedes an answer of the model (add_generation_prompt is false)"},
			tool.Flag{Name: "template", Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "use the template `NAME` (default: tool_use with tools if there is one, else the default one)"},
			tool.Flag{Name: "template-arguments", Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "set variables of the template to the members of `JSON`, an object"},
			tool.Flag{Name: "date", Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "the day that templates print is `DATE`, such as 2026-11-26"},
			aloneFlag(),
			tool.JSONFlag(),
		),
		Action: render,
	}
}

// renderRequest has the flags and arguments.
type renderRequest struct {
	Model           string
	Messages, Tools string // files
	Template        string
	Day             string
	Alone, JSON     bool
	Input           chat.Input
}

func parseRender(cmd *cli.Command) (r renderRequest, err error) {
	args, err := tool.Args(cmd, 1, 1)
	if err != nil {
		return r, err
	}
	r = renderRequest{Template: cmd.String("template"), Alone: cmd.Bool("alone"),
		JSON: cmd.Bool("json")}
	if r.Model, err = runs.InputPath(cmd, args[0]); err != nil {
		return r, err
	}
	r.Input.AddGenerationPrompt = !cmd.Bool("no-generation-prompt")
	if text := cmd.String("template-arguments"); text != "" {
		v, err := pyjson.Parse([]byte(text))
		o, ok := v.(*pyjson.Object)
		if err != nil || !ok {
			return r, fault.Errorf(fault.Usage, "--template-arguments %s: want a JSON object", pyjson.Quote(text))
		}
		r.Input.Extra = o
	}
	if r.Day = cmd.String("date"); r.Day != "" {
		day, err := time.Parse(time.DateOnly, r.Day)
		if err != nil {
			return r, fault.Errorf(fault.Usage, "--date %q: want a day such as 2026-11-26", r.Day)
		}
		r.Input.Date = chat.At(day)
	}
	if r.Messages, err = tool.FileValue(cmd, "messages"); err != nil {
		return r, err
	}
	r.Tools, err = tool.FileValue(cmd, "tools")
	return r, err
}

// rendered is the JSON output.
type rendered struct {
	Template  string   `json:"template"`  // its name
	Templates []string `json:"templates"` // the names of all
	Text      string   `json:"text"`
	// Assistant has the ranges of bytes that the template marks as words of the assistant.
	Assistant [][2]int `json:"assistant,omitempty"`
}

func render(ctx context.Context, cmd *cli.Command) error {
	r, err := parseRender(cmd)
	if err != nil {
		return err
	}
	if err := r.conversation(); err != nil {
		return err
	}
	list, err := chatTemplates(ctx, r.Model, r.Alone)
	if err != nil {
		return err
	}
	t := list.For(r.Input.Tools != nil)
	if r.Template != "" {
		t = list.Named(r.Template)
	}
	var names []string
	for _, t := range list {
		names = append(names, t.Name)
	}
	if t == nil {
		switch {
		case len(list) == 0:
			return fault.Errorf(fault.Refused, "%s: has no chat template", r.Model)
		case r.Template == "":
			return fault.Errorf(fault.Refused, "%s: has no default chat template, but %s: --template takes one",
				r.Model, fault.List(names))
		}
		return fault.Errorf(fault.Refused, "%s: has no chat template %q, but %s", r.Model, r.Template, fault.List(names))
	}
	text, err := t.Render(ctx, r.Input)
	if err != nil {
		return fmt.Errorf("%s: %w", r.Model, err)
	}
	if r.JSON {
		return tool.WriteJSON(tool.Output(ctx, cmd), rendered{t.Name, names, text.Text, text.Assistant})
	}
	_, err = io.WriteString(tool.Exact(ctx, cmd), text.Text)
	return err
}

// conversation reads the messages, or takes an example, and the tools.
func (r *renderRequest) conversation() error {
	if err := r.readMessages(); err != nil || r.Tools == "" {
		return err
	}
	data, err := messages(r.Tools)
	if err != nil {
		return err
	}
	v, err := pyjson.Parse(data)
	list, ok := v.([]any)
	switch {
	case err != nil:
		return fault.Errorf(fault.Usage, "%s: %w", r.Tools, err)
	case !ok:
		return fault.Errorf(fault.Usage, "%s: %s, want a list of functions", r.Tools, pyjson.Describe(v))
	}
	r.Input.Tools = list
	return nil
}

func (r *renderRequest) readMessages() error {
	if r.Messages == "" {
		r.Input.Messages = []any{chat.Message("system", "You are a helpful assistant."),
			chat.Message("user", "What does defer do in Go?")}
		return nil
	}
	data, err := messages(r.Messages)
	if err != nil {
		return err
	}
	return r.parseMessages(data)
}

// parseMessages is readMessages for the content of the file.
func (r *renderRequest) parseMessages(data []byte) error {
	v, err := pyjson.Parse(data)
	if err != nil {
		return fault.Errorf(fault.Usage, "%s: %w", r.Messages, err)
	}
	if o, ok := v.(*pyjson.Object); ok {
		v = o.Get("messages")
		for _, name := range o.Names {
			switch name {
			case "messages":
			case "tools", "documents":
				l, ok := o.Get(name).([]any)
				if !ok && o.Get(name) != nil {
					return fault.Errorf(fault.Usage, "%s: %s: %s, want a list", r.Messages, name,
						pyjson.Describe(o.Get(name)))
				}
				if name == "tools" {
					r.Input.Tools = l
				} else {
					r.Input.Documents = l
				}
			default: // what the command line sets wins
				if r.Input.Extra == nil {
					r.Input.Extra = pyjson.NewObject()
				}
				if !slices.Contains(r.Input.Extra.Names, name) {
					r.Input.Extra.Names = append(r.Input.Extra.Names, name)
					r.Input.Extra.Values[name] = o.Get(name)
				}
			}
		}
	}
	list, ok := v.([]any)
	if !ok {
		return fault.Errorf(fault.Usage, "%s: %s, want a list of messages, or an object with messages", r.Messages,
			pyjson.Describe(v))
	}
	r.Input.Messages = list
	return nil
}

// messages reads a file, or standard input for -.
func messages(path string) ([]byte, error) {
	if path != "-" {
		return side(path)
	}
	data, err := io.ReadAll(io.LimitReader(os.Stdin, maxSide+1))
	if err == nil && len(data) > maxSide {
		err = fault.Errorf(fault.Broken, "standard input: more than %s", tool.Bytes(maxSide))
	}
	return data, err
}

// chatTemplates returns the chat templates of a GGUF file or a checkpoint, which may be on a server; not nil if the
// model could be read, even if it has none.
func chatTemplates(ctx context.Context, model string, alone bool) (chat.Templates, error) {
	list, err := readTemplates(ctx, model, alone)
	if err == nil && list == nil {
		list = chat.Templates{}
	}
	return list, err
}

func readTemplates(ctx context.Context, model string, alone bool) (list chat.Templates, err error) {
	var dir *checkpoint.Dir
	remote := checkpoint.IsRemote(model)
	switch info, statErr := os.Stat(model); {
	case remote && !strings.HasSuffix(model, ".gguf"):
		dir, err = checkpoint.OpenRemote(ctx, model, checkpoint.Options{Remote: tool.Remote()})
	case !remote && statErr == nil && info.IsDir():
		dir, err = checkpoint.Open(model, checkpoint.Options{})
	default:
		var set *gguf.Set
		if remote {
			set, err = checkpoint.OpenHeader(ctx, model, alone, tool.Remote())
		} else {
			set, err = open(model, alone)
		}
		if err != nil {
			return nil, err
		}
		defer set.Close()
		err = mmap.Guard(model, func() (err error) { list, err = chat.FromMetadata(set.Metadata()); return err })
		if err != nil {
			err = fmt.Errorf("%s: %w", model, err)
		}
		return list, err
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if list, err = chat.FromCheckpoint(dir); err != nil {
		err = fmt.Errorf("%s: %w", model, err)
	}
	return list, err
}
