package main

import (
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"ggforge/arch"
	"ggforge/convert"
	"ggforge/fault"
	tool "ggforge/internal/cli"
)

// flags are those of the reference's converter under the same names, and some
// more.
func flags() []cli.Flag {
	list := []cli.Flag{
		&cli.StringFlag{Name: "outfile", Usage: "write to `FILE`, or into it if it is a directory; {ftype} stands for the output type"},
		&cli.StringFlag{Name: "outtype", Value: convert.Auto.String(), Usage: "store weights as `TYPE`: " + convert.OutTypeNames()},
		&cli.StringFlag{Name: "model-name", Usage: "call the model `NAME`"},
		&cli.StringFlag{Name: "pre", Usage: "call the pre-tokenizer of byte-level BPE `NAME`, whatever its check text says"},
		&cli.BoolFlag{Name: "embed-hf-tokenizer", Usage: "write the text of tokenizer.json into the file, too, as tokenizer.huggingface.json"},
		&cli.StringFlag{Name: "metadata", Usage: "take general.* keys from `FILE`, a JSON object, before all else"},
		&cli.BoolFlag{Name: "vocab-only", Usage: "write the metadata and the vocabulary, no tensors"},
		&cli.BoolFlag{Name: "bigendian", Usage: "write for big-endian machines"},
		&cli.UintFlag{Name: "split-max-tensors", Usage: "begin a new file after `N` tensors"},
		&cli.StringFlag{Name: "split-max-size", Usage: "begin a new file when tensors exceed `SIZE` bytes; K, M and G stand for thousands, millions, billions"},
		&cli.BoolFlag{Name: "no-tensor-first-split", Usage: "put no tensors into the first file of several"},
		&cli.BoolFlag{Name: "fuse-qkv", Usage: "make one tensor of query, key and value where the architecture knows it"},
		&cli.BoolFlag{Name: "fuse-gate-up-exps", Usage: "make one tensor of the gate and up projections of experts"},
		&cli.BoolFlag{Name: "mistral-format", Usage: "the checkpoint is in Mistral's own format: params.json, consolidated*.safetensors, tekken.json"},
		&cli.BoolFlag{Name: "sentence-transformers-dense-modules", Usage: "take the dense modules along that stand behind an embedding model"},
		&cli.BoolFlag{Name: "dry-run", Usage: "print what would become of each tensor and the names of the files; write nothing"},
		&cli.BoolFlag{Name: "verbose", Usage: "print what becomes of each tensor"},
		&cli.BoolFlag{Name: "print-supported-models", Usage: "list the Hugging Face classes that are converted and the GGUF architecture of each"},
		&cli.StringFlag{Name: "compat", Usage: "with `reference`: write what the reference's converter does also where that is broken (docs/deviations.md)"},
		tool.ThreadsFlag(),
		tool.ForceFlag(),
		tool.ProgressFlag(),
	}
	for _, name := range withoutEffect {
		list = append(list, &cli.BoolFlag{Name: name, Usage: "no effect; for scripts written for the reference's converter", Hidden: true})
	}
	for _, f := range notYet {
		if f.value {
			list = append(list, &cli.StringFlag{Name: f.name, Hidden: true})
		} else {
			list = append(list, &cli.BoolFlag{Name: f.name, Hidden: true})
		}
	}
	return list
}

// printModels lists the classes of the registry with their architectures.
func printModels(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, class := range arch.Classes() {
		a, err := arch.Lookup(class)
		if err != nil {
			return err
		}
		fmt.Fprintf(t, "%s\t%s\n", class, a.Name)
	}
	return t.Flush()
}

// withoutEffect are flags of the reference about how it works, which we do not
// need, or about templates of models that are converted the same without it.
var withoutEffect = []string{"use-temp-file", "no-lazy", "disable-mistral-community-chat-template"}

// notYet are flags of the reference that are refused by name.
var notYet = []struct {
	name  string
	value bool // it takes one
}{
	{name: "mtp"}, {name: "no-nextn"}, {name: "no-mtp"}, {name: "dspark"}, {name: "mmproj"}, {name: "remote"}, {name: "fp8-as-q8"},
	{"target-model-dir", true},
}

// refuse reports the first flag that is not supported yet.
func refuse(cmd *cli.Command) error {
	for _, f := range notYet {
		if cmd.IsSet(f.name) {
			return fault.Errorf(fault.Unsupported, "--%s is not supported yet", f.name)
		}
	}
	return nil
}

// options returns what the flags and arguments ask for; out is the output as the
// user names it, "" for the default.
func options(cmd *cli.Command, args []string) (opt convert.Options, out string, err error) {
	out = cmd.String("outfile")
	if len(args) == 2 {
		if out != "" {
			return opt, "", fault.Errorf(fault.Usage, "output named twice: %q and --outfile %q", args[1], out)
		}
		out = args[1]
	}
	opt = convert.Options{
		ModelName: cmd.String("model-name"),
		Pre:       cmd.String("pre"),
		Override:  cmd.String("metadata"),

		EmbedTokenizer: cmd.Bool("embed-hf-tokenizer"),
		VocabOnly:      cmd.Bool("vocab-only"),
		BigEndian:      cmd.Bool("bigendian"),
		FuseQKV:        cmd.Bool("fuse-qkv"),
		FuseGateUp:     cmd.Bool("fuse-gate-up-exps"),
		Dense:          cmd.Bool("sentence-transformers-dense-modules"),
		Reference:      cmd.String("compat") == "reference",
		Split:          convert.Split{MaxTensors: int64(cmd.Uint("split-max-tensors")), EmptyFirst: cmd.Bool("no-tensor-first-split")},
	}
	if c := cmd.String("compat"); c != "" && c != "reference" {
		return opt, "", fault.Errorf(fault.Usage, "--compat %q: want reference", c)
	}
	if opt.Type, err = convert.ParseOutType(cmd.String("outtype")); err != nil {
		return opt, "", err
	}
	if !cmd.IsSet("outtype") && len(args) == 2 {
		opt.Type, _ = convert.FromFileName(filepath.Base(out))
	}
	if s := cmd.String("split-max-size"); s != "" && s != "0" {
		if opt.Split.MaxBytes, err = tool.Size(cmd, "split-max-size"); err != nil {
			return opt, "", err
		}
	}
	if opt.VocabOnly && opt.Split != (convert.Split{}) {
		return opt, "", fault.Errorf(fault.Usage, "--vocab-only writes one file: it does not go with the flags that split")
	}
	return opt, out, nil
}
