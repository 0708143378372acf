package runs

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"ggforge/arch"
	"ggforge/arch/config"
	"ggforge/checkpoint"
	"ggforge/checkpoint/installed"
	tool "ggforge/cmd/internal/cli"
	"ggforge/convert"
	"ggforge/fault"
)

// checkpointCategory is the heading of the flags in the help.
const checkpointCategory = tool.CategoryCheckpoint

// CheckpointFlags returns the flags about converting a checkpoint, for all commands that read checkpoints.
func CheckpointFlags() []tool.Flag {
	return tool.Group(checkpointCategory, append(forCheckpoints([]tool.Flag{
		{Name: "arch", Value: tool.Text, Choices: arch.Classes, Effect: tool.SetsBytes,
			Usage: "convert the model as class `CLASS` of transformers, whatever config.json says"},
		tool.Shared("model-name", "call the model `NAME`").For(tool.Checkpoints | tool.OldFiles),
		{Name: "metadata", Value: tool.File, Effect: tool.ReadsFile, Remote: true,
			Usage: "take general.* keys from `FILE`, a JSON object; they override all others"},
		{Name: "pre", Value: tool.Text, Option: "Pre", Hint: "name it with --pre NAME", Effect: tool.SetsBytes,
			Usage: "use `NAME` for the pre-tokenizer of byte-level BPE, instead of the one that the check text gives"},
		{Name: "embed-hf-tokenizer", Effect: tool.SetsBytes,
			Usage: "write the text of tokenizer.json into the file, too, as tokenizer.huggingface.json"},
		{Name: "fuse-qkv", Effect: tool.SetsBytes,
			Usage: "fuse the query, key and value tensors into one if the architecture has such a tensor"},
		{Name: "fuse-gate-up-exps", Effect: tool.SetsBytes,
			Usage: "fuse the gate and up projections of experts into one tensor"},
		{Name: "fp8-as-q8", Effect: tool.SetsBytes,
			Usage: "write the matrices that are stored in FP8 as Q8_0, whatever the output type"},
		{Name: "mistral-format", Effect: tool.SetsBytes,
			Usage: "the checkpoint is in Mistral's own format: params.json, consolidated*.safetensors, tekken.json"},
		{Name: "sentence-transformers-dense-modules", Effect: tool.SetsBytes,
			Usage: "include the dense modules that follow an embedding model"},
		{Name: "mtp", Effect: tool.SetsBytes,
			Usage: "convert only the MTP (NextN) layers, to a draft model: with a directory as output, mtp-NAME.gguf"},
		{Name: "no-nextn", Aliases: []string{"no-mtp"}, Effect: tool.SetsBytes,
			Usage: "leave out the MTP (NextN) layers"},
		{Name: "dspark", Effect: tool.SetsBytes,
			Usage: "convert only the DSpark draft model in a DeepSeek V4 checkpoint; needs --target-model-dir, which " +
				"may be the same directory"},
		{Name: "mmproj", Effect: tool.SetsBytes,
			Usage: "convert the vision or audio encoder (multimodal projector) instead of the language model: with a " +
				"directory as output, mmproj-NAME.gguf"},
		{Name: "target-model-dir", Value: tool.File, Option: "Target", Hint: "name it with --target-model-dir DIR",
			Effect: tool.ReadsFile,
			Usage:  "the target model of a draft model (EAGLE-3, DFlash, DSpark) is in `DIR`; the draft model gets its tokenizer"},
		{Name: "remote", Effect: tool.ReadsArgument, Inputs: tool.Checkpoints | tool.RemoteFiles,
			Usage: "the checkpoint is a model of the Hugging Face hub, ORG/NAME or ORG/NAME@REVISION: the same as " +
				"hf://ORG/NAME; HF_ENDPOINT and HF_TOKEN are used. A checkpoint may also be s3://BUCKET/FOLDER"},
		tool.Shared("cache",
			"keep what is read of a remote checkpoint's weights in `DIR`; a later run reads it from there").For(
			tool.Checkpoints | tool.RemoteFiles),
		{Name: "merge-lora", Value: tool.FileList, Cut: cutScale, Effect: tool.ReadsFile,
			Usage: "add the LoRA adapter in a directory to the weights, SCALE times (1): `ADAPTER[:SCALE]`; repeatable"},
		OutsideLinksFlag(),
	}...), withoutEffect()...)...)
}

// forCheckpoints returns flags that are for checkpoints only, unless they are declared for other inputs.
func forCheckpoints(flags ...tool.Flag) []tool.Flag {
	for i := range flags {
		if flags[i].Inputs == 0 && flags[i].Name != "manifest" {
			flags[i].Inputs = tool.Checkpoints
		}
	}
	return flags
}

// withoutEffect returns flags of convert_hf_to_gguf.py that have no effect here: they are about how that program
// works, or about templates of models that need no flag here. They are accepted with every input.
func withoutEffect() (list []tool.Flag) {
	for _, name := range []string{"use-temp-file", "no-lazy", "disable-mistral-community-chat-template"} {
		list = append(list, tool.Flag{Name: name, Effect: tool.RunsOnly, Hidden: true,
			Usage: "no effect; for scripts written for convert_hf_to_gguf.py"})
	}
	return list
}

// OutsideLinksFlag returns the flag that permits links out of a checkpoint.
func OutsideLinksFlag() tool.Flag {
	return tool.Flag{Name: "outside-links", Category: checkpointCategory, Effect: tool.Permits,
		Inputs: tool.Checkpoints,
		Option: "OutsideLinks", Hint: "use --outside-links to follow it",
		Usage: "follow links that lead out of the checkpoint's directory; the output may show the content of their targets"}
}

// ConvertOptions reads CheckpointFlags and --compat.
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
		MMProj:         cmd.Bool("mmproj"),
		Mistral:        cmd.Bool("mistral-format"),
		OutsideLinks:   cmd.Bool("outside-links"),
		Remote:         tool.Remote(),
	}
	mtp, without := cmd.Bool("mtp"), cmd.Bool("no-nextn")
	switch {
	case opt.DSpark && (mtp || without):
		return opt, fault.Errorf(fault.Usage,
			"--dspark converts the DSpark draft model alone: want it without --mtp and --no-nextn")
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
	if opt.Override, err = tool.FileValue(cmd, "metadata"); err != nil {
		return opt, err
	}
	if opt.Target, err = tool.FileValue(cmd, "target-model-dir"); err != nil {
		return opt, err
	}
	if opt.Remote.Cache, err = tool.FileValue(cmd, "cache"); err != nil {
		return opt, err
	}
	opt.Reference, err = tool.Reference(cmd)
	return opt, err
}

// cutScale cuts ADAPTER or ADAPTER:SCALE at the last colon if a number follows it.
func cutScale(s string) (dir, scale string) {
	if i := strings.LastIndexByte(s, ':'); i >= 0 {
		if _, err := strconv.ParseFloat(s[i+1:], 64); err == nil {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// parseMerge parses ADAPTER or ADAPTER:SCALE.
func parseMerge(s string) (convert.Merge, error) {
	dir, scale := cutScale(s)
	m := convert.Merge{Dir: dir, Scale: 1}
	if scale != "" {
		m.Scale, _ = strconv.ParseFloat(scale[1:], 64)
	}
	if m.Dir == "" || math.IsNaN(m.Scale) || math.IsInf(m.Scale, 0) {
		return m, fault.Errorf(fault.Usage,
			"--merge-lora %q: want the directory of an adapter, or that, a colon and a number", s)
	}
	return m, nil
}

// hubCache returns the folder in which huggingface_hub keeps models, by the environment variables that it reads.
// Source: huggingface_hub, constants.py.
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

// InputPath returns the path or address of the model that an argument names: with --remote, ORG/NAME is one of the hub;
// a name in a store of another program (package installed) is a file on this machine.
func InputPath(cmd *cli.Command, arg string) (string, error) {
	if cmd.Bool("remote") {
		return checkpoint.HubAddress(arg), nil
	}
	if !installed.Is(arg) || !tool.MayRead(cmd) {
		return arg, nil
	}
	return installed.Environment().Find(arg)
}

// InputPaths returns the paths or addresses of all models that arguments name.
func InputPaths(cmd *cli.Command, args []string) (paths []string, err error) {
	for _, arg := range args {
		path, err := InputPath(cmd, arg)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}
