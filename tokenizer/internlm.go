package tokenizer

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
	"ggforge/tokenizer/internal/hf"
)

// chatEnd ends a turn of InternLM's chat models, whose files name another token as eos.
const chatEnd = "<|im_end|>"

// InternLM2 is a tokenizer.model: tokens of added_tokens.json go to the end whatever their ids, [UNUSED…] pieces are
// unused, and the end of a chat turn is the eos of a chat model. Source: InternLM2Model (conversion/internlm.py).
type InternLM2 struct{}

func (InternLM2) load(f *files, v *Vocab, opt Options) error {
	m, err := f.readModel(spmFile)
	if err != nil {
		return err
	}
	if err := m.rows(v, spmFile, opt); err != nil {
		return err
	}
	if n := len(v.Tokens); n > len(m.pieces) {
		return badf(spmFile, "%d pieces, but the vocabulary has %d", len(m.pieces), n)
	} else if n < len(m.pieces) {
		v.warnf("%s: tokens from %d on ignored: the vocabulary has %d", spmFile, n, n)
	}
	for id, text := range v.Tokens {
		if strings.HasPrefix(text, "[UNUSED") {
			v.Types[id] = Unused
		}
	}
	added, err := readObjectIfFile(f.dir, addedTokensFile)
	if err != nil {
		return err
	}
	if added != nil {
		if err := atMost(addedTokensFile, "added tokens", len(added.Names), hf.MaxAdded); err != nil {
			return err
		}
		for _, text := range added.Names {
			if !utf8.ValidString(text) {
				return badf(addedTokensFile, "unpaired surrogate in %q", text)
			}
			v.append(text, -1000, UserDefined)
		}
	}
	eos := -1
	err = f.overrideAll(v, func(row int, t addedToken) {
		if t.text == chatEnd {
			eos = row
		}
	})
	if err != nil {
		return err
	}
	v.writeSPM()
	v.kvs.Set(keyAddSpacePrefix, gguf.Bool(m.addDummyPrefix))

	s, err := f.loadSpecial(v, opt, specialKinds, len(v.Tokens))
	if err != nil {
		return err
	}
	i := find(s.ids, "eos")
	if i < 0 {
		return badf(modelFile, "no eos_token_id, nor an eos_token that %s knows", jsonFile)
	}
	if eos >= 0 {
		s.ids[i].value = int64(eos)
	}
	return s.write(v)
}

// InternLM3 is a tokenizer.model; the end of a chat turn is the eos of a chat model. Source: InternLM3Model
// (conversion/internlm.py).
type InternLM3 struct{}

func (InternLM3) load(f *files, v *Vocab, opt Options) error {
	if err := f.spmRows(v, opt); err != nil {
		return err
	}
	v.writeSPM()
	s, err := f.loadSpecial(v, opt, specialKinds, len(v.Tokens))
	if err != nil {
		return err
	}
	if prefix, ok := f.config.Lookup("add_prefix_space"); ok {
		v.kvs.Set(keyAddSpacePrefix, gguf.Bool(pyjson.Truthy(prefix)))
	}
	tokens, err := f.decoderTokens()
	if err != nil {
		return err
	}
	for _, t := range tokens {
		id, err := strconv.ParseInt(t.id, 10, 64)
		if !t.special || err != nil {
			continue // an id beyond 64 bits was reported with the rows
		}
		// The reference passes the text as the kind: only a token that is
		// spelled like a kind, such as "bos", gets a key.
		if err := s.setID(v, configFile, t.text, id); err != nil {
			return err
		}
		if i := find(s.ids, "eos"); i >= 0 && t.text == chatEnd {
			s.ids[i].value = id
		}
	}
	return s.write(v)
}

func (v *Vocab) append(text string, score float32, typ TokenType) {
	v.Tokens = append(v.Tokens, text)
	v.Scores = append(v.Scores, score)
	v.Types = append(v.Types, typ)
}
