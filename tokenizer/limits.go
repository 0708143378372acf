package tokenizer

import (
	"strings"

	"ggforge/tokenizer/internal/hf"
)

// The limits of tokenizer files. Package hf has the limits of tokenizer.json; the caller limits the sizes of files.
// Files above the limits are refused, which keeps time and memory within a small multiple of what published tokenizers
// need.
const (
	// maxVocab bounds the vocabulary, padding included.
	maxVocab = hf.MaxVocab
	// maxRankBytes bounds a token of a vocabulary in tiktoken's format, since
	// merging takes the square of its length; published ones have up to 256 bytes.
	maxRankBytes = 512
	// maxSplits bounds the merges of a vocabulary in tiktoken's format, all pairs of
	// tokens that make a third: bytes of merges per byte of the vocabulary. Published
	// vocabularies have four.
	maxSplits = 32
	// maxTemplates bounds the chat templates of a model; published ones have three.
	maxTemplates = 256
	// maxWarnings bounds the warnings of one kind.
	maxWarnings = 20
)

// newFiles returns the files of a directory without reading any.
func newFiles(dir Files, opt Options) *files {
	work := hf.LoadWork
	return &files{dir: dir, value: opt.Value, work: &work}
}

// atMost returns an error if a file has more than limit objects; what names them.
func atMost(file, what string, n, limit int) error {
	if n > limit {
		return badf(file, "%d %s, want at most %d", n, what, limit)
	}
	return nil
}

// textLines returns the lines of a text with line ends LF, without an empty line at
// the end. Their number is limited like that of tokens.
func textLines(file, text string) ([]string, error) {
	if err := atMost(file, "lines", strings.Count(text, "\n"), maxVocab); err != nil {
		return nil, err
	}
	if text == "" {
		return nil, nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n"), nil
}
