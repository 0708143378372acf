package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/urfave/cli/v3"

	"ggforge/checkpoint"
)

// fetch copies the files on servers that flags name (Flag.Remote) to a temporary folder, which remove removes.
func fetch(ctx context.Context, cmd *cli.Command) (remove func() error, err error) {
	r, folder := runOf(cmd), ""
	remove = func() error {
		if folder == "" {
			return nil
		}
		return os.RemoveAll(folder)
	}
	for _, f := range Declarations(cmd) {
		if !f.Remote || !f.IsSet(cmd) {
			continue
		}
		for _, value := range f.Values(cmd) {
			name, _ := f.SplitFile(value)
			if !checkpoint.IsRemote(name) || r.fetched[name] != "" {
				continue
			}
			if folder == "" {
				if folder, err = os.MkdirTemp("", "ggforge-"); err != nil {
					return remove, err
				}
				r.fetched = map[string]string{}
			}
			base, err := checkpoint.BaseName(name)
			if err == nil {
				// the same name as on the server, because outputs have it; in a folder of its own, because two may have the same
				to := filepath.Join(folder, strconv.Itoa(len(r.fetched)), base)
				if err = os.Mkdir(filepath.Dir(to), 0o700); err == nil {
					err = checkpoint.Fetch(ctx, name, to, Remote())
				}
				r.fetched[name] = to
			}
			if err != nil {
				return remove, fmt.Errorf("--%s: %w", f.Name, err)
			}
		}
	}
	return remove, nil
}

// Fetched returns the path of the copy of a file on a server that a flag names (Flag.Remote); name itself for any other
// name.
func Fetched(cmd *cli.Command, name string) string {
	if to, ok := runOf(cmd).fetched[name]; ok {
		return to
	}
	return name
}

// Address returns the name that the user has given to a file: the address of one on a server, whose copy is at path.
func Address(cmd *cli.Command, path string) string {
	for name, to := range runOf(cmd).fetched {
		if to == path {
			return name
		}
	}
	return path
}
