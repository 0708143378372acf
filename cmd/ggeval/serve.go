package main

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/eval/serve"
	"ggforge/eval/texts"
	"ggforge/fault"
)

func serveCommand() *cli.Command {
	return &cli.Command{
		Name:      "serve",
		Usage:     "answer requests of evaluation harnesses over HTTP",
		ArgsUsage: "MODEL",
		Description: "MODEL " + runs.ModelHelp + "\n\n" +
			"Answers POST /v1/completions with echo and logprobs, the probabilities of a prompt, as\n" +
			"'local-completions' of lm-evaluation-harness asks for them, and requests about the\n" +
			"tokenizer (docs/judging.md). It generates no texts: max_tokens is 0 or 1. Requests that\n" +
			"come within a few milliseconds go through the model together. SIGINT and SIGTERM end it.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Main:      strings.Fields("address allow-remote json threads via remote"),
			Elsewhere: []string{"server"},
			Result:    tool.Prints[serveResult](),
			Examples:  []string{"ggeval serve --address 127.0.0.1:8080 model-Q4_K_M.gguf"},
		}.Metadata(),
		Flags:  tool.Flags(runs.ServeFlags()...),
		Action: serveModel,
	}
}

// serveRequest has the flags and arguments.
type serveRequest struct {
	runs.ServeRequest
}

func parseServe(cmd *cli.Command) (serveRequest, error) {
	r, err := runs.ParseServe(cmd)
	if err == nil && !r.AllowRemote && !serve.Local(r.Address) {
		err = fault.Errorf(fault.Usage, "--address %s: is not one of this machine alone, such as 127.0.0.1:8080: use "+
			"--allow-remote if every machine of the network may send requests", r.Address)
	}
	return serveRequest{r}, err
}

// serveResult is the JSON output, described in doc.go. It is printed when requests can come.
type serveResult struct {
	Model        string `json:"model"`
	Architecture string `json:"architecture"`
	Address      string `json:"address"`
}

func serveModel(ctx context.Context, cmd *cli.Command) error {
	r, err := parseServe(cmd)
	if err != nil {
		return err
	}
	in := input{runs.Input{Workers: r.Workers, Checkpoint: r.Checkpoint}}
	models, closeModels, err := in.models(ctx, cmd, []string{r.Path}, new(runs.InMemory))
	defer closeModels()
	if err != nil {
		return err
	}
	c := models[0]
	v, err := texts.Vocabulary(c.Source)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", r.Address)
	if err != nil {
		return err
	}
	tool.NoteScalar(cmd)
	s := serve.New(c.Source, c.Model, v, serve.Options{Workers: r.Workers, AnyHost: r.AllowRemote})
	result := serveResult{r.Path, c.Source.Architecture(), "http://" + listener.Addr().String()}
	if r.JSON {
		err = tool.WriteJSON(cmd.Root().Writer, result)
	} else {
		_, err = fmt.Fprintf(cmd.Root().Writer, "%s: %s\n", result.Model, result.Address)
	}
	if err != nil {
		listener.Close()
		return err
	}
	return s.Serve(ctx, listener)
}
