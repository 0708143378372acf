package parts

import (
	"fmt"
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

// Temperatures writes the temperature of each kind of question, some for a range of numbers of options: choice:3-5 as
// choice.3_5, choice:11+ as choice.11.
func Temperatures(c *config.View) (m gguf.Metadata, err error) {
	for _, t := range c.Facts.Temperatures {
		v, _, err := table.Float32Of(t.Value, true, nil)
		if err != nil {
			return nil, err
		}
		m.Set("decision.temperature."+strings.TrimRight(strings.NewReplacer(":", ".", "-", "_").Replace(t.Kind), "+"),
			v)
	}
	return m, nil
}

// DecisionKeys are the keys of a decision model that reads answers from logits: programs ask by its type of prompt and
// divide logits by its temperatures, after the graph.
var DecisionKeys = []string{"decision.type", "decision.temperature.*"}

// DecisionHead is the graph of DeciderLayers. Its activation is the default of PyTorch's TransformerEncoderLayer.
var DecisionHead = graph.Decision{
	Layers: "@decision.block_count or 0", Norm: graph.LayerNorm,
	Layer: PreNorm(Bidirectional(), graph.FFN{Act: graph.ReLU, Gate: graph.NoGate}),
}

// DecisionType is the row of the model's prompting scheme. known are keys of the settings with their required values.
func DecisionType(name string, known ...[2]string) table.Row {
	return table.Row{Key: "decision.type", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
		o := c.Decision()
		for _, k := range known {
			s, _, err := o.String(k[0])
			if err == nil && s != k[1] {
				err = fault.Errorf(fault.Unsupported, "%s: key %q is %q, want %q", o.FileName(), k[0], s, k[1])
			}
			if err != nil {
				return v, false, err
			}
		}
		return gguf.String(name), true, nil
	}}
}

// NamedTemperatures writes temperatures under their unchanged names.
func NamedTemperatures(c *config.View) (m gguf.Metadata, err error) {
	for _, t := range c.Facts.Temperatures {
		v, _, err := table.Float32Of(t.Value, true, nil)
		if err != nil {
			return nil, err
		}
		m.Set("decision.temperature."+t.Kind, v)
	}
	return m, nil
}

// ScoreBias writes the biases of scores, a list for each number of levels.
func ScoreBias(c *config.View) (m gguf.Metadata, err error) {
	for _, list := range c.Facts.ScoreBias {
		for i, f := range list {
			v, _, err := table.Float32Of(f, true, nil)
			if err != nil {
				return nil, err
			}
			m.Set(fmt.Sprintf("decision.score_bias.%d.%d", len(list), i), v)
		}
	}
	return m, nil
}

// DeciderLayers are a decision model's layers after the base model (PyTorch's TransformerEncoder with norm_first) and
// the scorer of the options' markers.
func DeciderLayers(after table.Cond) []table.TensorRow {
	return append(Only(after, []table.TensorRow{
		{HF: "head.layers.{bid}.norm1", GGUF: "blk.{bid}.attn_norm", Bias: table.NeedBias},
		{HF: "head.layers.{bid}.self_attn.in_proj_weight", GGUF: "blk.{bid}.attn_qkv.weight", Exact: true},
		{HF: "head.layers.{bid}.self_attn.in_proj_bias", GGUF: "blk.{bid}.attn_qkv.bias", Exact: true},
		{HF: "head.layers.{bid}.self_attn.out_proj", GGUF: "blk.{bid}.attn_output", Bias: table.NeedBias},
		{HF: "head.layers.{bid}.norm2", GGUF: "blk.{bid}.ffn_norm", Bias: table.NeedBias},
		{HF: "head.layers.{bid}.linear1", GGUF: "blk.{bid}.ffn_up", Bias: table.NeedBias},
		{HF: "head.layers.{bid}.linear2", GGUF: "blk.{bid}.ffn_down", Bias: table.NeedBias},
	}), []table.TensorRow{
		{HF: "type_emb", GGUF: "token_types"},
		{HF: "scorer.0", GGUF: "cls.norm", Bias: table.NeedBias},
		{HF: "scorer.1", GGUF: "cls", Bias: table.NeedBias},
		{HF: "scorer.3", GGUF: "cls.output", Bias: table.NeedBias},
	}...)
}

// BeforeNextN is the condition of the model's own layers, MTP layers excluded, and of tensors outside the layers.
func BeforeNextN(l table.Layer) (bool, error) {
	n, err := l.BlockCount()
	return l.Bid < n, err
}

// Restrict returns rows whose condition is cond and their own.
func Restrict(cond table.Cond, list []table.TensorRow) []table.TensorRow {
	list = slices.Clone(list)
	for i := range list {
		if own := list[i].If; own != nil {
			list[i].If = Both(cond, own)
		} else {
			list[i].If = cond
		}
	}
	return list
}

// Asking are the rules of a decision model with byte-level BPE and a prompt template.
func Asking(template string) tokenizer.Rules {
	return tokenizer.BPE{Then: tokenizer.Steps{Prompt(template)}}
}

// Prompt writes a decision model's prompt template.
func Prompt(template string) tokenizer.Prompt {
	return func(tokenizer.Settings) (string, error) { return template, nil }
}

// TextOrJSON is the template expression of a value: text unchanged, other values as JSON.
func TextOrJSON(value string) string {
	return "{{ " + value + " if " + value + " is string else " + value + " | tojson }}"
}
