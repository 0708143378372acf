package config

import (
	"errors"
	"io/fs"
	"strings"
)

var rerankerNames = []string{"qwen3-reranker", "qwen3-vl-reranker"}

// readReranker determines whether the model is a reranker. A reranker of the Qwen 3 family is a language model prompted
// with the question whether a document answers a query; only the output rows of "yes" and "no" matter. It is recognized
// by names and model card, since config.json has no such key. Source: the Qwen3 class of the reference's converter.
func readReranker(files Files, v *View, f *Facts) error {
	names := []string{f.Dir, v.Class}
	for _, key := range []string{"_name_or_path", "model_type"} {
		if s, ok := v.Raw[key].(string); ok {
			names = append(names, s)
		}
	}
	for _, hint := range rerankerNames {
		for _, name := range names {
			f.Reranker = f.Reranker || strings.Contains(strings.ToLower(name), hint)
		}
	}
	if !f.Reranker {
		data, err := files.ReadFile("README.md")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		card := strings.ToLower(string(data))
		for _, hint := range rerankerNames {
			f.Reranker = f.Reranker || strings.Contains(card, "# "+hint)
		}
	}
	if !f.Reranker {
		return nil
	}
	var tok struct {
		Model struct{ Vocab map[string]int64 }
		Added []struct {
			ID      int64
			Content string
		} `json:"added_tokens"`
	}
	if _, err := readJSON(files, "tokenizer.json", &tok); err != nil {
		return err
	}
	f.Tokens = map[string]int64{}
	for _, t := range []string{"yes", "no"} {
		for _, added := range tok.Added {
			if _, ok := f.Tokens[t]; !ok && added.Content == t {
				f.Tokens[t] = added.ID
			}
		}
		if id, ok := tok.Model.Vocab[t]; ok {
			f.Tokens[t] = id
		}
	}
	return nil
}
