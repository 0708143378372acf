package runs

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/fault"
	"ggforge/internal/text/size"
	"ggforge/quantize/allocate"
	"ggforge/quantize/batch"
)

// targetFlags are the flags that set targets; they exclude each other.
var targetFlags = []struct {
	name, usage string
	read        func(s string) (batch.Target, error)
	names       func() []string // accepted values, nil for numbers
}{
	{name: "target-bpw", usage: "choose types that lose the least at `N` bits per weight",
		read: func(s string) (t batch.Target, err error) {
			t.BPW, err = positive(s)
			return t, err
		}},
	{name: "target-size", usage: "choose types that lose the least in files of `SIZE` bytes (" + tool.SizeHelp + ")",
		read: func(s string) (t batch.Target, err error) {
			t.Bytes, err = size.Parse(s)
			return t, err
		}},
	{name: "like", names: RecipeNames,
		usage: "choose types that lose the least at the size of recipe `TYPE`",
		read: func(s string) (t batch.Target, err error) {
			t.Like, err = Recipe(s)
			return t, err
		}},
	{name: "target-kld",
		usage: "choose the smallest types with a KL divergence of at most `N` nats per token, measured on a part of " +
			"the text", read: func(s string) (t batch.Target, err error) {
			t.KLD, err = positive(s)
			return t, err
		}},
}

func positive(s string) (float64, error) {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || !(x > 0) || math.IsInf(x, 0) {
		return 0, fmt.Errorf("%q: want a number above 0", s)
	}
	return x, nil
}

// parseTargets reads targetFlags and the flags that go with them.
func (r *QuantizeRequest) parseTargets(cmd *cli.Command) (err error) {
	t := &r.Types
	var names []string
	for _, f := range targetFlags {
		names = append(names, f.name)
		for _, s := range cmd.StringSlice(f.name) {
			one, err := f.read(s)
			if err != nil {
				return fault.Errorf(fault.Usage, "--%s: %w", f.name, err)
			}
			t.Targets = append(t.Targets, one)
		}
	}
	if err := atMostOne(cmd, append(names, "recipe")...); err != nil {
		return err
	}
	for _, s := range cmd.StringSlice("types") {
		l, err := allocate.ParseAllowedTypes(s)
		if err != nil {
			return err
		}
		t.Allowed = append(t.Allowed, l)
	}
	if t.Measure, err = tool.CountValue(cmd, "measure"); err != nil {
		return err
	}
	if len(t.Targets) == 0 {
		return nil
	}
	switch {
	case cmd.Bool("pure"):
		return fault.Errorf(fault.Usage, "--pure gives all tensors one type, so that there is nothing to choose")
	case r.Quantize.SplitMaxBytes > 0 || r.Quantize.SplitMaxTensors > 0:
		return fault.Errorf(fault.Usage, "types cannot be chosen for shards of a new size: split the output afterwards")
	case len(t.Targets) == 1:
		t.Targets = slices.Repeat(t.Targets, len(r.Recipes))
	case len(t.Targets) != len(r.Recipes):
		return fault.Errorf(fault.Usage, "%d targets for %d outputs: want one for all, or one for each TYPE",
			len(t.Targets), len(r.Recipes))
	}
	return r.RequireMixed("a target")
}

func typesFlags() []tool.Flag {
	var targets []tool.Flag
	var names []string
	for _, f := range targetFlags {
		names = append(names, f.name)
		targets = append(targets, tool.Flag{Name: f.name, Value: tool.TextList, Choices: f.names,
			Effect: tool.SetsBytes,
			Usage:  f.usage + "; repeatable, one for each TYPE"})
	}
	return append(targets,
		tool.Flag{Name: "types", Value: tool.TextList, Effect: tool.SetsBytes, With: names,
			Usage: "choose among these types: `T,T...`, or PATTERN=T,T... for tensors that an expression matches; " +
				"repeatable, the first match counts"},
		tool.Flag{Name: "measure", Value: tool.Count, Unit: "chunks", Effect: tool.SetsBytes, With: names,
			Usage: "hold out the last `N` chunks of the text, and measure the loss of the output on them"},
		tool.Flag{Name: "recipe", Value: tool.File, Category: CategoryTypes, Effect: tool.ReadsFile, Remote: true,
			Usage: "take the types of tensors from `FILE`, lines PATTERN=TYPE; tensors without a match have the types of TYPE"},
		tool.Flag{Name: "save-recipe", Value: tool.File, Category: CategoryTypes, Effect: tool.NamesOutput,
			Usage: "write the types that tensors get to `FILE`, for --recipe and for --tensor-type-file, here and of " +
				"llama-quantize"},
	)
}

// parseTypes reads the flags of typesFlags.
func (r *QuantizeRequest) parseTypes(cmd *cli.Command) (err error) {
	path, err := tool.FileValue(cmd, "recipe")
	if err != nil {
		return err
	}
	if path != "" {
		if cmd.Bool("pure") {
			return fault.Errorf(fault.Usage, "--recipe and --pure: want only one of them")
		}
		r.Types.Recipe = new(allocate.Recipe)
		if tool.MayRead(cmd) {
			if r.Types.Recipe, err = allocate.ReadRecipe(path); err != nil {
				return err
			}
		}
		r.Write.Inputs = append(r.Write.Inputs, path)
		if r.Types.Recipe.Read.Path != "" {
			r.Held = append(r.Held, r.Types.Recipe.Read)
		}
		if err := r.RequireMixed("--recipe"); err != nil {
			return err
		}
		for i, one := range r.Recipes {
			r.Recipes[i] = one.With(r.Types.Recipe.Rules)
		}
	}
	if r.Types.Save, err = tool.FileValue(cmd, "save-recipe"); err != nil {
		return err
	}
	if r.Types.Save != "" && len(r.Recipes) > 1 {
		return fault.Errorf(fault.Usage, "--save-recipe writes the types of one output, and there are %d",
			len(r.Recipes))
	}
	return r.parseTargets(cmd)
}
