package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"ggforge/checkpoint"
	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/eval/texts"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/mmap"
	"ggforge/internal/text/pyjson"
	"ggforge/tokenizer/chat"
	"ggforge/tokenizer/vocab"
)

func renderCommand() *cli.Command {
	return &cli.Command{
		Name:      "render",
		Usage:     "print the text that a model's chat template makes of a conversation, or compare templates",
		ArgsUsage: "MODEL [SOURCE]",
		Description: "MODEL is a GGUF file, or a checkpoint directory, or one of them on a server:\n" +
			"hf://ORG/NAME/FILE.gguf, hf://ORG/NAME. Prints the text as transformers makes it, with\n" +
			"special tokens as texts. Without --messages, the conversation is a short example.\n\n" +
			"FILE of --messages is a JSON list of messages (role, content, tool_calls …), or an object\n" +
			"with messages, tools, documents and further variables of the template. With --chats each\n" +
			"line of it is such a conversation, and all of them are one text: the one that ggeval and\n" +
			"ggquant take with that flag, for llama-imatrix -f FILE --parse-special. It lacks a BOS at\n" +
			"its beginning, which that program adds, and has the newline at its end that it takes away.\n\n" +
			"With SOURCE, another model, what the templates of both make of a fixed set of\n" +
			"conversations is compared: exit code 6 if they differ.\n\n" +
			"strftime_now, by which templates print the day, shows " + chat.Fixed.Format(time.DateOnly) +
			", unless --date is given.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Elsewhere: []string{"chat-template", "apply-template"},
			Examples: []string{"ggtool render model.gguf",
				"ggtool render --messages chat.json --no-generation-prompt hf://org/Model",
				"ggtool render --messages chats.jsonl --chats model.gguf > calibration.txt",
				"ggtool render model-Q4_K_M.gguf hf://org/Model"},
			Result: tool.Prints[rendered](),
		}.Metadata(),
		Flags: tool.Flags(
			tool.Flag{Name: "messages", Value: tool.File, Effect: tool.ReadsFile,
				Usage: "render the conversation in the JSON file `FILE`; - reads standard input"},
			chatsFlag(),
			tool.Flag{Name: "tools", Value: tool.File, Effect: tool.ReadsFile,
				Usage: "give the template the tools in the JSON file `FILE`, a list of functions"},
			tool.Flag{Name: "no-generation-prompt", Effect: tool.SetsBytes,
				Usage: "leave out what precedes an answer of the model (add_generation_prompt is false)"},
			runs.TemplateFlag(),
			runs.TemplateArgumentsFlag(),
			tool.Flag{Name: "date", Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "the day that templates print is `DATE`, such as 2026-11-26"},
			tool.Flag{Name: "print-template", Effect: tool.SetsBytes,
				Usage: "print the template itself instead of what it makes of a conversation"},
			aloneFlag(),
			tool.JSONFlag(),
		),
		Action: render,
	}
}

// chatsFlag returns --chats.
func chatsFlag() tool.Flag {
	f := tool.Shared("chats", "each line of --messages is a conversation: print all of them as one text")
	f.With = []string{"messages"}
	return f
}

// renderRequest has the flags and arguments.
type renderRequest struct {
	Model, Source   string
	Messages, Tools string // files
	Chats, Print    bool
	Template        string
	Day             string
	Alone, JSON     bool
	Variables       *pyjson.Object
	Input           chat.Input
}

func parseRender(cmd *cli.Command) (r renderRequest, err error) {
	args, err := tool.Args(cmd, 1, 2)
	if err != nil {
		return r, err
	}
	r = renderRequest{Template: cmd.String("template"), Alone: cmd.Bool("alone"), JSON: cmd.Bool("json"),
		Chats: cmd.Bool("chats"), Print: cmd.Bool("print-template")}
	if r.Model, err = runs.InputPath(cmd, args[0]); err != nil {
		return r, err
	}
	if len(args) > 1 {
		if r.Source, err = runs.InputPath(cmd, args[1]); err != nil {
			return r, err
		}
	}
	r.Input.AddGenerationPrompt = !cmd.Bool("no-generation-prompt")
	if r.Variables, err = runs.TemplateArguments(cmd); err != nil {
		return r, err
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
	if r.Tools, err = tool.FileValue(cmd, "tools"); err != nil {
		return r, err
	}
	lone := func(what string, flags ...string) error {
		for _, name := range flags {
			if cmd.IsSet(name) {
				return fault.Errorf(fault.Usage, "%s and --%s: want one of them", what, name)
			}
		}
		return nil
	}
	switch {
	case r.Source != "":
		err = lone("a SOURCE to compare with", "messages", "tools", "no-generation-prompt", "template",
			"template-arguments", "date", "print-template")
	case r.Print:
		err = lone("--print-template", "messages", "tools", "no-generation-prompt", "template-arguments", "date")
	case r.Chats:
		err = lone("--chats", "tools", "no-generation-prompt", "date")
	}
	return r, err
}

// rendered is the JSON output.
type rendered struct {
	Template  string   `json:"template,omitempty"` // its name
	Templates []string `json:"templates"`          // the names of all
	Text      string   `json:"text"`
	// Assistant has the ranges of bytes that the template marks as words of the assistant.
	Assistant [][2]int `json:"assistant,omitempty"`
	// Conversations is how many the text has, with --chats.
	Conversations int `json:"conversations,omitempty"`
	// Differences are those from the templates of SOURCE.
	Differences []string `json:"differences,omitempty"`
}

func render(ctx context.Context, cmd *cli.Command) error {
	r, err := parseRender(cmd)
	if err != nil {
		return err
	}
	if r.Chats {
		return r.renderChats(ctx, cmd)
	}
	if err := r.conversation(); err != nil {
		return err
	}
	list, err := chatTemplates(ctx, r.Model, r.Alone)
	if err != nil {
		return err
	}
	if r.Source != "" {
		return r.compare(ctx, cmd, list)
	}
	t, err := list.Choose(r.Template, r.Input.Tools != nil)
	if err != nil {
		return fmt.Errorf("%s: %w", r.Model, err)
	}
	text := chat.Text{Text: t.Source}
	if !r.Print {
		if text, err = t.Render(ctx, r.Input); err != nil {
			return fmt.Errorf("%s: %w", r.Model, err)
		}
	}
	return r.print(ctx, cmd, rendered{Template: t.Name, Templates: templateNames(list), Text: text.Text,
		Assistant: text.Assistant})
}

// print prints a text, exactly, or the JSON object.
func (r *renderRequest) print(ctx context.Context, cmd *cli.Command, result rendered) error {
	if r.JSON {
		return tool.WriteJSON(tool.Output(ctx, cmd), result)
	}
	_, err := io.WriteString(tool.Exact(ctx, cmd), result.Text)
	return err
}

func templateNames(list chat.Templates) (names []string) {
	for _, t := range list {
		names = append(names, t.Name)
	}
	return names
}

// compare compares templates with those of the source.
func (r *renderRequest) compare(ctx context.Context, cmd *cli.Command, list chat.Templates) error {
	source, err := chatTemplates(ctx, r.Source, r.Alone)
	if err != nil {
		return err
	}
	found, err := chat.Compare(ctx, list, source)
	if err != nil {
		return err
	}
	result := rendered{Templates: templateNames(list)}
	for _, d := range found {
		result.Differences = append(result.Differences, d.String())
	}
	w := tool.Output(ctx, cmd)
	switch {
	case r.JSON:
		err = tool.WriteJSON(w, result)
	case found == nil:
		_, err = fmt.Fprintf(w, "%s: the %d chat templates make the same texts as those of %s\n", r.Model, len(list), r.Source)
	default:
		_, err = fmt.Fprintf(w, "%s: %s\n", r.Model, strings.Join(result.Differences, "\n"+r.Model+": "))
	}
	if err == nil && found != nil {
		err = tool.ErrDiffers
	}
	return err
}

// renderChats prints the conversations of a file as one text.
func (r *renderRequest) renderChats(ctx context.Context, cmd *cli.Command) error {
	data, err := messages(r.Messages, texts.Load)
	if err != nil {
		return err
	}
	var result rendered
	var failed error
	ok, err := withMetadata(ctx, r.Model, r.Alone, func(m gguf.Metadata) error {
		list, err := chat.FromMetadata(m)
		if err != nil {
			return err
		}
		v, err := vocab.New(m)
		if err != nil {
			return err
		}
		chats, err := texts.ReadChats(ctx, m, r.Model, r.Messages, data,
			texts.ChatOptions{Template: r.Template, Variables: r.Variables})
		if failed = err; err != nil {
			return nil // it names the file
		}
		result = rendered{Templates: templateNames(list), Text: chats.Stream(v, tool.Warning(cmd)), Conversations: len(chats.List)}
		return nil
	})
	switch err = errors.Join(err, failed); {
	case err != nil:
		return err
	case !ok:
		return fault.Errorf(fault.Usage, "%s: want a GGUF file: whether texts begin with BOS is in its metadata", r.Model)
	case !r.JSON:
		result.Text += "\n"
	}
	return r.print(ctx, cmd, result)
}

// conversation reads the messages, or takes an example, and the tools.
func (r *renderRequest) conversation() error {
	err := r.readMessages()
	r.Input.Add(r.Variables)
	if err != nil || r.Tools == "" {
		return err
	}
	data, err := messages(r.Tools, side)
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
	data, err := messages(r.Messages, side)
	if err != nil {
		return err
	}
	return r.parseMessages(data)
}

// parseMessages is readMessages for the content of the file. What the command line sets wins.
func (r *renderRequest) parseMessages(data []byte) error {
	v, err := pyjson.Parse(data)
	var in chat.Input
	if err == nil {
		in, err = chat.ParseInput(v)
	}
	if err != nil {
		return fault.Errorf(fault.Usage, "%s: %w", r.Messages, err)
	}
	in.AddGenerationPrompt, in.Date = r.Input.AddGenerationPrompt, r.Input.Date
	r.Input = in
	return nil
}

// messages reads a file, or standard input for -.
func messages(path string, read func(path string) ([]byte, error)) ([]byte, error) {
	if path != "-" {
		return read(path)
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
	ok, err := withMetadata(ctx, model, alone, func(m gguf.Metadata) (err error) {
		list, err = chat.FromMetadata(m)
		return err
	})
	if ok || err != nil {
		return list, err
	}
	var dir *checkpoint.Dir
	if checkpoint.IsRemote(model) {
		dir, err = checkpoint.OpenRemote(ctx, model, checkpoint.Options{Remote: tool.Remote()})
	} else {
		dir, err = checkpoint.Open(model, checkpoint.Options{})
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

// withMetadata calls f with the metadata of a GGUF file, which may be on a server; ok is false for a checkpoint.
func withMetadata(ctx context.Context, model string, alone bool, f func(m gguf.Metadata) error) (ok bool, err error) {
	var set *gguf.Set
	remote := checkpoint.IsRemote(model)
	switch info, statErr := os.Stat(model); {
	case remote && !strings.HasSuffix(model, ".gguf"), !remote && statErr == nil && info.IsDir():
		return false, nil
	case remote:
		set, err = checkpoint.OpenHeader(ctx, model, alone, tool.Remote())
	default:
		set, err = open(model, alone)
	}
	if err != nil {
		return true, err
	}
	defer set.Close()
	if err = mmap.Guard(model, func() error { return f(set.Metadata()) }); err != nil {
		err = fmt.Errorf("%s: %w", model, err)
	}
	return true, err
}
