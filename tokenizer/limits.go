package tokenizer

import (
	"strings"

	"ggforge/tokenizer/internal/hf"
)

// The limits of tokenizer files; those of what tokenizer.json holds are in package hf, those of a file's size the
// caller's. Above them a file is refused: time and memory stay within a small multiple of published tokenizers'.
const (
	// maxVocab bounds the vocabulary, padding included.
	maxVocab = hf.MaxVocab
	// maxRankBytes bounds a token of a vocabulary in tiktoken's format, since
	// merging takes the square of its length; published ones have up to 256 bytes.
	maxRankBytes = 512
	// maxSplits bounds the merges of a vocabulary in tiktoken's format, where they
	// are all pairs of tokens that make a third: bytes for each byte of the
	// vocabulary. Published ones have four.
	maxSplits = 32
	// maxTemplates bounds the chat templates of a model; published ones have three.
	maxTemplates = 256
	// maxWarnings bounds the warnings of one kind.
	maxWarnings = 20
)

// newFiles returns the files of a directory, of which none has been read.
func newFiles(dir Files, opt Options) *files {
	work := hf.LoadWork
	return &files{dir: dir, value: opt.Value, work: &work}
}

// atMost refuses more than limit things of a file.
func atMost(file, what string, n, limit int) error {
	if n > limit {
		return badf(file, "%d %s, want at most %d", n, what, limit)
	}
	return nil
}

// textLines returns the lines of a text with line ends LF, of which there may be
// no more than a vocabulary has tokens; an empty one at the end is left out.
func textLines(file, text string) ([]string, error) {
	if err := atMost(file, "lines", strings.Count(text, "\n"), maxVocab); err != nil {
		return nil, err
	}
	if text == "" {
		return nil, nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n"), nil
}
