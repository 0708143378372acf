package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/model/digest"
	"ggforge/publish/release"
	"ggforge/publish/sign"
	"ggforge/writer"
)

func signCommand() *cli.Command {
	return &cli.Command{
		Name:      "sign",
		Usage:     "sign a folder in the format of OpenSSF Model Signing",
		ArgsUsage: "DIR",
		Description: "Writes DIR/model.sig: the names and SHA-256 sums of all files, signed. Sums that a\n" +
			"release has taken are not taken again. README.md, which is edited on the hub, is not\n" +
			"signed, nor are hidden files, temporary files and journals, which ggtool push leaves out.\n" +
			"The folder must be what its SHA256SUMS and manifest.json have; links are refused.\n\n" +
			"The key is EC, on P-256, P-384 or P-521, in PEM (PKCS #8 or SEC 1), not encrypted:\n" +
			"openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem makes one,\n" +
			"openssl pkey -in key.pem -pubout its public key. The same key and the same files give\n" +
			"the same signature. ggtool verify --public-key and other tools for the format verify it:\n" +
			"docs/publishing.md has more.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Elsewhere: []string{"attest"},
			Examples: []string{
				"ggtool sign --key key.pem out",
				"ggtool sign --key env://SIGNING_KEY --certificate chain.pem out",
			},
			Result: tool.Prints[signResult](),
		}.Metadata(),
		Flags: tool.Flags(
			required(keyFlag()),
			certificateFlag(),
			tool.Shared("output", "write to `FILE` instead of DIR/model.sig").In(tool.CategoryOutput),
			tool.ForceFlag(), tool.JSONFlag(), tool.ThreadsFlag(), tool.ProgressFlag(),
		),
		Action: signFolder,
	}
}

// keyFlag names the private key, for sign and release.
func keyFlag() tool.Flag {
	return tool.Shared("key", "sign with the private key in `FILE`, or in the environment variable NAME: env://NAME")
}

// certificateFlag names the certificates of the private key.
func certificateFlag() tool.Flag {
	return tool.Shared("certificate", "name the key's certificate in the signature, and those of its issuers, in this "+
		"order in `FILE`")
}

// required returns a flag that has to be set.
func required(f tool.Flag) tool.Flag {
	f.Required = true
	return f
}

// signRequest has the flags and arguments.
type signRequest struct {
	Dir, Out         string
	Key, Certificate string
	JSON             bool
	Write            writer.Options
	Read             sign.Options
}

func parseSign(cmd *cli.Command) (r signRequest, err error) {
	args, err := tool.Args(cmd, 1, 1)
	if err != nil {
		return r, err
	}
	r = signRequest{Dir: args[0], Key: cmd.String("key"), JSON: cmd.Bool("json"),
		Write: writer.Options{Force: cmd.Bool("force")}, Read: sign.Options{Workers: tool.Workers(cmd)}}
	if r.Certificate, err = tool.FileValue(cmd, "certificate"); err != nil {
		return r, err
	}
	if r.Out, err = tool.FileValue(cmd, "output"); err != nil {
		return r, err
	}
	if r.Out == "" {
		r.Out = filepath.Join(r.Dir, sign.ModelName)
	}
	for _, path := range []string{r.Key, r.Certificate} {
		if path != "" && !sign.IsVariable(path) {
			r.Write.Inputs = append(r.Write.Inputs, path)
		}
	}
	r.Read.Progress, err = readProgress(cmd)
	return r, err
}

// readProgress returns the callback that --progress asks for, nil for none.
func readProgress(cmd *cli.Command) (func(done, total int64), error) {
	show, err := tool.NewWork(cmd)
	if show == nil || err != nil {
		return nil, err
	}
	var one sync.Mutex
	return func(done, total int64) {
		one.Lock()
		defer one.Unlock()
		show(tool.Work{Done: float64(done) / float64(max(1, total)),
			Note: fmt.Sprintf("%s of %s read", tool.Bytes(done), tool.Bytes(total))})
	}, nil
}

// signResult is the JSON output.
type signResult struct {
	Signature string        `json:"signature"` // the file
	KeySHA256 string        `json:"key_sha256"`
	Files     []digest.File `json:"files"`
	Unsigned  []string      `json:"unsigned"` // files and folders that the signature leaves out if they are there
}

// checkLists compares a folder, whose files to sign are known, with its lists: these may have others, too.
func checkLists(ctx context.Context, dir string, files []digest.File) error {
	byName := map[string]*digest.File{}
	for i := range files {
		byName[files[i].Name] = &files[i]
	}
	return release.CheckLists(dir, func(name string) *digest.File {
		if f := byName[name]; f != nil {
			return f
		}
		f, err := digest.OfFile(ctx, filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return nil
		}
		return &f
	})
}

func signFolder(ctx context.Context, cmd *cli.Command) error {
	r, err := parseSign(cmd)
	if err != nil {
		return err
	}
	if err := release.CheckKey(r.Dir, r.Key); err != nil {
		return err
	}
	signer, err := sign.ReadSigner(r.Key, r.Certificate)
	if err != nil {
		return err
	}
	recorded, err := release.CheckFinished(r.Dir)
	if err != nil {
		return err
	}
	if err := writer.Writable(r.Out, r.Write); err != nil {
		return err
	}
	ignored := slices.Clone(release.Unsigned)
	if own, inside, err := sign.Inside(r.Dir, r.Out); err != nil {
		return err
	} else if inside {
		ignored = append(ignored, own)
	}
	r.Read.Private = release.Private
	r.Read.Sum = func(_ context.Context, name string) (string, error) { return recorded.Find(name) }
	statement, files, out, err := sign.Folder(ctx, r.Dir, ignored, r.Read)
	if err != nil {
		return err
	}
	if err := checkLists(ctx, r.Dir, files); err != nil {
		return err
	}
	data, err := signer.Sign(statement)
	if err != nil {
		return err
	}
	if err := writer.WriteBytes(ctx, r.Out, data, r.Write); err != nil {
		return err
	}
	slices.Sort(out)
	result := signResult{r.Out, signer.KeySHA256, files, slices.Compact(out)}
	if r.JSON {
		return tool.WriteJSON(tool.Output(ctx, cmd), result)
	}
	for _, name := range result.Unsigned {
		if !slices.Contains(ignored, name) {
			tool.Note(cmd, "not signed: "+name)
		}
	}
	_, err = fmt.Fprintf(tool.InfoWriter(cmd), "%s: %d files signed; SHA-256 of the public key: %s\n", r.Out, len(files),
		result.KeySHA256)
	return err
}
