package runs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/fault"
	"ggforge/internal/io/bucket"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/part"
)

// Shares selects the chunks that this process runs, if it is one of several.
type Shares struct {
	Part   part.Part // the zero value for all chunks
	Finish bool      // put the results of all parts together
	Name   string    // parts are in NAME.part-K-of-N
}

// categoryParts is the heading of the flags of Shares.
const categoryParts = "Parts"

// shareFlags returns the flags of the verbs whose chunks several processes can share.
func shareFlags(more ...tool.Flag) []tool.Flag {
	return tool.Group(categoryParts, append([]tool.Flag{
		tool.Shared("part",
			"run only share `K/N` of the chunks, such as 3/16, and write the result to a file for --finish; "+
				part.AutoHelp),
		tool.Shared("finish", "run nothing: put the results of all parts together"),
	}, more...)...)
}

// nameFlag returns --part-files, for verbs whose output is not a file.
func nameFlag() tool.Flag {
	return tool.Shared("part-files",
		"parts are in the files or objects `OUT`.part-K-of-N, or in OUT if it is a directory, or ends in / in "+
			"s3://BUCKET/FOLDER/: goes with --part and --finish",
		"parts")
}

// On reports whether the process is one of several.
func (s *Shares) On() bool { return s.Finish || s.Part != part.Part{} }

// parseShares reads the flags of shareFlags.
func parseShares(cmd *cli.Command) (s Shares, err error) {
	s.Finish = cmd.Bool("finish")
	if cmd.IsSet("part") {
		if s.Part, err = part.Parse(cmd.String("part"), os.Getenv); err != nil {
			return s, fmt.Errorf("--part: %w", err)
		}
		if s.Finish {
			return s, fault.Errorf(fault.Usage,
				"--part and --finish: want one of them: --finish is for when all parts are there")
		}
	}
	return s, nil
}

// parseNamed is parseShares with nameFlag.
func parseNamed(cmd *cli.Command, html string) (s Shares, err error) {
	if s, err = parseShares(cmd); err != nil {
		return s, err
	}
	if s.Name, err = tool.FileValue(cmd, "part-files"); err != nil {
		return s, err
	}
	if bucket.Is(s.Name) {
		if s.Name, err = partObjects(s.Name, cmd.Name); err != nil {
			return s, err
		}
	} else if tool.MayRead(cmd) {
		if info, err := disk.Stat(s.Name); err == nil && info.IsDir() {
			s.Name = filepath.Join(s.Name, cmd.Name)
		}
	}
	switch {
	case s.On() && s.Name == "":
		return s, fault.Errorf(fault.Usage,
			"--part and --finish: no name for the files of parts: want --part-files OUT, for OUT.part-K-of-N")
	}
	return s, nil
}

// partObjects returns the name of a job whose parts are objects: in a folder, whose name ends in a slash, that of the verb.
func partObjects(name, verb string) (string, error) {
	n, err := bucket.Parse(name)
	if err != nil {
		return "", fmt.Errorf("--part-files: %w", err)
	}
	if n.Key == "" || strings.HasSuffix(n.Key, "/") {
		n = n.Folder()
		n.Key += verb
	}
	return n.String(), nil
}
