package tokenizer

// Arctic is a tokenizer.model in which the added tokens of tokenizer_config.json redefine pieces, and keep the type
// unknown and the score 0 that special tokens have there. Source: ArcticModel (conversion/arctic.py).
type Arctic struct{}

func (Arctic) load(f *files, v *Vocab, opt Options) error {
	m, err := f.readModel(spmFile)
	if err != nil {
		return err
	}
	if err := m.allRows(v, spmFile, opt); err != nil {
		return err
	}
	tokens, err := f.decoderTokens()
	if err != nil {
		return err
	}
	for _, t := range tokens {
		row, err := v.row(t.file, t.id, t.text)
		if err != nil {
			return err
		}
		if row < 0 {
			continue
		}
		if v.Types[row] != Unused && v.Tokens[row] != t.text {
			v.warnf("%s: token %d replaced: %q by %q", t.file, row, v.Tokens[row], t.text)
		}
		if !t.special {
			v.set(row, t.text, -10000, UserDefined)
			continue
		}
		unk, ok := f.config.Lookup("unk_token")
		if !ok {
			return badf(configFile, "special tokens, but no unk_token")
		}
		v.set(row, t.text, 0, Control)
		if unk == t.text {
			v.Types[row] = Unknown
		}
	}
	v.writeSPM()
	return f.writeSpecial(v, opt)
}
