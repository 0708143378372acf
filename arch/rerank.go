package arch

import (
	"errors"
	"io/fs"
	"strings"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// A reranker of the Qwen 3 family is a language model that is asked whether a
// document answers a query: of its output only the rows of "yes" and "no" matter.
// Nothing in the config tells it; as in the reference, its names and its model card
// do. Source: the Qwen3 class of the reference's converter.

var rerankerNames = []string{"qwen3-reranker", "qwen3-vl-reranker"}

// isReranker is the condition that the model is a reranker.
func isReranker(l Layer) (bool, error) {
	return l.reranker()
}

func (c *Config) reranker() (bool, error) {
	if c.isReranker != nil {
		return *c.isReranker, nil
	}
	names := []string{c.dir, c.Class}
	for _, key := range []string{"_name_or_path", "model_type"} {
		if s, ok := c.Raw[key].(string); ok {
			names = append(names, s)
		}
	}
	found := false
	for _, hint := range rerankerNames {
		for _, name := range names {
			found = found || strings.Contains(strings.ToLower(name), hint)
		}
	}
	if !found && c.files != nil {
		card, err := c.readCard()
		if err != nil {
			return false, err
		}
		for _, hint := range rerankerNames {
			found = found || strings.Contains(card, "# "+hint)
		}
	}
	c.isReranker = &found
	return found, nil
}

// readCard returns the model card in lower case, "" without one.
func (c *Config) readCard() (string, error) {
	data, err := c.files.ReadFile("README.md")
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.ToLower(string(data)), err
}

// ifReranker is d for rerankers, nothing for other models.
func ifReranker(d Derive) Derive {
	return func(c *Config) (v gguf.Value, ok bool, err error) {
		if is, err := c.reranker(); err != nil || !is {
			return v, false, err
		}
		return d(c)
	}
}

// rerankRows are the metadata of rerankers.
var rerankRows = []Row{
	{Key: "pooling_type", Derive: ifReranker(constant(gguf.Uint32(poolRank)))},
	{Key: "classifier.output_labels", Derive: ifReranker(constant(gguf.Strings([]string{"yes", "no"})))},
	{Key: "tokenizer.chat_template.rerank", Derive: ifReranker(constant(gguf.String(rerankTemplate)))},
	{Key: "tokenizer.chat_templates", Derive: ifReranker(constant(gguf.Strings([]string{"rerank"})))},
}

// rerankTemplate is the text that the models were trained with, as in their model
// cards.
const rerankTemplate = "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. " +
	"Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n" +
	"<|im_start|>user\n<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n<Query>: {query}\n<Document>: {document}<|im_end|>\n" +
	"<|im_start|>assistant\n<think>\n\n</think>\n\n"

// rerankHead are embedRows of the Qwen 3 family: the head of a reranker comes from
// the output, which may be the embedding.
var rerankHead = []TensorRow{
	{HF: "model.embed_tokens", GGUF: "token_embd", If: not(both(isReranker, tied))},
	{HF: "model.embed_tokens", Split: []Part{{GGUF: "cls.output", Transform: yesNo}, {GGUF: "token_embd"}}, If: both(isReranker, tied)},
	{HF: "model.norm", GGUF: "output_norm"},
	{HF: "lm_head", GGUF: "output", Optional: true, If: not(both(isReranker, not(tied)))},
	{HF: "lm_head", GGUF: "cls.output", Transform: yesNo, If: both(isReranker, not(tied))},
}

// yesNo takes the rows of the tokens "yes" and "no".
var yesNo = &Transform{Name: "yes-no", Forward: func(l Layer, s rows.Source) (rows.Source, error) {
	var tok struct {
		Model struct{ Vocab map[string]int64 }
		Added []struct {
			ID      int64
			Content string
		} `json:"added_tokens"`
	}
	if ok, err := l.file("tokenizer.json", &tok); err != nil || !ok {
		if err == nil {
			err = fault.Errorf(fault.Broken, "a reranker without tokenizer.json")
		}
		return nil, err
	}
	ne := s.NE()
	ids := [2]int64{}
	for i, token := range []string{"yes", "no"} {
		id, ok := tok.Model.Vocab[token]
		for _, t := range tok.Added {
			if !ok && t.Content == token {
				id, ok = t.ID, true
			}
		}
		if !ok || len(ne) != 2 || id < 0 || id >= ne[1] {
			return nil, fault.Errorf(fault.Broken, "tokenizer.json: want a token %q with a row in dimensions %s", token, gguf.Shape(ne))
		}
		ids[i] = id
	}
	return rows.Gather(s, []int64{ne[0], 2}, func(i int64) int64 { return ids[i] })
}}
