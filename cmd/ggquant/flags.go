package main

import (
	"strings"

	"github.com/urfave/cli/v3"

	"ggforge/convert"
	"ggforge/fault"
	"ggforge/gguf"
	tool "ggforge/internal/cli"
	"ggforge/quantize"
	"ggforge/writer"
)

func flags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "dry-run", Usage: "print what would become of each tensor and the exact size of the output; write nothing"},
		&cli.BoolFlag{Name: "json", Usage: "print the plan or the result as one JSON object"},
		&cli.BoolFlag{Name: "strict", Usage: "refuse, before any work, what is otherwise a warning: types that do not fit the rows, options without effect, " +
			"tensors that the importance matrix lacks (embeddings and output head aside)"},

		&cli.BoolFlag{Name: "allow-requantize", Usage: "permit tensors that are quantized already to change type; costs quality"},
		&cli.BoolFlag{Name: "leave-output-tensor", Usage: "keep output.weight as it is"},
		&cli.BoolFlag{Name: "pure", Usage: "give every tensor the recipe's default type"},
		&cli.StringFlag{Name: "imatrix", Usage: "use the importance matrix in `FILE`"},
		&cli.StringSliceFlag{Name: "include-weights", Usage: "use only its entries with `TEXT` in their names; repeatable"},
		&cli.StringSliceFlag{Name: "exclude-weights", Usage: "do not use its entries with `TEXT` in their names; repeatable"},
		&cli.BoolFlag{Name: "hide-imatrix", Usage: "do not record the importance matrix in the output"},
		&cli.StringFlag{Name: "output-tensor-type", Usage: "use tensor type `TYPE` for output.weight"},
		&cli.StringFlag{Name: "token-embedding-type", Usage: "use tensor type `TYPE` for the token embeddings"},
		&cli.StringSliceFlag{Name: "tensor-type", Usage: "use a type for all tensors that a regular expression matches: `PATTERN=TYPE`; repeatable, the first match counts"},
		&cli.StringSliceFlag{Name: "tensor-type-file", Usage: "the same with the rules in `FILE`, separated by white space"},
		&cli.StringSliceFlag{Name: "prune-layers", Usage: "leave out the layers of a list `L0,L1,...`; later ones move up"},
		&cli.StringSliceFlag{Name: "override-kv", Usage: "set metadata: `KEY=TYPE:VALUE` with TYPE int (becomes u32), float, bool or str; repeatable"},
		&cli.BoolFlag{Name: "keep-split", Usage: "write the same shards as the input has"},
		&cli.StringFlag{Name: "out-dir", Usage: "write one output for each TYPE into `DIR`"},
		&cli.StringFlag{Name: "name-template", Value: "{model}-{FTYPE}.gguf", Usage: "name them `NAME`; {model} stands for the model's name by the GGUF naming convention, {ftype} and {FTYPE} for the type"},
		&cli.StringFlag{Name: "via", Value: convert.Auto.String(), Usage: "take a checkpoint's weights as if converted to `TYPE` first: auto, f32, f16 or bf16"},
		&cli.StringFlag{Name: "split-max-size", Usage: "write shards of at most `N` bytes (K, M, G: thousands, millions, billions) of tensors each; OUT is the beginning of their names"},
		&cli.UintFlag{Name: "split-max-tensors", Usage: "write shards of at most `N` tensors each"},
		&cli.FloatFlag{Name: "max-buffer-size", Usage: "bound all buffers to `MIB` mebibytes; they are small without that"},
		tool.ThreadsFlag(),
		tool.ForceFlag(),
		tool.ProgressFlag(),
		&cli.StringFlag{Name: "compat", Usage: "with `reference`: write what llama-quantize does also where that is broken (docs/deviations.md)"},
	}
}

// options reads all flags that say what to make of the model.
func options(cmd *cli.Command) (opt quantize.Options, err error) {
	opt = quantize.Options{
		PlanOptions: quantize.PlanOptions{
			Pure: cmd.Bool("pure"), LeaveOutputTensor: cmd.Bool("leave-output-tensor"),
			AllowRequantize: cmd.Bool("allow-requantize"), Reference: cmd.String("compat") == "reference",
		},
		Matrix: cmd.String("imatrix"), IncludeWeights: cmd.StringSlice("include-weights"), ExcludeWeights: cmd.StringSlice("exclude-weights"),
		HideMatrix: cmd.Bool("hide-imatrix"), KeepSplit: cmd.Bool("keep-split"),
		SplitMaxTensors: int(cmd.Uint("split-max-tensors")), Strict: cmd.Bool("strict"),
	}
	if c := cmd.String("compat"); c != "" && c != "reference" {
		return opt, fault.Errorf(fault.Usage, "--compat %q: want reference", c)
	}
	if cmd.IsSet("imatrix") && opt.Matrix == "" {
		return opt, fault.Errorf(fault.Usage, "--imatrix needs a file name")
	}
	if opt.OutputTensorType, err = typeFlag(cmd, "output-tensor-type"); err != nil {
		return opt, err
	}
	if opt.TokenEmbeddingType, err = typeFlag(cmd, "token-embedding-type"); err != nil {
		return opt, err
	}
	if opt.TensorTypes, err = tensorRules(cmd); err != nil {
		return opt, err
	}
	for _, s := range cmd.StringSlice("prune-layers") {
		layers, err := quantize.ParseLayers(s)
		if err != nil {
			return opt, err
		}
		opt.PruneLayers = append(opt.PruneLayers, layers...)
	}
	for _, s := range cmd.StringSlice("override-kv") {
		kv, err := quantize.ParseOverride(s)
		if err != nil {
			return opt, err
		}
		opt.Override = append(opt.Override, kv)
	}
	if cmd.IsSet("split-max-size") {
		opt.SplitMaxBytes, err = tool.Size(cmd, "split-max-size")
	}
	return opt, err
}

// typeFlag returns the tensor type that a flag names, nil if it is not set.
func typeFlag(cmd *cli.Command, name string) (*gguf.Type, error) {
	if !cmd.IsSet(name) {
		return nil, nil
	}
	t, ok := gguf.ParseType(cmd.String(name))
	if !ok {
		return nil, fault.Errorf(fault.Usage, "--%s: unknown tensor type %q", name, cmd.String(name))
	}
	return &t, nil
}

// tensorRules returns the rules of --tensor-type, then those of the files.
func tensorRules(cmd *cli.Command) (rules []quantize.TensorTypeRule, err error) {
	for _, s := range cmd.StringSlice("tensor-type") {
		r, err := quantize.CompileTensorRule(s)
		if err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	for _, path := range cmd.StringSlice("tensor-type-file") {
		more, err := quantize.ReadTensorRules(path)
		if err != nil {
			return nil, err
		}
		rules = append(rules, more...)
	}
	return rules, nil
}

// writerOptions reads the flags that say how to write.
func writerOptions(cmd *cli.Command, threads int) (writer.Options, error) {
	opt := writer.Options{Workers: threads, Force: cmd.Bool("force")}
	if cmd.IsSet("max-buffer-size") {
		mib := cmd.Float("max-buffer-size")
		if !(mib > 0 && mib < 1<<40) {
			return opt, fault.Errorf(fault.Usage, "--max-buffer-size %s: want a number above 0", strings.TrimSpace(cmd.String("max-buffer-size")))
		}
		opt.MaxBuffer = max(1, int64(mib*(1<<20)))
	}
	var err error
	opt.Progress, err = tool.NewProgress(cmd)
	return opt, err
}
