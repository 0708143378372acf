package runs

import (
	"context"
	"fmt"
	"slices"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/model"
	"ggforge/model/digest"
	"ggforge/quantize"
)

// InMemory are the recipes by which a command that compares models quantizes the base in memory; nothing is written.
type InMemory struct {
	Recipes     []string // names
	Quantize    quantize.Options
	RecipeFiles []string // files that flags of Quantize name, such as the importance matrix
}

// InMemoryFlags returns the flags of InMemory. TypeFlags need --type, except those of the names in but, which the
// command also uses without it.
func InMemoryFlags(but ...string) []tool.Flag {
	list := TypeFlags()
	for i := range list {
		if !slices.Contains(but, list[i].Name) {
			list[i].With = []string{"type"}
		}
	}
	return append([]tool.Flag{
		{Name: "type", Aliases: []string{"recipe"}, Value: tool.TextList, Choices: RecipeNames,
			Category: CategoryTypes, Effect: tool.SetsBytes,
			Usage: "compare what 'ggquant BASE `TYPE`' would write, without writing it; repeatable"},
	}, list...)
}

// VariantFlags are InMemoryFlags for a command whose first argument is quantized by the recipes.
func VariantFlags() []tool.Flag {
	list := InMemoryFlags()
	list[0].Usage = "score what 'ggquant MODEL `TYPE`' would write of the first MODEL, too, without writing it; repeatable"
	return list
}

// ParseInMemory returns the recipes and options of a command line.
func ParseInMemory(cmd *cli.Command) (q InMemory, err error) {
	for _, name := range cmd.StringSlice("type") {
		one, err := Recipe(name)
		if err != nil {
			return q, err
		}
		q.Recipes = append(q.Recipes, one.Name)
	}
	opt, files, err := QuantizeOptions(cmd)
	if err != nil {
		return q, err
	}
	q.Quantize, q.RecipeFiles = opt, digest.Paths(files)
	if opt.Matrix != "" {
		q.RecipeFiles = append(q.RecipeFiles, opt.Matrix)
	}
	return q, nil
}

// Compared is a model that is compared with a base.
type Compared struct {
	Name   string // as the user named it, or the base's with the recipe
	Source *model.Model
	Recipe string // recipe by which the base is quantized in memory; "" for a model that is read unchanged
}

// Models returns variants of a base, one quantized by each recipe as ggquant would write it, and warns of
// compromises. close releases them; the base stays open.
func (q *InMemory) Models(ctx context.Context, cmd *cli.Command, name string, base *model.Model) (list []Compared,
	close func() error, err error) {
	if len(q.Recipes) == 0 {
		return nil, func() error { return nil }, nil
	}
	var by []*quantize.Recipe
	for _, name := range q.Recipes {
		one, err := Recipe(name)
		if err != nil {
			return nil, nil, err
		}
		by = append(by, one)
	}
	batch, err := quantize.PrepareBatch(ctx, base, by, q.Quantize)
	if batch == nil {
		return nil, nil, err
	}
	for i, j := range batch.Jobs {
		for _, c := range j.Compromises {
			tool.Warn(cmd, fmt.Sprintf("%s: %s", q.Recipes[i], c))
		}
		m := Compared{Name: name + " as " + q.Recipes[i], Recipe: q.Recipes[i]}
		if err == nil {
			m.Source, err = j.Model(nil)
		}
		list = append(list, m)
	}
	if err != nil {
		batch.Close()
		return nil, nil, err
	}
	return list, batch.Close, nil
}
