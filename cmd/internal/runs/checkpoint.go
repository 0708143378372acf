package runs

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"ggforge/arch"
	"ggforge/arch/config"
	"ggforge/checkpoint"
	tool "ggforge/cmd/internal/cli"
	"ggforge/convert"
	"ggforge/fault"
)

// Category is what the flags are listed under in a command's help.
const checkpointCategory = tool.CategoryCheckpoint

// Flags returns the flags of Options.
func CheckpointFlags() []cli.Flag {
	list := []cli.Flag{
		tool.OneOf(&cli.StringFlag{Name: "arch",
			Usage: "take the model as one of `CLASS`, a class of transformers, whatever config.json says"},
			arch.Classes).As(tool.SetsBytes),
		tool.Shared("model-name", "call the model `NAME`").As(tool.SetsBytes),
		tool.As(tool.ReadsFile, &cli.StringFlag{Name: "metadata",
			Usage: "take general.* keys from `FILE`, a JSON object, before all else"}),
		tool.As(tool.SetsBytes, &cli.StringFlag{Name: "pre",
			Usage: "call the pre-tokenizer of byte-level BPE `NAME`, whatever its check text says"}),
		tool.As(tool.SetsBytes, &cli.BoolFlag{Name: "embed-hf-tokenizer",
			Usage: "write the text of tokenizer.json into the file, too, as tokenizer.huggingface.json"}),
		tool.As(tool.SetsBytes, &cli.BoolFlag{Name: "fuse-qkv",
			Usage: "make one tensor of query, key and value where the architecture knows it"}),
		tool.As(tool.SetsBytes, &cli.BoolFlag{Name: "fuse-gate-up-exps",
			Usage: "make one tensor of the gate and up projections of experts"}),
		tool.As(tool.SetsBytes, &cli.BoolFlag{Name: "fp8-as-q8",
			Usage: "write the matrices that are stored in FP8 as Q8_0, whatever the output type"}),
		tool.As(tool.SetsBytes, &cli.BoolFlag{Name: "mistral-format",
			Usage: "the checkpoint is in Mistral's own format: params.json, consolidated*.safetensors, tekken.json"}),
		tool.As(tool.SetsBytes, &cli.BoolFlag{Name: "sentence-transformers-dense-modules",
			Usage: "include the dense modules that follow an embedding model"}),
		tool.As(tool.SetsBytes, &cli.BoolFlag{Name: "mtp",
			Usage: "convert only the layers that predict further tokens, to a file of drafts: with a directory as " +
				"output, mtp-NAME.gguf"}),
		tool.As(tool.SetsBytes, &cli.BoolFlag{Name: "no-nextn", Aliases: []string{"no-mtp"},
			Usage: "leave out the layers that predict further tokens"}),
		tool.As(tool.SetsBytes, &cli.BoolFlag{Name: "dspark",
			Usage: "convert only the drafts of blocks of tokens (DSpark) that a DeepSeek V4 has next to it; wants " +
				"--target-model-dir, which may be the same directory"}),
		tool.As(tool.SetsBytes, &cli.BoolFlag{Name: "mmproj",
			Usage: "convert the part of the model that sees or hears instead of the language model: with a directory " +
				"as output, mmproj-NAME.gguf"}),
		tool.As(tool.ReadsFile, &cli.StringFlag{Name: "target-model-dir",
			Usage: "the model that a draft (EAGLE-3, DFlash, DSpark) is for is in `DIR`: the draft gets its tokenizer"}),
		tool.As(tool.RunsOnly, &cli.BoolFlag{Name: "remote",
			Usage: "the checkpoint is a model of the Hugging Face hub, ORG/NAME or ORG/NAME@REVISION: the same as " +
				"hf://ORG/NAME; HF_ENDPOINT and HF_TOKEN count. A checkpoint may also be s3://BUCKET/FOLDER"}),
		tool.Shared("cache", "keep what comes of a remote checkpoint's weights in `DIR`: a later run goes on there").As(
			tool.WritesFile),
		tool.As(tool.ReadsFile, &cli.StringSliceFlag{Name: "merge-lora",
			Usage: "add the LoRA adapter in a directory to the weights, SCALE times (1): `ADAPTER[:SCALE]`; repeatable"}),
		OutsideLinksFlag(),
	}
	for _, name := range withoutEffect {
		list = append(list, tool.As(tool.RunsOnly,
			&cli.BoolFlag{Name: name, Usage: "no effect; for scripts written for the reference's converter",
				Hidden: true}))
	}
	return tool.Group(checkpointCategory, list...)
}

// OutsideLinks is the flag that permits links out of a checkpoint.
func OutsideLinksFlag() cli.Flag {
	return tool.As(tool.Permits, &cli.BoolFlag{Name: "outside-links", Category: checkpointCategory,
		Usage: "follow links that lead out of the checkpoint's directory, of which the output would show the content"})
}

// withoutEffect are flags of the reference about how it works, which we do not
// need, or about templates of models that are converted the same without it.
var withoutEffect = []string{"use-temp-file", "no-lazy", "disable-mistral-community-chat-template"}

// Options returns what the flags ask for, and what --compat does.
func ConvertOptions(cmd *cli.Command) (opt convert.Options, err error) {
	opt = convert.Options{
		Class:     cmd.String("arch"),
		ModelName: cmd.String("model-name"),
		Pre:       cmd.String("pre"),

		EmbedTokenizer: cmd.Bool("embed-hf-tokenizer"),
		FuseQKV:        cmd.Bool("fuse-qkv"),
		FuseGateUp:     cmd.Bool("fuse-gate-up-exps"),
		Dense:          cmd.Bool("sentence-transformers-dense-modules"),
		Float8AsQ8:     cmd.Bool("fp8-as-q8"),
		DSpark:         cmd.Bool("dspark"),
		Tower:          cmd.Bool("mmproj"),
		Mistral:        cmd.Bool("mistral-format"),
		OutsideLinks:   cmd.Bool("outside-links"),
		Remote:         tool.Remote(),
	}
	mtp, without := cmd.Bool("mtp"), cmd.Bool("no-nextn")
	switch {
	case opt.DSpark && (mtp || without):
		return opt, fault.Errorf(fault.Usage,
			"--dspark converts the drafts of blocks of tokens alone: want it without --mtp and --no-nextn")
	case mtp && without:
		return opt, fault.Errorf(fault.Usage, "--mtp converts only what --no-nextn leaves out: want one of them")
	case mtp:
		opt.NextN = config.OnlyNextN
	case without:
		opt.NextN = config.NoNextN
	}
	for _, s := range cmd.StringSlice("merge-lora") {
		m, err := parseMerge(s)
		if err != nil {
			return opt, err
		}
		opt.Merge = append(opt.Merge, m)
	}
	if opt.Override, err = tool.File(cmd, "metadata"); err != nil {
		return opt, err
	}
	if opt.Target, err = tool.File(cmd, "target-model-dir"); err != nil {
		return opt, err
	}
	if opt.Remote.Cache, err = tool.File(cmd, "cache"); err != nil {
		return opt, err
	}
	opt.Reference, err = tool.Reference(cmd)
	return opt, err
}

// parseMerge parses ADAPTER or ADAPTER:SCALE; what follows the last colon is a scale
// if it is a number.
func parseMerge(s string) (convert.Merge, error) {
	m := convert.Merge{Dir: s, Scale: 1}
	if i := strings.LastIndexByte(s, ':'); i >= 0 {
		scale, err := strconv.ParseFloat(s[i+1:], 64)
		if err == nil {
			m = convert.Merge{Dir: s[:i], Scale: scale}
		}
	}
	if m.Dir == "" || math.IsNaN(m.Scale) || math.IsInf(m.Scale, 0) {
		return m, fault.Errorf(fault.Usage,
			"--merge-lora %q: want the directory of an adapter, or that, a colon and a number", s)
	}
	return m, nil
}

// HubCache returns the folder in which the library of the Hugging Face hub keeps
// models, by the variables that it reads. Source: huggingface_hub, constants.py.
func hubCache() string {
	if dir := os.Getenv("HF_HUB_CACHE"); dir != "" {
		return dir
	}
	home := os.Getenv("HF_HOME")
	if home == "" {
		cache := os.Getenv("XDG_CACHE_HOME")
		if user, err := os.UserHomeDir(); cache == "" && err == nil {
			cache = filepath.Join(user, ".cache")
		}
		home = filepath.Join(cache, "huggingface")
	}
	return filepath.Join(home, "hub")
}

// Input returns the checkpoint that an argument names.
func InputPath(cmd *cli.Command, arg string) string {
	if cmd.Bool("remote") {
		return checkpoint.HubAddress(arg)
	}
	return arg
}

// Set returns the first of the flags that the user has given, but for some, "" for none: input
// that is not a checkpoint has no use for them.
func setCheckpointFlag(cmd *cli.Command, but ...string) string {
	for _, f := range CheckpointFlags() {
		if name := f.Names()[0]; cmd.IsSet(name) && !slices.Contains(but, name) {
			return name
		}
	}
	return ""
}
