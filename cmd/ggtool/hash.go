package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/fault"
	"ggforge/model/digest"
)

func hashCommand() *cli.Command {
	return &cli.Command{
		Name:      "hash",
		Usage:     "hash a model's tensors, without metadata",
		ArgsUsage: "FILE",
		Description: "FILE is a GGUF file, or the first shard of a model, which has the hashes of\n" +
			"the merged file. Lists a hash for each tensor and, at the end, for all together, as\n" +
			"llama.cpp's gguf-hash does: KIND HASH FILE:TENSOR. xxh64 unless a flag names another.\n\n" +
			"--check compares with such a list, of any kinds; exit code 6 if a hash differs.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Elsewhere: []string{"sha256", "sha256sum", "checksum"},
			Examples: []string{"ggtool hash --sha256 model.gguf > model.hashes",
				"ggtool hash --check model.hashes model.gguf"},
			Result: tool.Prints[hashResult](),
		}.Metadata(),
		Flags: tool.Flags(
			tool.Flag{Name: "xxh64", Effect: tool.SetsBytes,
				Usage: "XXH64: fast, not safe from forgery"},
			tool.Flag{Name: "sha1", Effect: tool.SetsBytes,
				Usage: "SHA-1"},
			tool.Flag{Name: "sha256", Effect: tool.SetsBytes,
				Usage: "SHA-256"},
			tool.Flag{Name: "uuid", Effect: tool.SetsBytes,
				Usage: "UUID version 5, of all tensors together"},
			tool.Flag{Name: "all", Effect: tool.SetsBytes,
				Usage: "all kinds"},
			tool.Flag{Name: "no-layer", Effect: tool.SetsBytes,
				Usage: "only the hash of all tensors together"},
			tool.Flag{Name: "check", Value: tool.File, Effect: tool.ReadsFile,
				Usage: "compare with the list in `FILE`"},
			tool.JSONFlag(),
			aloneFlag(),
		),
		Action: hashes,
	}
}

// hashRequest has the flags and arguments.
type hashRequest struct {
	File               string
	Kinds              []digest.Kind
	Whole, JSON, Alone bool
	Check              string
}

// hashResult is the JSON output: Lines and Right with --check, Hashes without.
type hashResult struct {
	File   string       `json:"file"`
	Hashes []digest.Sum `json:"hashes,omitempty"`
	Lines  []string     `json:"differences,omitempty"`
	Right  *bool        `json:"right,omitempty"`
}

func parseHash(cmd *cli.Command) (r hashRequest, err error) {
	args, err := tool.Args(cmd, 1, 1)
	if err != nil {
		return r, err
	}
	if args, err = runs.InputPaths(cmd, args); err != nil {
		return r, err
	}
	r = hashRequest{File: args[0], Whole: cmd.Bool("no-layer"), JSON: cmd.Bool("json"), Alone: cmd.Bool("alone")}
	for _, k := range digest.Kinds {
		if cmd.Bool(string(k)) || cmd.Bool("all") {
			r.Kinds = append(r.Kinds, k)
		}
	}
	if r.Check, err = tool.FileValue(cmd, "check"); err != nil {
		return r, err
	}
	if r.Check != "" && len(r.Kinds) > 0 {
		return r, fault.Errorf(fault.Usage, "--check: the list names the kinds of hashes: want no flags for them")
	}
	if len(r.Kinds) == 0 {
		r.Kinds = []digest.Kind{digest.XXH64}
	}
	return r, nil
}

func hashes(ctx context.Context, cmd *cli.Command) error {
	r, err := parseHash(cmd)
	if err != nil {
		return err
	}
	var listed []digest.Sum
	if r.Check != "" {
		if listed, r.Kinds, err = readSums(r.Check); err != nil {
			return err
		}
		if r.Whole {
			listed = slices.DeleteFunc(listed, func(s digest.Sum) bool { return s.Tensor != "" })
			if len(listed) == 0 {
				return fault.Errorf(fault.Usage,
					"%s: all hashes in it are of single tensors: --no-layer leaves none to check", r.Check)
			}
		}
	}
	set, err := open(r.File, r.Alone)
	if err != nil {
		return err
	}
	defer set.Close()
	sums, err := digest.Of(ctx, set, r.Kinds, !r.Whole)
	if err != nil {
		return err
	}
	if err := set.Unchanged(); err != nil {
		return err
	}
	w := tool.Output(ctx, cmd)
	if r.Check != "" {
		lines, wrong := compareSums(listed, sums)
		if r.JSON {
			right := !wrong
			if err := tool.WriteJSON(w, hashResult{File: r.File, Lines: lines[:len(lines)-1],
				Right: &right}); err != nil {
				return err
			}
			lines = nil
		}
		for _, line := range lines {
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
		if wrong {
			return tool.ErrDiffers
		}
		return nil
	}
	if r.JSON {
		return tool.WriteJSON(w, hashResult{File: r.File, Hashes: sums})
	}
	for _, s := range sums {
		name := r.File
		if s.Tensor != "" {
			name += ":" + s.Tensor
		}
		if _, err := fmt.Fprintf(w, "%-8s  %s  %s\n", s.Kind, s.Hash, name); err != nil {
			return err
		}
	}
	return nil
}

// readSums reads a list of hashes from a file.
func readSums(path string) ([]digest.Sum, []digest.Kind, error) {
	data, err := side(path)
	if err != nil {
		return nil, nil, err
	}
	return parseSums(path, data)
}

// parseSums reads a list of hashes, one KIND HASH FILE:TENSOR or KIND HASH FILE in a line. The file may have been
// renamed since: its name only shows where the tensor's name begins.
func parseSums(path string, data []byte) (sums []digest.Sum, kinds []digest.Kind, err error) {
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, maxSide)
	for no := 1; lines.Scan(); no++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		fields := strings.SplitN(strings.Join(strings.Fields(lines.Text()), " "), " ", 3)
		if len(fields) < 3 || !slices.Contains(digest.Kinds, digest.Kind(fields[0])) {
			return nil, nil, fault.Errorf(fault.Broken, "%s, line %d: want KIND HASH FILE:TENSOR with a kind of %v",
				path, no, digest.Kinds)
		}
		s := digest.Sum{Kind: digest.Kind(fields[0]), Hash: strings.ToLower(fields[1])}
		if i := strings.LastIndex(fields[2], ".gguf:"); i >= 0 {
			s.Tensor = fields[2][i+len(".gguf:"):]
		} else if !strings.HasSuffix(fields[2], ".gguf") {
			if i := strings.LastIndexByte(fields[2], ':'); i >= 0 {
				s.Tensor = fields[2][i+1:]
			}
		}
		sums = append(sums, s)
		if !slices.Contains(kinds, s.Kind) {
			kinds = append(kinds, s.Kind)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, nil, err
	}
	if len(sums) == 0 {
		return nil, nil, fault.Errorf(fault.Broken, "%s: has no hash", path)
	}
	return sums, kinds, nil
}

// compareSums lists the differences: changed hashes, and missing or new tensors. The last line counts the right
// hashes.
func compareSums(want, got []digest.Sum) (lines []string, wrong bool) {
	type place struct {
		kind   digest.Kind
		tensor string
	}
	name := func(p place) string {
		if p.tensor == "" {
			return "all tensors"
		}
		return "tensor " + p.tensor
	}
	found, seen := map[place]string{}, map[place]bool{}
	for _, s := range got {
		found[place{s.Kind, s.Tensor}] = s.Hash
	}
	right, layers := 0, false
	for _, s := range want {
		p := place{s.Kind, s.Tensor}
		layers = layers || s.Tensor != ""
		switch hash, ok := found[p]; {
		case !ok:
			lines = append(lines, fmt.Sprintf("%s: %s is not there", p.kind, name(p)))
		case hash != s.Hash:
			lines = append(lines, fmt.Sprintf("%s: %s is %s, want %s", p.kind, name(p), hash, s.Hash))
		default:
			right++
		}
		seen[p] = true
	}
	for _, s := range got {
		if p := (place{s.Kind, s.Tensor}); layers && s.Tensor != "" && !seen[p] {
			lines = append(lines, fmt.Sprintf("%s: %s is not in the list", p.kind, name(p)))
		}
	}
	wrong = len(lines) > 0
	return append(lines, fmt.Sprintf("%d of %d hashes are right", right, len(want))), wrong
}
