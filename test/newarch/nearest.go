package main

import (
	"cmp"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"

	"ggforge/arch"
	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/test/hftest"
)

// known is a made-up model of an existing family, with the table of its class.
type known struct {
	spec     *hftest.Spec
	table    *table.Arch
	class    string
	patterns stringSet
	keys     map[string]any
	score    float64 // of the last comparison
}

// hidden reports whether a family is one of those to leave out: by its name, or by its class.
func (k *known) hidden(without []string) bool {
	return slices.ContainsFunc(without, func(name string) bool {
		return name == k.table.Name || name == k.class || slices.Contains(k.table.Classes, name)
	})
}

// knownModels returns the made-up language models with a table, in the order of their names. Models of several files
// (drafts, adapters, models that decide) are not among them.
var knownModels = sync.OnceValues(func() (list []*known, err error) {
	for _, s := range hftest.Specs() {
		if s.Target != "" || s.Base != nil || s.Folders != nil || len(s.ExtraFiles) > 0 {
			continue
		}
		text, tensors, err := s.Example(hftest.Variant{})
		if err != nil {
			return nil, err
		}
		cfg, err := arch.ParseConfig(text)
		if err != nil {
			continue // not a config.json of a language model
		}
		view := cfg.View(config.Options{})
		a, err := arch.For(view)
		if err != nil {
			continue // no table yet
		}
		var names []string
		for _, t := range tensors {
			names = append(names, t.Name)
		}
		var root map[string]any
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.UseNumber()
		if err := d.Decode(&root); err != nil {
			return nil, err
		}
		k := &known{spec: s, table: a, class: cfg.Class, patterns: stringSet{}, keys: keysOf(root)}
		c := checkpoint{layers: math.MaxInt}
		c.setNames(names)
		for _, w := range c.wants {
			k.patterns[w.pattern] = true
		}
		list = append(list, k)
	}
	return list, nil
})

// nearest returns the known models, the most similar first, without those that are hidden. Similarity is the share of
// patterns of tensor names and of config keys that both have, the rare ones counting most.
func (c *checkpoint) nearest(without []string) ([]*known, error) {
	all, err := knownModels()
	if err != nil {
		return nil, err
	}
	var list []*known
	for _, k := range all {
		if !k.hidden(without) {
			clone := *k
			list = append(list, &clone)
		}
	}
	patterns := map[string]float64{} // the number of models that have it, then its weight
	keys := map[string]float64{}
	for _, k := range list {
		for p := range k.patterns {
			patterns[p]++
		}
		for key := range k.keys {
			keys[key]++
		}
	}
	weigh := func(m map[string]float64) {
		for name, n := range m {
			m[name] = math.Log(float64(len(list)+1)/n) + 0.1
		}
	}
	weigh(patterns)
	weigh(keys)
	mine := keysOf(c.root)
	for _, k := range list {
		var names, same, all float64
		for _, w := range c.wants {
			weight := cmp.Or(patterns[w.pattern], 0.5) // a name that no family has tells nothing
			if all += weight; k.patterns[w.pattern] {
				same += weight
			}
		}
		for p := range k.patterns {
			if c.want(p) == nil {
				all += patterns[p]
			}
		}
		if len(c.wants) > 0 {
			names = same / all
		}
		same, all = 0, 0
		for key, v := range mine {
			weight := cmp.Or(keys[key], 0.5)
			if all += weight; hasKey(k.keys, key) {
				same += weight
				if s, ok := v.(string); ok && s != k.keys[key] && values.has(key) {
					same -= 2 * weight
				}
				if b, ok := v.(bool); ok && !reflect.DeepEqual(b, k.keys[key]) {
					same -= weight / 4
				}
			}
		}
		for key := range k.keys {
			if !hasKey(mine, key) {
				all += keys[key]
			}
		}
		k.score = 0.35 * same / all
		if len(c.wants) > 0 {
			k.score += 0.65 * names
		}
		if strings.Contains(k.class, "ForCausalLM") == strings.Contains(c.class, "ForCausalLM") { // or an encoder
			k.score += 0.02
		}
	}
	slices.SortStableFunc(list, func(a, b *known) int { return cmp.Compare(b.score, a.score) })
	return list, nil
}

// values are the keys whose text decides what is computed.
var values = set("hidden_act", "hidden_activation", "activation_function", "scoring_func", "score_function")

func hasKey(m map[string]any, key string) bool {
	_, ok := m[key]
	return ok
}

// tables returns the tables of models, each once, in their order.
func tables(list []*known) (all []*table.Arch) {
	for _, k := range list {
		if !slices.Contains(all, k.table) {
			all = append(all, k.table)
		}
	}
	return all
}

// tokenizer returns the most similar model whose tokenizer is of the kind that the checkpoint has: SentencePiece if
// there is a tokenizer.model next to config.json, byte-level BPE if there is a tokenizer.json only. Tokenizers of few
// families are left out: they have rules for special tokens of theirs.
func (c *checkpoint) tokenizer(src *source, list []*known) *known {
	if c.tokenizerOf != nil {
		return c.tokenizerOf
	}
	texts := map[*table.Arch]string{}
	count := map[string]int{}
	for _, a := range tables(list) {
		if t := src.literalOf(a); t != nil && t.field("Tokenizer") != nil {
			texts[a] = src.src(t.field("Tokenizer"))
			count[texts[a]]++
		}
	}
	for _, k := range list {
		bpe := strings.HasPrefix(k.spec.Tokenizer, "bpe:")
		spm := strings.HasPrefix(k.spec.Tokenizer, "spm") || k.spec.Tokenizer == "gemma"
		if text := texts[k.table]; text != "" && count[text] >= usualTokenizer &&
			(c.vocabulary == "" || c.vocabulary == "bpe" && bpe || c.vocabulary == "spm" && spm) {
			c.tokenizerOf = k
			return k
		}
	}
	c.tokenizerOf = list[0]
	return list[0]
}

// usualTokenizer is the number of tables from which on a tokenizer is one that a new family may have.
const usualTokenizer = 5
