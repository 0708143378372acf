package runs

import (
	"strings"

	"github.com/urfave/cli/v3"

	"ggforge/checkpoint"
	tool "ggforge/cmd/internal/cli"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/text/nearest"
	"ggforge/model/digest"
	"ggforge/quantize"
)

// TypeFlags returns the flags about the types that tensors get.
func TypeFlags() []tool.Flag {
	return append(tool.Group(CategoryTypes,
		tool.Flag{Name: "pure", Effect: tool.SetsBytes,
			Usage: "give every tensor the recipe's default type"},
		tool.Flag{Name: "leave-output-tensor", Effect: tool.SetsBytes,
			Usage: "keep output.weight as it is"},
		tool.Flag{Name: "output-tensor-type", Value: tool.Text, Choices: gguf.TypeNames, Effect: tool.SetsBytes,
			Usage: "use tensor type `TYPE` for output.weight"},
		tool.Flag{Name: "token-embedding-type", Value: tool.Text, Choices: gguf.TypeNames, Effect: tool.SetsBytes,
			Usage: "use tensor type `TYPE` for the token embeddings"},
		tool.Flag{Name: "tensor-type", Value: tool.TextList, Effect: tool.SetsBytes,
			Usage: "use a type for all tensors that a regular expression matches: `PATTERN=TYPE`; repeatable, the " +
				"first match counts"},
		tool.Flag{Name: "tensor-type-file", Value: tool.FileList, Effect: tool.ReadsFile, Remote: true,
			Usage: "the same with rules from `FILE`, separated by white space"},
		tool.Shared("allow-requantize", "permit quantized tensors to change type; costs quality"),
	), tool.Group(CategoryImportance,
		tool.Shared("imatrix", "use the importance matrix in `FILE`").OrRemote(),
		tool.Flag{Name: "include-weights", Value: tool.TextList, Effect: tool.SetsBytes,
			Usage: "use only its entries with `TEXT` in their names; repeatable"},
		tool.Flag{Name: "exclude-weights", Value: tool.TextList, Effect: tool.SetsBytes,
			Usage: "do not use its entries with `TEXT` in their names; repeatable"},
	)...)
}

// Headings of the flags in a command's help.
const (
	CategoryTypes      = "Types of tensors"
	CategoryImportance = "Importance"
)

// QuantizeOptions reads TypeFlags. files are the files that it has read, which are inputs of the run.
func QuantizeOptions(cmd *cli.Command) (opt quantize.Options, files []digest.Input, err error) {
	opt = quantize.Options{
		PlanOptions: quantize.PlanOptions{
			Pure: cmd.Bool("pure"), LeaveOutputTensor: cmd.Bool("leave-output-tensor"),
			AllowRequantize: cmd.Bool("allow-requantize"),
		},
		IncludeWeights: cmd.StringSlice("include-weights"), ExcludeWeights: cmd.StringSlice("exclude-weights"),
	}
	if name := cmd.String("imatrix"); checkpoint.IsRemote(name) && cmd.String("compat") == "reference" {
		return opt, nil, fault.Errorf(fault.Usage, "--compat llama.cpp and --imatrix %s: the output would have the path of the copy "+
			"of that file: want a file of the machine", name)
	}
	if opt.Matrix, err = tool.FileValue(cmd, "imatrix"); err != nil {
		return opt, nil, err
	}
	if opt.OutputTensorType, err = typeFlag(cmd, "output-tensor-type"); err != nil {
		return opt, nil, err
	}
	if opt.TokenEmbeddingType, err = typeFlag(cmd, "token-embedding-type"); err != nil {
		return opt, nil, err
	}
	if opt.TensorTypes, files, err = tensorRules(cmd); err != nil {
		return opt, nil, err
	}
	return opt, files, atMostOne(cmd, "include-weights", "exclude-weights")
}

// RecipeNames returns the names of all recipes.
func RecipeNames() []string {
	var names []string
	for _, r := range quantize.Recipes() {
		names = append(names, r.Name)
	}
	return names
}

// recipeHint returns the nearest recipe to a name that is not one, for the end of an error; "" for none.
func recipeHint(name string) string { return nearest.Hint(name, RecipeNames()) }

// Recipe returns the recipe of that name or number.
func Recipe(name string) (*quantize.Recipe, error) {
	r, ok := quantize.LookupRecipe(name)
	if text := PublishedTypeHint(name); !ok && text != "" {
		return nil, fault.Errorf(fault.Usage, "%q is no type of ggquant: %s (see ggquant --help)", name, text)
	}
	if !ok {
		return nil, fault.Errorf(fault.Usage, "unknown quantization type %q%s (see ggquant --help)", name,
			recipeHint(name))
	}
	return r, nil
}

// atMostOne refuses more than one of several flags.
func atMostOne(cmd *cli.Command, names ...string) error {
	set := ""
	for _, name := range names {
		switch {
		case !cmd.IsSet(name):
		case set != "":
			return fault.Errorf(fault.Usage, "--%s and --%s: want only one of --%s", set, name,
				strings.Join(names, ", --"))
		default:
			set = name
		}
	}
	return nil
}

// typeFlag returns the tensor type that a flag names, nil if it is not set.
func typeFlag(cmd *cli.Command, name string) (*gguf.Type, error) {
	if !cmd.IsSet(name) {
		return nil, nil
	}
	t, ok := gguf.ParseType(cmd.String(name))
	if !ok {
		return nil, fault.Errorf(fault.Usage, "--%s: unknown tensor type %q%s", name, cmd.String(name),
			nearest.Hint(cmd.String(name), gguf.TypeNames()))
	}
	return &t, nil
}

// tensorRules returns the rules of --tensor-type, then the rules from files.
func tensorRules(cmd *cli.Command) (rules []quantize.TensorTypeRule, files []digest.Input, err error) {
	for _, s := range cmd.StringSlice("tensor-type") {
		r, err := quantize.CompileTensorRule(s)
		if err != nil {
			return nil, nil, err
		}
		rules = append(rules, r)
	}
	for _, path := range cmd.StringSlice("tensor-type-file") {
		if err := tool.CheckName("--tensor-type-file", path); err != nil {
			return nil, nil, err
		}
		if !tool.MayRead(cmd) {
			continue
		}
		path = tool.Fetched(cmd, path)
		more, data, err := quantize.LoadTensorRules(path)
		if err != nil {
			return nil, nil, err
		}
		rules, files = append(rules, more...), append(files, digest.Held("tensor-type-file", path, data))
	}
	return rules, files, nil
}
