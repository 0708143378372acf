package tokenizer

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
	"ggforge/tokenizer/internal/hf"
)

// The rule sets built on SentencePiece's tokenizer.model.

// loaders holds the rule sets but Llama's, which reads files by itself. v is empty
// at first; a loader leaves the pairs to write in it.
var loaders = map[Class]func(f *files, v *Vocab, opt Options) error{
	ClassSentencePiece: loadSPM,
	ClassGemma:         loadGemma,
	ClassGemma2:        loadGemma2,
	ClassGemma3:        loadGemma3,
	ClassPhi3:          loadPhi3,
	ClassNemotron:      loadNemotron,
	ClassInternLM2:     loadInternLM2,
	ClassInternLM3:     loadInternLM3,
	ClassMiniCPM:       loadSPM,
	ClassErnie:         loadErnie,
	ClassPlamo:         loadSPM,
	ClassGrok:          loadGrok,
	ClassArctic:        loadArctic,
	ClassT5:            loadT5,
	ClassXLMRoberta:    loadXLMRoberta,
	ClassRWKV:          loadRWKV,
	ClassRWKV7:         loadRWKV,
	ClassPlamo2:        loadPlamo2,
	ClassPlamo3:        loadPlamo3,

	ClassGPT2:          loadGPT2,
	ClassSPMOrGPT2:     loadSPMOrGPT2,
	ClassGPT2OrSPM:     loadGPT2OrSPM,
	ClassMistral:       loadMistral,
	ClassDream:         loadDream,
	ClassLLaDA:         loadLLaDA,
	ClassGLM:           loadGLM,
	ClassGLM4:          loadGLM4,
	ClassChatGLM:       loadChatGLM,
	ClassSolarOpen:     loadSolarOpen,
	ClassDots3:         loadDots3,
	ClassBert:          loadBert,
	ClassNomicBert:     loadNomicBert,
	ClassRoberta:       loadRoberta,
	ClassJinaBertV2:    loadJinaBertV2,
	ClassModernBert:    loadModernBert,
	ClassEuroBert:      loadEuroBert,
	ClassMamba:         loadMamba,
	ClassMamba2:        loadMamba2,
	ClassGraniteHybrid: loadGraniteHybrid,
	ClassNemotronH:     loadNemotronH,
	ClassOpenELM:       loadOpenELM,
	ClassJamba:         loadJamba,
	ClassFalconH1:      loadGPT2,
	ClassDeci:          loadDeci,
	ClassXverse:        loadXverse,
	ClassGemma4:        loadGemma4,
	ClassRefact:        loadRefact,
	ClassMiniMax:       loadMiniMax,
	ClassLaguna:        loadLaguna,
	ClassMuseGlimmer:   loadMuseGlimmer,
	ClassHunYuan:       loadHunYuan,
	ClassHunYuanMoE:    loadHunYuanMoE,
	ClassQwen:          loadQwen,
	ClassDeepSeek2:     loadDeepSeek2,
	ClassKimiLinear:    loadKimiLinear,
	ClassNone:          loadNone,
	ClassD1:            asking(d1Template),
	ClassOpenJev:       asking(openJevTemplate),
	ClassPplxDecider:   asking(pplxTemplate),
	ClassVllmD3:        asking(d3Template),
	ClassClef:          asking(clefTemplate),
	ClassVllmDecision2: asking(decision2Template),
	ClassLev:           asking(levTemplate),
	ClassKev:           asking(kevTemplate),
	ClassNimble:        asking(nimbleTemplate),
	ClassKimiK3:        loadKimiK3,
	ClassD1Omni:        loadD1Omni,
	ClassDecider:       loadDecider,
	ClassQwen3ASR:      loadQwen3ASR,
	ClassQwen3Omni:     loadQwen3Omni,
	ClassQwen3TTS:      loadQwen3TTS,
	ClassPocketTTS:     loadPocketTTS,
}

// specialKinds are the kinds of special token that most rule sets look for.
var specialKinds = []string{"bos", "eos", "unk", "sep", "pad", "cls", "mask"}

// loadSpecial collects the special tokens of the given kinds. Ids from nVocab
// on are dropped; -1 for no limit.
func (f *files) loadSpecial(v *Vocab, opt Options, kinds []string, nVocab int) (*special, error) {
	s := &special{files: f, kinds: kinds, nVocab: nVocab}
	return s, s.load(v)
}

// writeSpecial writes the special tokens of the usual kinds, ids below the
// size of the vocabulary only.
func (f *files) writeSpecial(v *Vocab, opt Options) error {
	s, err := f.loadSpecial(v, opt, specialKinds, len(v.Tokens))
	if err != nil {
		return err
	}
	return s.write(v)
}

// writeSPM adds the keys of a SentencePiece vocabulary.
func (v *Vocab) writeSPM() {
	v.Model, v.Pre = "llama", "default"
	v.writeRows()
}

// loadSPM follows _set_vocab_sentencepiece (conversion/base.py).
func loadSPM(f *files, v *Vocab, opt Options) error {
	if err := f.spmRows(v, opt); err != nil {
		return err
	}
	v.writeSPM()
	return f.writeSpecial(v, opt)
}

// loadErnie follows Ernie4_5Model (conversion/ernie.py).
func loadErnie(f *files, v *Vocab, opt Options) error {
	if err := loadSPM(f, v, opt); err != nil {
		return err
	}
	if prefix, ok := f.config.Lookup("add_prefix_space"); ok {
		v.kvs.Set(keyAddSpacePrefix, gguf.Bool(pyjson.Truthy(prefix)))
	}
	return nil
}

// loadGemma follows GemmaModel (conversion/gemma.py): the infill tokens of
// CodeGemma are written for every Gemma.
func loadGemma(f *files, v *Vocab, opt Options) error {
	if err := loadSPM(f, v, opt); err != nil {
		return err
	}
	s, err := f.loadSpecial(v, opt, []string{"prefix", "suffix", "middle", "fsep", "eot"}, -1)
	if err != nil {
		return err
	}
	for _, e := range []struct {
		kind string
		id   int64
	}{{"prefix", 67}, {"suffix", 69}, {"middle", 68}, {"fsep", 70}, {"eot", 107}} {
		if err := s.setID(v, "", e.kind, e.id); err != nil {
			return err
		}
	}
	s.template = nil // written already
	if err := s.write(v); err != nil {
		return err
	}
	v.kvs.Set(keyAddSpacePrefix, gguf.Bool(false))
	return nil
}

// loadGemma2 follows Gemma2Model (conversion/gemma.py).
func loadGemma2(f *files, v *Vocab, opt Options) error {
	if err := loadSPM(f, v, opt); err != nil {
		return err
	}
	v.kvs.Set(keyAddSpacePrefix, gguf.Bool(false))
	return nil
}

// loadGemma3 follows Gemma3Model (conversion/gemma.py).
func loadGemma3(f *files, v *Vocab, opt Options) error {
	if isFile(f.dir, spmFile) {
		return loadGemma2(f, v, opt)
	}
	return loadGPT2(f, v, opt)
}

// loadNemotron follows NemotronModel (conversion/nemotron.py).
func loadNemotron(f *files, v *Vocab, opt Options) error {
	if err := loadSPM(f, v, opt); err != nil {
		return err
	}
	v.kvs.Set(keyPadID, gguf.Uint32(0))
	v.kvs.Set(keyUnkID, gguf.Uint32(1))
	return nil
}

// loadPhi3 follows Phi3MiniModel (conversion/phi.py): as for SentencePiece, but
// the added tokens of tokenizer.json count, too, a token is a control token
// only when its file says so, and every token must have its row.
func loadPhi3(f *files, v *Vocab, opt Options) error {
	if f.config != nil {
		class, ok := f.config.Lookup("tokenizer_class")
		if !ok {
			return badf(configFile, "no tokenizer_class")
		}
		if class == "GPT2Tokenizer" { // Phi-4
			return loadGPT2(f, v, opt)
		}
	}
	m, err := f.readModel(spmFile)
	if err != nil {
		return err
	}
	if err := m.allRows(v, spmFile, opt); err != nil {
		return err
	}
	if err := f.addedTokens(v); err != nil {
		return err
	}
	if err := f.overrideAll(v, nil); err != nil {
		return err
	}
	v.writeSPM()
	return f.writeSpecial(v, opt)
}

// overrideAll lays the added tokens of tokenizer_config.json and then those of
// tokenizer.json over the rows; see is called with each one's row.
func (f *files) overrideAll(v *Vocab, see func(row int, t addedToken)) error {
	for _, list := range []func() ([]addedToken, error){f.decoderTokens, f.jsonTokens} {
		tokens, err := list()
		if err != nil {
			return err
		}
		for _, t := range tokens {
			row, err := v.rowOf(t)
			if err != nil {
				return err
			}
			typ := UserDefined
			if t.special {
				typ = Control
			}
			v.override(t.file, row, t.text, typ)
			if see != nil {
				see(row, t)
			}
		}
	}
	return nil
}

// rowOf is row for a token that must have one.
func (v *Vocab) rowOf(t addedToken) (int, error) {
	row, err := v.row(t.file, t.id, t.text)
	if err == nil && row < 0 {
		err = badf(t.file, "token %q: id %s, but the vocabulary has %d", t.text, t.id, len(v.Tokens))
	}
	return row, err
}

// chatEnd ends a turn of InternLM's chat models, whose files name another token as eos.
const chatEnd = "<|im_end|>"

// loadInternLM2 follows InternLM2Model (conversion/internlm.py): tokens of
// added_tokens.json go to the end whatever their ids, [UNUSED…] pieces are
// unused, and the end of a chat turn is the eos of a chat model.
func loadInternLM2(f *files, v *Vocab, opt Options) error {
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

// loadGrok follows GrokModel (conversion/grok.py).
func loadGrok(f *files, v *Vocab, opt Options) error {
	if isFile(f.dir, spmFile) {
		return loadSPM(f, v, opt)
	}
	for _, name := range []string{jsonFile, chatJinjaFile} {
		if !isFile(f.dir, name) {
			return missingf(name, "no such file, and no %s", spmFile)
		}
	}
	return loadGPT2(f, v, opt)
}

// loadArctic follows ArcticModel (conversion/arctic.py): the added tokens of
// tokenizer_config.json redefine pieces of the model, and keep the type unknown
// and the score 0 that special tokens have there.
func loadArctic(f *files, v *Vocab, opt Options) error {
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

// allRows is rows for a vocabulary that must have room for every piece.
func (m *spmModel) allRows(v *Vocab, file string, opt Options) error {
	if err := m.rows(v, file, opt); err != nil {
		return err
	}
	if len(m.pieces) > len(v.Tokens) {
		return badf(file, "%d pieces, but the vocabulary has %d", len(m.pieces), len(v.Tokens))
	}
	return nil
}

// loadInternLM3 follows InternLM3Model (conversion/internlm.py).
func loadInternLM3(f *files, v *Vocab, opt Options) error {
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
		// The text is where a kind belongs: only a token spelled like one,
		// such as "bos", gets a key.
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
