package checkpoint

import "path"

// limits are the largest sizes of side files in bytes, by the last component of their names; the first match counts.
// They are several times the sizes of published files: the largest tokenizer.json has some 40 MB, cards and
// configurations have less than 8 MB.
var limits = []struct {
	pattern string
	bytes   int64
}{
	{"tokenizer.json", 128 << 20},
	{"tokenizer.jsonl", 128 << 20},
	{"tekken.json", 128 << 20},
	{"vocab.json", 64 << 20},
	{"vocab.txt", 64 << 20},
	{"merges.txt", 64 << 20},
	{"*.model", 128 << 20},
	{"*.tiktoken", 64 << 20},
	{"rwkv_vocab_v*.txt", 64 << 20},
	{"tokenizer_config.json", 32 << 20},
	{"added_tokens.json", 32 << 20},
	{"special_tokens_map.json", 32 << 20},
	{"*.jinja", 4 << 20},
	{"*", 16 << 20}, // configurations and cards
}

// limit returns the largest size of the side file of that name.
func limit(name string) int64 {
	for _, l := range limits {
		if ok, _ := path.Match(l.pattern, path.Base(name)); ok {
			return l.bytes
		}
	}
	return 0
}
