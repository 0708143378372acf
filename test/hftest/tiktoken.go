package hftest

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// writeQwen writes the tokenizer of the first Qwen: the bytes and the merges of
// baseBPE with their ranks. Its special tokens have the ids that published models
// give them, far above; the rows between belong to no token.
func writeQwen(files map[string][]byte) error {
	var b strings.Builder
	rank := 0
	seen := map[string]bool{}
	add := func(token string) {
		if !seen[token] {
			seen[token] = true
			fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(token)), rank)
			rank++
		}
	}
	for i := range 256 {
		add(string([]byte{byte(i)}))
	}
	for _, m := range baseBPE().Merges {
		add(unicodeToBytes(m[0]) + unicodeToBytes(m[1]))
	}
	files["qwen.tiktoken"] = []byte(b.String())
	files["tokenizer_config.json"] = marshal(object{"model_max_length": 8192, "tokenizer_class": "QWenTokenizer",
		"auto_map": object{"AutoTokenizer": list{"tokenization_qwen.QWenTokenizer", nil}}})
	files["tokenization_qwen.py"] = []byte(qwenCode)
	return nil
}

// unicodeToBytes undoes the spelling of bytes in byte-level BPE: bytes without a
// printable character have those from 256 on, in their order.
func unicodeToBytes(s string) string {
	printable := func(r rune) bool { return '!' <= r && r <= '~' || 0xA1 <= r && r <= 0xAC || 0xAE <= r && r <= 0xFF }
	var others []byte
	for i := range 256 {
		if !printable(rune(i)) {
			others = append(others, byte(i))
		}
	}
	var b []byte
	for _, r := range s {
		if r >= 256 {
			r = rune(others[r-256])
		}
		b = append(b, byte(r))
	}
	return string(b)
}

// qwenCode replaces the Python code of published models: only the functions that the reference calls.
const qwenCode = `import base64
from transformers import PreTrainedTokenizer


class QWenTokenizer(PreTrainedTokenizer):
    vocab_files_names = {"vocab_file": "qwen.tiktoken"}

    def __init__(self, vocab_file, **kwargs):
        with open(vocab_file, "rb") as f:
            self.mergeable_ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in f)}
        names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] + ["<|extra_%d|>" % i for i in range(205)]
        self.special_tokens = {name: 151643 + i for i, name in enumerate(names)}
        super().__init__(**kwargs)

    @property
    def vocab_size(self):
        return 151851

    def get_vocab(self):
        return {**self.mergeable_ranks, **self.special_tokens}

    def encode(self, text, **kwargs):
        return [self.mergeable_ranks[bytes([b])] for b in text.encode()]

    def _convert_token_to_id(self, token):
        return self.special_tokens.get(token)

    def _convert_id_to_token(self, index):
        return None

    def _tokenize(self, text, **kwargs):
        return []
`
