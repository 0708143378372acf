package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v3"

	"ggforge/fault"
	tool "ggforge/internal/cli"
	"ggforge/verify"
	"ggforge/writer"
)

func verifyCommand() *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "list everything that is wrong with models",
		ArgsUsage: "FILE...",
		Description: "Each FILE is a GGUF file, or the first of the shards of a model. Looks at their structure, at\n" +
			"the numbers of every block, at the vocabulary, and at keys and dimensions of the\n" +
			"architecture. Exit code 3 if anything is wrong; notes are about what loaders take.\n\n" +
			"--sums compares the files with a list of SHA-256 sums as sha256sum writes it, too;\n" +
			"without FILE, those that the list names.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Examples: []string{"ggtool verify *.gguf", "ggtool verify --sums SHA256SUMS"},
			Result:   tool.Prints[verifyResult](),
		}.Metadata(),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "header-only", Usage: "do not read the tensors"},
			&cli.StringFlag{Name: "sums", Usage: "compare SHA-256 sums with the list in `FILE`"},
			tool.JSONFlag(),
			tool.ThreadsFlag(),
		},
		Action: verifyFiles,
	}
}

// verifyRequest is what the flags and arguments ask for.
type verifyRequest struct {
	Files []string
	Sums  string
	JSON  bool
	Look  verify.Options
}

// maxFiles is how many files can be named at once.
const maxFiles = 10000

func parseVerify(cmd *cli.Command) (r verifyRequest, err error) {
	if r.Sums, err = tool.File(cmd, "sums"); err != nil {
		return r, err
	}
	least := 1
	if r.Sums != "" {
		least = 0
	}
	r.Files, err = tool.Args(cmd, least, maxFiles)
	r.JSON, r.Look = cmd.Bool("json"), verify.Options{Workers: tool.Workers(cmd), Structure: cmd.Bool("header-only")}
	return r, err
}

// verifyResult is what --json prints.
type verifyResult struct {
	Files []verified `json:"files"`
}

// verified is what is said of one file.
type verified struct {
	File     string           `json:"file"`
	Whole    bool             `json:"whole"` // nothing is wrong
	Findings []verify.Finding `json:"findings"`
}

func verifyFiles(ctx context.Context, cmd *cli.Command) error {
	r, err := parseVerify(cmd)
	if err != nil {
		return err
	}
	sums := map[string]string{} // by cleaned path
	if r.Sums != "" {
		var names []string
		if sums, names, err = readSHA256(r.Sums); err != nil {
			return err
		}
		if len(r.Files) == 0 {
			r.Files = names
		}
	}
	w := tool.Output(ctx, cmd)
	var list []verified
	bad := 0
	for _, path := range r.Files {
		v := verified{File: path, Findings: []verify.Finding{}}
		if r.Sums == "" || strings.HasSuffix(path, ".gguf") {
			if err := writer.Unrecovered(path); err != nil {
				v.Findings = append(v.Findings, verify.Finding{Text: err.Error()})
			}
			found, err := verify.Model(ctx, path, r.Look)
			if err != nil {
				return err
			}
			v.Findings = append(v.Findings, found...)
		}
		if r.Sums != "" {
			text, err := compareSHA256(ctx, path, sums)
			if err != nil {
				return err
			}
			if text != "" {
				v.Findings = append(v.Findings, verify.Finding{Text: path + ": " + text})
			}
		}
		v.Whole = true
		for _, f := range v.Findings {
			v.Whole = v.Whole && f.Note
		}
		if !v.Whole {
			bad++
		}
		list = append(list, v)
		if r.JSON {
			continue
		}
		for _, f := range v.Findings {
			kind := "error"
			if f.Note {
				kind = "note"
			}
			fmt.Fprintf(w, "%s: %s\n", kind, f.Text)
		}
		if v.Whole {
			fmt.Fprintf(w, "%s: whole\n", path)
		}
	}
	if r.JSON {
		if err := tool.WriteJSON(w, verifyResult{list}); err != nil {
			return err
		}
	}
	if bad > 0 {
		return fault.Errorf(fault.Broken, "%d of %d files are broken", bad, len(list))
	}
	return nil
}

// readSHA256 reads a list of parseSHA256.
func readSHA256(path string) (sums map[string]string, names []string, err error) {
	data, err := side(path)
	if err != nil {
		return nil, nil, err
	}
	return parseSHA256(path, data)
}

// parseSHA256 reads a list as sha256sum writes it. Names are those of files next to the list.
func parseSHA256(path string, data []byte) (sums map[string]string, names []string, err error) {
	sums = map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, maxSide)
	for no := 1; lines.Scan(); no++ {
		line := strings.TrimRight(lines.Text(), "\r")
		if line == "" {
			continue
		}
		sum, name, ok := strings.Cut(line, " ")
		if raw, err := hex.DecodeString(sum); !ok || err != nil || len(raw) != sha256.Size || len(name) < 2 || name[0] != ' ' && name[0] != '*' {
			return nil, nil, fault.Errorf(fault.Broken, "%s, line %d: want a SHA-256 sum, two spaces and the name of a file", path, no)
		}
		full := filepath.Join(filepath.Dir(path), name[1:])
		sums[full] = strings.ToLower(sum)
		names = append(names, full)
	}
	if err := lines.Err(); err != nil {
		return nil, nil, err
	}
	if len(names) == 0 {
		return nil, nil, fault.Errorf(fault.Broken, "%s: no sum in it", path)
	}
	return sums, names, nil
}

// compareSHA256 says what is wrong with the sum of a file, "" for nothing.
func compareSHA256(ctx context.Context, path string, sums map[string]string) (string, error) {
	want, ok := sums[filepath.Clean(path)]
	if !ok {
		return "is not in the list of sums", nil
	}
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return "is missing", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	h, buf := sha256.New(), make([]byte, 1<<20)
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := f.Read(buf)
		h.Write(buf[:n])
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", err
		}
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		return fmt.Sprintf("SHA-256 is %s, want %s", got, want), nil
	}
	return "", nil
}
