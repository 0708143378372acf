package hf

// The limits of tokenizer files. Files above them are refused, which keeps time and memory within a small multiple of
// what published tokenizers need.
const (
	// MaxVocab bounds the tokens of a vocabulary, padding included, and its
	// merges. The largest vocabulary known, of XLM-V, has 901,629 tokens; Gemma
	// has 514,906 merges.
	MaxVocab = 1 << 21
	// MaxVocabBytes bounds the total bytes of the tokens of a vocabulary. Gemma's
	// have less than 3 million.
	MaxVocabBytes = 1 << 25
	// MaxAdded bounds the added tokens. Speech models have up to 66,000.
	MaxAdded = 1 << 18
	// maxAddedBytes bounds the total bytes of the added tokens and their normalized forms.
	maxAddedBytes = 1 << 23
	// maxWrap bounds the ids that a post-processor puts around a text; published
	// ones have two.
	maxWrap = 1 << 10
	// maxParts bounds the parts of a file's normalizer, pre-tokenizer and decoder
	// together; published ones have ten at most.
	maxParts = 100

	// LoadWork bounds the work of all texts that are encoded while a tokenizer is loaded: steps of regular expressions,
	// and bytes passed from one part to the next. Published tokenizers need a hundredth.
	LoadWork = 1 << 27
	// baseWork and byteWork bound the work of any other text: a constant, plus an amount per byte.
	baseWork = 1 << 20
	byteWork = 1 << 13

	// baseSize and byteSize bound the bytes that a text may grow to: a constant, plus a number per byte, that of the
	// longest compatibility decomposition.
	baseSize = 1 << 12
	byteSize = 64
)

// budget is the remaining work of a text, or of all texts of a tokenizer, and the limit of the text's size.
type budget struct {
	work *int
	size int // largest number of bytes
}

// budget returns the budget of a text of n bytes.
func (t *Tokenizer) budget(n int) budget {
	work := t.Work
	if work == nil {
		work = new(int)
		*work = baseWork + byteWork*n
	}
	return budget{work, baseSize + byteSize*n}
}

// spend subtracts work from the budget.
func (b budget) spend(work int) error {
	if *b.work -= work; *b.work < 0 {
		return unsupportedf("normalizer, pre-tokenizer, model or decoder take too long")
	}
	return nil
}

// check returns an error for a text of more bytes than allowed, and subtracts its size from the work.
func (b budget) check(size int) error {
	if size > b.size {
		return unsupportedf("a text grows to %d bytes, want at most %d", size, b.size)
	}
	return b.spend(size)
}
