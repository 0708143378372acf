package tokenizer

// Xverse are SentencePiece's tokens from tokenizer.json alone, without scores. Source: XverseModel
// (conversion/xverse.py).
type Xverse struct{}

func (Xverse) load(f *files, v *Vocab, opt Options) error {
	if f.json == nil {
		return missingf(jsonFile, "no such file; the architecture has no other tokenizer")
	}
	tok, err := f.auto(v, opt)
	if err != nil {
		return err
	}
	vocab, added := tok.Vocab(), tok.Added()
	n := opt.VocabSize
	switch {
	case n == 0:
		n = len(vocab)
	case n < 0 || n > maxVocab:
		return badf(modelFile, "vocab_size %d, want 1 to %d", n, maxVocab)
	}
	v.Tokens, v.Types = make([]string, n), make([]TokenType, n)
	for text, id := range vocab {
		if id >= n {
			return badf(jsonFile, "token %q has id %d, but config.json says vocab_size %d", text, id, n)
		}
		if v.Types[id] == 0 || v.Tokens[id] < text {
			v.Tokens[id] = text
		}
		v.Types[id] = Normal
	}
	for id := range v.Tokens {
		t, isAdded := added[id]
		if isAdded {
			v.Tokens[id] = t.Content
		}
		switch {
		case v.Types[id] == 0:
			return badf(jsonFile, "no token has id %d, but config.json says vocab_size %d", id, n)
		case v.Tokens[id] == "\x00":
			v.Tokens[id], v.Types[id] = `<b'\x00'>`, Byte
		case hexPiece.MatchString(v.Tokens[id]):
			v.Types[id] = Byte
		case isAdded && t.Special:
			v.Types[id] = Control
		case isAdded:
			v.Types[id] = UserDefined
		}
	}
	v.writeSPM()
	return f.writeSpecial(v, opt)
}
