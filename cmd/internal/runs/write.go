package runs

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/upload"
	"ggforge/fault"
	"ggforge/internal/io/part"
	"ggforge/writer"
)

// WriteFlags returns the flags about how a run writes: resumption, parts, verification, manifest.
func WriteFlags() []tool.Flag {
	return tool.Group("Resumption, parts and verification",
		tool.Flag{Name: "resume", Effect: tool.RunsOnly,
			Usage: "resume an interrupted run of the same command, if there is one; keep what is done if this one fails"},
		tool.Shared("part",
			"write only part `K/N` of N parts with equal work; "+part.AutoHelp+
				". The same command resumes an interrupted part"),
		tool.Shared("part-files",
			"keep parts in `DIR`, in files of their own, instead of in the output's temporary file: for machines "+
				"without a common file system"),
		tool.Shared("finish", "put the parts together: the same command with --finish instead of --part"),
		tool.Flag{Name: "verify", Effect: tool.RunsOnly, Refused: tool.InParts,
			Usage: "read the output back from the disk and compare it with checksums that were taken before it was " +
				"written; with --finish and --resume, compare the model with what was read of it, too"},
		tool.Shared("manifest",
			"write sizes and SHA-256 sums of all inputs, files and tensors to `FILE`, as JSON for ggtool reproduce, "+
				"when the output has its name"),
	)
}

// journalFacts returns the facts that the bytes of the outputs depend on besides the inputs: the program's version
// and the flags that are set. Files are named without folders, because their content is compared separately.
func journalFacts(cmd *cli.Command) []writer.Fact {
	facts := []writer.Fact{{Name: "version", Value: cmd.Name + " " + tool.Version}}
	for _, f := range tool.Declarations(cmd) {
		if !f.IsSet(cmd) || !f.Effect.Recorded() || f.Effect == tool.KeepsFile {
			continue
		}
		value := fmt.Sprint(cmd.Value(f.Name))
		if f.NamesFile() {
			var bases []string
			for _, v := range f.Values(cmd) {
				path, rest := f.SplitFile(v)
				bases = append(bases, filepath.Base(path)+rest)
			}
			value = fmt.Sprint(bases)
			if f.Value == tool.File {
				value = bases[0]
			}
		}
		facts = append(facts, writer.Fact{Name: "--" + f.Name, Value: value})
	}
	return facts
}

// writeOptions reads WriteFlags into opt.
func writeOptions(cmd *cli.Command, to *upload.Destination, opt *writer.Options) error {
	j := &writer.Journal{Facts: journalFacts(cmd), Resume: cmd.Bool("resume"), Finish: cmd.Bool("finish")}
	if cmd.IsSet("part") {
		p, err := part.Parse(cmd.String("part"), os.Getenv)
		if err != nil {
			return fmt.Errorf("--part: %w", err)
		}
		j.Part, j.Parts = p.K, p.N
	}
	var err error
	if j.PartDir, err = tool.FileValue(cmd, "part-files"); err != nil {
		return err
	}
	if j.Store = to.Store(); j.Store != nil {
		opt.Force, opt.MakeDir = cmd.Bool("force"), ""
	}
	opt.Journal, opt.Verify = j, cmd.Bool("verify")
	if j.Finish && j.Part > 0 {
		return fault.Errorf(fault.Usage, "--part and --finish: want one of them")
	}
	return nil
}

// WrittenPart is the result of a run that writes a part, for --json.
type WrittenPart struct {
	Part  int   `json:"part"` // from 1
	Parts int   `json:"parts"`
	Bytes int64 `json:"bytes"` // bytes of tensors in it
}

// WrittenPartOf returns the part of an output that a run has written, nil for a run that does not write a part.
func WrittenPartOf(opt *writer.Options, r *writer.Result) *WrittenPart {
	j := opt.Journal
	if j == nil || j.Part == 0 || r == nil {
		return nil
	}
	return &WrittenPart{j.Part, j.Parts, r.DataBytes}
}

// Text describes a finished part of the output with that name.
func (p *WrittenPart) Text(name string) string {
	return fmt.Sprintf("%s: part %d of %d is done, %s", name, p.Part, p.Parts, tool.Bytes(p.Bytes))
}
