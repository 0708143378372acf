package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"ggforge/cmd/internal/page"
	"ggforge/eval"
	"ggforge/eval/texts"
	"ggforge/tokenizer/vocab"
)

// chatHelp explains conversations in the help of verbs that predict their tokens.
const chatHelp = "With --chats each line of the text is a conversation in JSON (messages, tools), which the\n" +
	"chat template of the model makes a text of. Each is a sequence of its own, with -c of its\n" +
	"first -c tokens, and what the assistant says is predicted; lines may have a category."

// streamHelp explains conversations in the help of verbs that take them as one text.
const streamHelp = "With --chats each line of the text is a conversation in JSON (messages, tools), which the\n" +
	"chat template of the model makes a text of; all of them are one text, with control tokens:\n" +
	"the one that 'ggtool render --chats' prints for llama-imatrix --parse-special."

// dialogues are the conversations of a text as sequences.
type dialogues struct {
	chats     *texts.Chats
	sequences []eval.Sequence
	of        []texts.Chat // by sequence
}

// readChats renders the conversations with the chat template of the model.
func (in *input) readChats(ctx context.Context, c *candidate, data []byte) (*texts.Chats, error) {
	return texts.ReadChats(ctx, c.Source.Metadata, c.Source.Path, in.File, data, *in.Chats)
}

// dialogues returns the sequences of conversations by a vocabulary, and the run that describes them: it has their tokens,
// and as Lengths how many of each are predicted.
func (in *input) dialogues(chats *texts.Chats, v *vocab.Vocab, warn func(...string)) (*dialogues, eval.Run, error) {
	d, r := &dialogues{chats: chats}, eval.Run{}
	var err error
	if d.sequences, d.of, err = chats.Sequences(v, !in.Chats.Answers, in.Most, warn); err != nil {
		return nil, r, err
	}
	for i := range d.sequences {
		s := &d.sequences[i]
		r.Tokens, r.Lengths = append(r.Tokens, s.Tokens...), append(r.Lengths, len(s.Queries))
	}
	r.Chunk = max(1, (len(r.Tokens)+len(r.Lengths)/2)/len(r.Lengths))
	return d, r, nil
}

// longest returns the number of tokens of the longest conversation.
func (d *dialogues) longest() int {
	n := 0
	for i := range d.sequences {
		n = max(n, len(d.sequences[i].Tokens))
	}
	return n
}

// options returns how sequences run.
func options(r eval.Run) eval.ScoreOptions {
	return eval.ScoreOptions{Workers: r.Workers, Progress: r.Progress}
}

// perplexity returns that of the model over the conversations.
func (d *dialogues) perplexity(ctx context.Context, m *eval.Model, r eval.Run) (*eval.Perplexity, error) {
	groups := make([][]eval.Sequence, len(d.sequences))
	for i := range groups {
		groups[i] = d.sequences[i : i+1]
	}
	found, err := m.Score(ctx, groups, options(r))
	if err != nil {
		return nil, err
	}
	var losses []float64
	for _, g := range found {
		for _, a := range g[0] {
			losses = append(losses, -a.LogP)
		}
	}
	return eval.PerplexityOf(losses, len(groups)), nil
}

// categoryResult is the part of the conversations with one category.
type categoryResult struct {
	Category      string `json:"category"` // "" for those without one
	Conversations int    `json:"conversations"`
	Predicted     int    `json:"predicted"`
	PPL           number `json:"ppl"`
	Error         number `json:"ppl_error"`

	positions []int // of the predicted tokens
}

// categories returns the categories of the conversations in the order in which they come, with the numbers of their
// predicted tokens; nil if no conversation has one.
func (d *dialogues) categories() (list []categoryResult) {
	if d == nil || !slices.ContainsFunc(d.of, func(c texts.Chat) bool { return c.Category != "" }) {
		return nil
	}
	at, place := 0, map[string]int{}
	for i, c := range d.of {
		k, ok := place[c.Category]
		if !ok {
			k = len(list)
			place[c.Category], list = k, append(list, categoryResult{Category: c.Category})
		}
		list[k].Conversations++
		for range d.sequences[i].Queries {
			list[k].positions = append(list[k].positions, at)
			at++
		}
	}
	return list
}

// some returns the values of a category.
func (c *categoryResult) some(values []float64) []float64 {
	list := make([]float64, len(c.positions))
	for i, at := range c.positions {
		list[i] = values[at]
	}
	return list
}

// set sets the figures of losses.
func (c *categoryResult) set(losses []float64) {
	p := eval.PerplexityOf(c.some(losses), c.Conversations)
	c.Predicted, c.PPL, c.Error = p.Predicted, number(p.Value), number(p.Error)
}

// divergedCategory is how a model differs from its base in the conversations with one category.
type divergedCategory struct {
	categoryResult
	Ratio      figureResult `json:"ppl_ratio"`
	Divergence figureResult `json:"kl_divergence"`
}

// changes returns the figures of a comparison by category.
func (d *dialogues) changes(found *eval.Comparison) (list []divergedCategory) {
	for _, c := range d.categories() {
		c.set(found.Model.Losses)
		base, model := c.some(found.Base.Losses), c.some(found.Model.Losses)
		for i := range model {
			model[i] -= base[i]
		}
		f := eval.FigureOf(model)
		ratio := math.Exp(f.Mean)
		list = append(list, divergedCategory{c, figureResult{number(ratio), number(ratio * f.Error)},
			figureOf(eval.FigureOf(c.some(found.Divergences)))})
	}
	return list
}

// named is the name of a category in tables.
func (c *categoryResult) named() string {
	if c.Category == "" {
		return "(none)"
	}
	return c.Category
}

// categoryTable prints the perplexity of each category.
func categoryTable(w io.Writer, list []categoryResult) {
	if list == nil {
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "category\tconversations\ttokens\tPPL\t\n")
	for i := range list {
		c := &list[i]
		fmt.Fprintf(t, "%s\t%d\t%d\t%.4f ± %.4f\t\n", c.named(), c.Conversations, c.Predicted, c.PPL, c.Error)
	}
	t.Flush()
}

// categories prints the figures of each category, with a line for each model.
func (r *compareResult) categories(w io.Writer) {
	if len(r.Models) == 0 || r.Models[0].Categories == nil {
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "\ncategory\tconversations\ttokens\t\tPPL\tPPL / base's\tKL divergence\t\n")
	for k := range r.Models[0].Categories {
		for i := range r.Models {
			c := &r.Models[i].Categories[k]
			fmt.Fprintf(t, "%s\t%d\t%d\t[%d]\t%.4f ± %.4f\t%.6f ± %.6f\t%.6f ± %.6f\t\n", c.named(), c.Conversations,
				c.Predicted, i+1, c.PPL, c.Error, c.Ratio.Mean, c.Ratio.Error, c.Divergence.Mean, c.Divergence.Error)
		}
	}
	t.Flush()
}

// categoryPart returns the table of a page about categories, nil for none.
func categoryPart(list []categoryResult) []page.Part {
	if list == nil {
		return nil
	}
	t := &page.Table{Title: "Categories of conversations", Note: "After ± is one standard error.",
		Head: []string{"category", "conversations", "tokens", "perplexity"}}
	for i := range list {
		c := &list[i]
		t.Rows = append(t.Rows, []string{c.named(), fmt.Sprint(c.Conversations), fmt.Sprint(c.Predicted),
			page.Perplexity(float64(c.PPL), float64(c.Error))})
	}
	return []page.Part{t}
}

// categoryPart is categoryPart for a comparison, whose models have these names.
func (r *compareResult) categoryPart(names []string) []page.Part {
	if len(r.Models) == 0 || r.Models[0].Categories == nil {
		return nil
	}
	t := &page.Table{Title: "Categories of conversations",
		Note: "Divergence, perplexity and the ratio to that of the base, over the tokens of each category. After ± is one " +
			"standard error.",
		Head: []string{"category and model", "conversations", "tokens", "divergence", "perplexity", "ratio"}}
	for k := range r.Models[0].Categories {
		for i := range r.Models {
			c := &r.Models[i].Categories[k]
			t.Rows = append(t.Rows, []string{c.named() + ": " + names[i], fmt.Sprint(c.Conversations),
				fmt.Sprint(c.Predicted), page.Divergence(float64(c.Divergence.Mean), float64(c.Divergence.Error)),
				page.Perplexity(float64(c.PPL), float64(c.Error)),
				page.PlusMinus("%.5f", 1, float64(c.Ratio.Mean), float64(c.Ratio.Error))})
		}
	}
	return []page.Part{t}
}

// predictedOf says whose tokens are predicted.
func (t pairsResult) predictedOf() string {
	if t.LossOf == "assistant" {
		return "those of the assistant"
	}
	return "all"
}
