package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/fault"
	"ggforge/model/digest"
	"ggforge/publish/manifest"
	"ggforge/publish/release"
	"ggforge/publish/verify"
	"ggforge/writer"
)

func verifyCommand() *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "list all defects of models",
		ArgsUsage: "FILE..., or a signed folder",
		Description: "Each FILE is a GGUF file, or the first shard of a model. Checks the structure, the\n" +
			"numbers of every block, the vocabulary, and keys and tensors of the architecture.\n" +
			"Exit code 3 if there are defects; notes are about deviations that loaders may accept.\n\n" +
			"--templates compares the chat templates with those of MODEL, the model that the files were\n" +
			"made of: a checkpoint directory, a GGUF file, or one of them on a server (hf://ORG/NAME).\n" +
			"Both have to make the same texts of a fixed set of conversations.\n\n" +
			"--sums also compares the files with a list of SHA-256 sums as sha256sum writes it,\n" +
			"--manifest with sizes and sums in the manifest of a release, or of a run of ggconv or\n" +
			"ggquant; without FILE, the listed files, next to the list.\n\n" +
			"With --public-key or --certificates, FILE is a folder with a signature, model.sig (see\n" +
			"ggtool sign): every file has to be as it was signed, none may be missing or added, and\n" +
			"provenance.sigstore.json is verified, too. With --signature the folder is that of the\n" +
			"signature, or FILEs are some of its files. Exit code 5 for another key or certificate.\n\n" +
			tool.ExitHelp,
		Metadata: tool.About{
			Elsewhere: []string{"check", "validate", "lint"},
			Examples: []string{"ggtool verify *.gguf", "ggtool verify --sums SHA256SUMS",
				"ggtool verify --manifest manifest.json", "ggtool verify --public-key key.pub.pem out"},
			Result: tool.Prints[verifyResult](),
		}.Metadata(),
		Flags: tool.Flags(
			tool.Flag{Name: "header-only", Effect: tool.RunsOnly,
				Usage: "do not read the tensors"},
			tool.Flag{Name: "templates", Value: tool.Text, Effect: tool.AsksServer,
				Usage: "compare the chat templates with those of the model `MODEL`"},
			tool.Flag{Name: "sums", Value: tool.File, Effect: tool.ReadsFile,
				Usage: "compare SHA-256 sums with the list in `FILE`"},
			tool.Shared("manifest", "compare sizes and sums with the manifest of a release or a run, `FILE`").As(
				tool.ReadsFile),
			tool.Flag{Name: "public-key", Value: tool.File, Effect: tool.ReadsFile,
				Usage: "verify a signature made with the private key that belongs to the one in `FILE`"},
			tool.Flag{Name: "certificates", Value: tool.File, Effect: tool.ReadsFile,
				Usage: "verify a signature whose certificate leads to one of the root certificates in `FILE`"},
			tool.Flag{Name: "signature", Value: tool.File, Effect: tool.ReadsFile,
				With:  []string{"public-key", "certificates"},
				Usage: "the signature is `FILE`, and signs the folder that it is in"},
			tool.JSONFlag(),
			tool.ThreadsFlag(),
		),
		Action: verifyFiles,
	}
}

// verifyRequest has the flags and arguments.
type verifyRequest struct {
	Files     []string
	Templates string // the model of --templates
	Sums      string
	Manifest  string
	JSON      bool
	Look      verify.Options
	// the public key or the roots with which a signature is verified, and its file
	PublicKey, Certificates, Signature string
}

// verifiesSignature reports whether a signature is to be verified.
func (r *verifyRequest) verifiesSignature() bool { return r.PublicKey != "" || r.Certificates != "" }

// maxFiles is the largest number of files to verify at once.
const maxFiles = 10000

func parseVerify(cmd *cli.Command) (r verifyRequest, err error) {
	if r.Sums, err = tool.FileValue(cmd, "sums"); err != nil {
		return r, err
	}
	if r.Manifest, err = tool.FileValue(cmd, "manifest"); err != nil {
		return r, err
	}
	for flag, to := range map[string]*string{"public-key": &r.PublicKey, "certificates": &r.Certificates,
		"signature": &r.Signature} {
		if *to, err = tool.FileValue(cmd, flag); err != nil {
			return r, err
		}
	}
	lists := 0
	for _, name := range []string{r.Sums, r.Manifest, r.PublicKey, r.Certificates} {
		if name != "" {
			lists++
		}
	}
	if lists > 1 {
		return r, fault.Errorf(fault.Usage, "--sums, --manifest, --public-key and --certificates: want one of them")
	}
	least := 1
	if r.Sums != "" || r.Manifest != "" || r.Signature != "" {
		least = 0
	}
	if r.Templates, err = runs.InputPath(cmd, cmd.String("templates")); err != nil {
		return r, err
	}
	args, err := tool.Args(cmd, least, maxFiles)
	if err != nil {
		return r, err
	}
	r.Files, err = runs.InputPaths(cmd, args)
	r.JSON, r.Look = cmd.Bool("json"), verify.Options{Workers: tool.Workers(cmd), Structure: cmd.Bool("header-only")}
	return r, err
}

// verifyResult is the JSON output.
type verifyResult struct {
	Files      []verified       `json:"files"`
	Signatures []verifiedSigned `json:"signatures,omitempty"` // those that were verified
}

// verified is the result for one file.
type verified struct {
	File     string           `json:"file"`
	Whole    bool             `json:"whole"` // there are no defects
	Findings []verify.Finding `json:"findings"`
}

func verifyFiles(ctx context.Context, cmd *cli.Command) error {
	r, err := parseVerify(cmd)
	if err != nil {
		return err
	}
	var want *wanted
	var signatures []verifiedSigned
	switch {
	case r.Sums != "":
		want, err = readSHA256(r.Sums)
	case r.Manifest != "":
		want, err = readManifest(r.Manifest)
	case r.verifiesSignature():
		want, signatures, err = compareSigned(ctx, &r)
	}
	if err != nil {
		return err
	}
	if len(r.Files) == 0 {
		r.Files = want.names
	}
	if r.Templates != "" {
		if r.Look.Source, err = chatTemplates(ctx, r.Templates, false); err != nil {
			return err
		}
	}
	w := tool.Output(ctx, cmd)
	if !r.JSON {
		for _, s := range signatures {
			fmt.Fprintf(w, "%s\n", s.line())
		}
	}
	var list []verified
	bad := 0
	for _, path := range r.Files {
		v := verified{File: path, Findings: []verify.Finding{}}
		text, exists := "", true
		if want != nil {
			if text, exists, err = want.compare(ctx, path); err != nil {
				return err
			}
		}
		if exists && (want == nil || strings.HasSuffix(path, ".gguf")) {
			if err := writer.Unrecovered(path); err != nil {
				v.Findings = append(v.Findings, verify.Finding{Text: err.Error()})
			}
			found, err := verify.Model(ctx, path, r.Look)
			if err != nil {
				return err
			}
			v.Findings = append(v.Findings, found...)
		}
		if text != "" {
			v.Findings = append(v.Findings, verify.Finding{Text: path + ": " + text})
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
		if err := tool.WriteJSON(w, verifyResult{list, signatures}); err != nil {
			return err
		}
	}
	if bad > 0 {
		return fault.Errorf(fault.Broken, "%d of %d files are broken", bad, len(list))
	}
	return nil
}

// wanted holds the expected files of a list.
type wanted struct {
	list  string            // its name in findings
	dir   string            // its folder
	names []string          // paths of the files, joined with dir
	sums  map[string]string // SHA-256 by such a path
	sizes map[string]int64  // in bytes, if the list has them
	// found has the defects by path, if the files were compared with a signature; nil otherwise.
	found map[string]string
	// anywhere is true if the list has names without folders, whose files may be elsewhere.
	anywhere bool
}

// readManifest reads the manifest of a release, whose files are next to it, or of a run.
func readManifest(path string) (*wanted, error) {
	want := &wanted{list: "manifest", dir: filepath.Dir(path), sums: map[string]string{}, sizes: map[string]int64{}}
	var files []digest.File
	m, err := release.ReadManifest(path)
	if errors.Is(err, fault.Unsupported) { // the file is in another format
		var run *manifest.Manifest
		if run, err = manifest.Read(path); err == nil {
			want.anywhere = true
			for _, f := range run.Files {
				files = append(files, f.File)
			}
		}
	} else if err == nil {
		for _, f := range m.Files {
			files = append(files, f.File)
		}
	}
	if err != nil {
		return nil, err
	}
	if len(files) > maxFiles {
		return nil, fault.Errorf(fault.Usage, "%s: names more than %d files: compare them with several lists", path,
			maxFiles)
	}
	for _, f := range files {
		full := filepath.Join(want.dir, filepath.FromSlash(f.Name))
		want.names = append(want.names, full)
		want.sums[full], want.sizes[full] = f.SHA256, f.Bytes
	}
	return want, nil
}

// readSHA256 reads a list of sums from a file.
func readSHA256(path string) (*wanted, error) {
	data, err := side(path)
	if err != nil {
		return nil, err
	}
	sums, names, err := digest.ParseSums(path, data, maxFiles)
	return &wanted{list: "list of sums", dir: filepath.Dir(path), names: names, sums: sums}, err
}

// compare returns the defect of a file, "" for none, and whether it exists. A file of the wrong size is not hashed.
func (w *wanted) compare(ctx context.Context, path string) (text string, exists bool, err error) {
	if w.found != nil {
		return w.found[path], w.found[path] == "", nil // a file that is not as it was signed is not looked at further
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) { // ENOTDIR: a parent of the path is a file
		return "is missing", false, nil
	}
	if err != nil {
		return "", false, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait
		return "is not a file", false, nil
	}
	key, err := w.key(path)
	if err != nil {
		return "", true, err
	}
	want, ok := w.sums[key]
	if !ok && w.anywhere {
		key = filepath.Join(w.dir, filepath.Base(path))
		want, ok = w.sums[key]
	}
	if !ok {
		return "is not in the " + w.list, true, nil
	}
	if size, ok := w.sizes[key]; ok && size != info.Size() {
		return fmt.Sprintf("has %d bytes, want %d", info.Size(), size), true, nil
	}
	got, err := digest.OfFile(ctx, path)
	if err == nil && got.SHA256 != want {
		text = fmt.Sprintf("SHA-256 is %s, want %s", got.SHA256, want)
	}
	return text, true, err
}

// key returns the key of sums and sizes for the file at path. Of path and dir, one may be relative and the other
// absolute.
func (w *wanted) key(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	dir, err := filepath.Abs(w.dir)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(dir, path)
	if err != nil {
		return path, nil // on another drive
	}
	return filepath.Join(w.dir, rel), nil
}
