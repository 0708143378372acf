package runs

import (
	"slices"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
)

// ServeFlags are the flags of ggeval serve.
func ServeFlags() []tool.Flag {
	list := []tool.Flag{
		{Name: "address", Value: tool.Text, Default: "127.0.0.1:8080", Category: tool.CategoryRun, Effect: tool.RunsOnly,
			Usage: "answer at `HOST:PORT`; port 0 is a free one"},
		{Name: "allow-remote", Category: tool.CategoryRun, Effect: tool.RunsOnly,
			Usage: "permit an address that other machines reach: there are no passwords"},
		tool.JSONFlag(),
		tool.ThreadsFlag(),
		ViaFlag(),
	}
	return slices.Concat(list, CheckpointFlags())
}

// ServeRequest has the flags and arguments of ggeval serve.
type ServeRequest struct {
	Path        string
	Address     string
	AllowRemote bool
	Workers     int
	JSON        bool
	Checkpoint
}

// ParseServe returns the request of a command line.
func ParseServe(cmd *cli.Command) (r ServeRequest, err error) {
	args, err := tool.Args(cmd, 1, 1)
	if err != nil {
		return r, err
	}
	r = ServeRequest{Address: cmd.String("address"), AllowRemote: cmd.Bool("allow-remote"), Workers: tool.Workers(cmd),
		JSON: cmd.Bool("json")}
	if r.Checkpoint, err = ParseCheckpoint(cmd); err != nil {
		return r, err
	}
	r.Path, err = InputPath(cmd, args[0])
	return r, err
}
