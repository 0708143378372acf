package convert

import (
	"fmt"

	"ggforge/arch/config"
	"ggforge/model/limits"
	"ggforge/tokenizer/vocab"
)

// checkCounts refuses counts that runtimes refuse, by themselves or given the tensors. For ids of special tokens out of
// range it only warns, because llama.cpp's converter writes them.
func (j *Job) checkCounts(cfg *config.View) error {
	if err := limits.Check(j.metadata); err != nil {
		return fmt.Errorf("%s: %w", cfg.FileName(), err)
	}
	if len(j.Plan) > 0 && !j.options.VocabOnly {
		names := map[string]bool{}
		for _, t := range j.Plan {
			names[t.Name] = true
		}
		if err := limits.CheckExperts(j.metadata, func(name string) bool { return names[name] }); err != nil {
			return fmt.Errorf("%s: %w", cfg.FileName(), err)
		}
	}
	of, n := vocab.OutOfRange(j.metadata)
	for _, kv := range of {
		j.warnf("%s = %s, but the vocabulary has %d tokens: programs take another token in its place", kv.Key,
			kv.Value.Short(), n)
	}
	return nil
}
