package tokenizer

import (
	"slices"
	"strings"

	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
)

// The rule sets built on the tokenizer that transformers makes of the files,
// byte-level BPE for most of them.

// gpt2 is loadGPT2 with a change of the special tokens before they are written.
func (f *files) gpt2(v *Vocab, opt Options, change func(s *special) error) error {
	if err := f.base(v, opt); err != nil {
		return err
	}
	v.Model = "gpt2"
	return f.writeGPT2(v, opt, specialKinds, change)
}

// writeGPT2 writes rows that are complete, merges and special tokens.
func (f *files) writeGPT2(v *Vocab, opt Options, kinds []string, change func(s *special) error) error {
	v.writeRows()
	s := &special{files: f, kinds: kinds, nVocab: -1, wantMerges: true}
	if err := s.load(v); err != nil {
		return err
	}
	if change != nil {
		if err := change(s); err != nil {
			return err
		}
	}
	return s.write(v)
}

// kindToken names the added token that gives a kind its id.
type kindToken struct{ kind, token string }

// gpt2Named is loadGPT2 for families whose files do not say which of the added
// tokens are special: each kind that has no id takes that of its token.
func gpt2Named(named ...kindToken) func(f *files, v *Vocab, opt Options) error {
	return func(f *files, v *Vocab, opt Options) error {
		tok, err := f.auto(v, opt)
		if err != nil {
			return err
		}
		added := tok.Added()
		return f.gpt2(v, opt, func(s *special) error {
			for _, n := range named {
				id := -1
				for i, t := range added {
					if t.Content == n.token {
						id = i
					}
				}
				if id < 0 {
					return badf(f.vocabFile(), "no added token %q, which is the %s token of this architecture",
						n.token, n.kind)
				}
				if err := s.setID(v, f.vocabFile(), n.kind, int64(id)); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

var (
	// base.py _set_vocab_glm
	loadGLM = gpt2Named(kindToken{"bos", "[gMASK]"}, kindToken{"eot", "<|user|>"}, kindToken{"unk", "<|endoftext|>"},
		kindToken{"eom", "<|observation|>"})
	// glm.py Glm4Model, base.py _set_vocab_glmedge
	loadGLM4 = gpt2Named(kindToken{"eos", "<|endoftext|>"}, kindToken{"eot", "<|user|>"},
		kindToken{"unk", "<|endoftext|>"}, kindToken{"bos", "<|endoftext|>"})
	// glm.py SolarOpenModel
	loadSolarOpen = gpt2Named(kindToken{"eos", "<|endoftext|>"}, kindToken{"eot", "<|endoftext|>"},
		kindToken{"unk", "<unk>"}, kindToken{"bos", "<|startoftext|>"})
	// dots3.py Dots3NoteModel
	loadDots3 = gpt2Named(kindToken{"eot", "<|endofassistant|>"})
	// chatglm.py ChatGLMModel, but for ChatGLM3
	loadChatGLM4 = gpt2Named(kindToken{"eos", "<|endoftext|>"}, kindToken{"eot", "<|user|>"},
		kindToken{"unk", "<|endoftext|>"})
)

// loadChatGLM follows ChatGLMModel (conversion/chatglm.py). Where the only
// vocabulary is tokenizer.model, as in ChatGLM2, the reference takes ChatGLM3 by its
// name and refuses the others: it looks for a fingerprint, and knows none.
func loadChatGLM(f *files, v *Vocab, opt Options) error {
	if path, _ := f.member("_name_or_path").(string); strings.Contains(path, "THUDM/chatglm3-6b") {
		return loadChatGLM3(f, v, opt)
	}
	if f.json == nil && !isFile(f.dir, vocabJSONFile) && isFile(f.dir, spmFile) {
		return unsupportedf(
			"%s: the tokenizer of ChatGLM2 and older models is not converted: of those with this file the reference "+
				"converts THUDM/chatglm3-6b, "+
				"by _name_or_path of %s", spmFile, modelFile)
	}
	if opt.VocabSize == 0 {
		return badf(modelFile, "no vocab_size")
	}
	return loadChatGLM4(f, v, opt)
}

// loadBert follows BertModel (conversion/bert.py). Words get the blank before
// them that SentencePiece writes, and their continuations lose the ##.
//
//	vocab.txt   the   ##s   [CLS]
//	written     ▁the  s     [CLS]
func loadBert(f *files, v *Vocab, opt Options) error {
	words, err := f.withVocabText()
	if err != nil {
		return err
	}
	if err := words.base(v, opt); err != nil {
		return err
	}
	if err := f.writeTypeCount(v); err != nil {
		return err
	}
	for id, text := range v.Tokens {
		if v.Types[id] == Control {
			continue
		}
		if rest, ok := strings.CutPrefix(text, "##"); ok {
			v.Tokens[id] = rest
		} else {
			v.Tokens[id] = "▁" + text
		}
	}
	v.Model = "bert"
	v.writeRows()
	return f.writeSpecial(v, opt)
}

// writeTypeCount adds how many types of sequence the model has.
func (f *files) writeTypeCount(v *Vocab) error {
	n, err := f.integer("type_vocab_size", 1)
	if err == nil {
		v.kvs.Set(keyTokenTypeCount, gguf.Uint32(uint32(n)))
	}
	return err
}

// loadRoberta follows RobertaModel (conversion/bert.py).
func loadRoberta(f *files, v *Vocab, opt Options) error {
	if f.json == nil {
		return loadBert(f, v, opt)
	}
	if err := loadGPT2(f, v, opt); err != nil {
		return err
	}
	return f.writeTypeCount(v)
}

// loadNomicBert follows NomicBertModel (conversion/bert.py): the kind of
// tokenizer.json decides.
func loadNomicBert(f *files, v *Vocab, opt Options) error {
	if f.json == nil {
		return missingf(jsonFile, "no such file")
	}
	model, _ := f.json.Get("model").(*pyjson.Object)
	switch typ := model.Get("type"); typ {
	case "Unigram":
		return f.xlmRoberta(v, opt, pyjson.Truthy(f.member("moe_every_n_layers")))
	case "WordPiece":
		return loadBert(f, v, opt)
	default:
		return unsupportedf("%s: model type %s, want Unigram or WordPiece for this architecture", jsonFile,
			kindName(typ))
	}
}

// loadJinaBertV2 follows JinaBertV2Model (conversion/bert.py): BERT's rules, or
// BPE on words, or byte-level BPE.
func loadJinaBertV2(f *files, v *Vocab, opt Options) error {
	if f.config == nil {
		return missingf(configFile, "no such file")
	}
	switch class := f.config.Get("tokenizer_class"); class {
	case "BertTokenizer":
		return loadBert(f, v, opt)
	case "RobertaTokenizer":
	default:
		return unsupportedf("%s: tokenizer_class %s, want BertTokenizer or RobertaTokenizer for this architecture",
			configFile, kindName(class))
	}
	pre, _ := f.json.Get("pre_tokenizer").(*pyjson.Object)
	if pre.Get("type") != "Whitespace" {
		if err := loadGPT2(f, v, opt); err != nil {
			return err
		}
	} else {
		opt.Pre = "whitespace"
		if err := f.base(v, opt); err != nil {
			return err
		}
		v.Model = "whitespace"
		if err := f.writeGPT2(v, opt, specialKinds, nil); err != nil {
			return err
		}
	}
	v.kvs.Set(keyTokenTypeCount, gguf.Uint32(2))
	return nil
}

// loadModernBert follows ModernBertModel (conversion/bert.py).
func loadModernBert(f *files, v *Vocab, opt Options) error {
	for _, kind := range []string{"bos", "eos", "sep"} {
		v.kvs.Set(specialKey(kind).add, gguf.Bool(true))
	}
	if err := f.base(v, opt); err != nil {
		return err
	}
	if v.Pre == "mmbert" { // its added tokens for runs of blanks never match
		for id, text := range v.Tokens {
			if v.Types[id] == UserDefined && text != "" && strings.Trim(text, " ") == "" {
				v.Tokens[id], v.Types[id] = strings.Repeat("▁", len(text)), Normal
			}
		}
	}
	v.Model = "gpt2"
	return f.writeGPT2(v, opt, specialKinds, nil)
}

// loadEuroBert follows EuroBertModel (conversion/bert.py).
func loadEuroBert(f *files, v *Vocab, opt Options) error {
	v.kvs.Set(keyAddBOS, gguf.Bool(false))
	return loadGPT2(f, v, opt)
}

// loadRefact follows RefactModel (conversion/refact.py).
func loadRefact(f *files, v *Vocab, opt Options) error {
	if err := loadGPT2(f, v, opt); err != nil {
		return err
	}
	// GGUF has no keys for the infill tokens of which the reference knows the ids
	s, err := f.loadSpecial(v, opt, []string{"prefix", "suffix", "middle", "eot"}, -1)
	if err != nil {
		return err
	}
	s.template = nil // written already
	return s.write(v)
}

// loadMiniMax follows MiniMaxText01Model (conversion/minimax.py).
func loadMiniMax(f *files, v *Vocab, opt Options) error {
	if err := loadGPT2(f, v, opt); err != nil {
		return err
	}
	return f.writeJinja(v)
}

// writeJinja puts the text of chat_template.jinja, if there is one, in the
// place of whatever template was found.
func (f *files) writeJinja(v *Vocab) error {
	if !isFile(f.dir, chatJinjaFile) {
		return nil
	}
	text, err := readText(f.dir, chatJinjaFile)
	if err != nil {
		return err
	}
	v.kvs.Set(keyChatTemplate, gguf.String(text))
	return nil
}

// loadLaguna follows LagunaModel (conversion/laguna.py): of several eos tokens
// the first that is not bos, too, ends a turn.
func loadLaguna(f *files, v *Vocab, opt Options) error {
	if err := loadMiniMax(f, v, opt); err != nil {
		return err
	}
	list, _ := f.member("eos_token_id").([]any)
	for _, e := range list {
		if e != f.member("bos_token_id") {
			id, ok := pyjson.Integer(e)
			if !ok || !id.IsUint64() || id.Uint64() >= maxVocab {
				return badf(modelFile, "eos_token_id: want a list of ids, found %s in it", pyjson.Describe(e))
			}
			v.kvs.Set(specialKey("eot").id, gguf.Uint32(uint32(id.Uint64())))
			break
		}
	}
	return nil
}

// loadMuseGlimmer follows MuseGlimmerModel (conversion/muse_glimmer.py).
func loadMuseGlimmer(f *files, v *Vocab, opt Options) error {
	if err := loadGPT2(f, v, opt); err != nil {
		return err
	}
	if id := slices.Index(v.Tokens, "<|eot|>"); id >= 0 {
		v.kvs.Set(specialKey("eot").id, gguf.Uint32(uint32(id)))
	}
	return nil
}

// loadQwen3Omni follows Qwen3OmniMoeTextModel (conversion/qwen3vl.py): the token that
// ends a turn is bos and eos.
func loadQwen3Omni(f *files, v *Vocab, opt Options) error {
	if err := loadGPT2(f, v, opt); err != nil {
		return err
	}
	return f.writeTurnEnds(v)
}

// loadQwen3ASR follows Qwen3ASRTextModel (conversion/qwen3vl.py), which also puts the
// plain form of chats in the place of the template for transcriptions.
func loadQwen3ASR(f *files, v *Vocab, opt Options) error {
	if err := loadSPMOrGPT2(f, v, opt); err != nil {
		return err
	}
	v.kvs.Set(keyChatTemplate, gguf.String(chatML))
	return f.writeTurnEnds(v)
}

const turnEnd = "<|im_end|>"

// chatML is the template of turns between <|im_start|> and turnEnd.
const chatML = `{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '` +
	turnEnd + `' + '\n'}}{% endfor %}` +
	`{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`

// writeTurnEnds makes the first added token turnEnd of tokenizer_config.json bos and
// eos; without one these stay what they are.
func (f *files) writeTurnEnds(v *Vocab) error {
	tokens, err := f.decoderTokens()
	if err != nil {
		return err
	}
	for _, t := range tokens {
		if t.text != turnEnd {
			continue
		}
		row, err := v.row(t.file, t.id, t.text)
		if err != nil {
			return err
		}
		if row < 0 {
			return badf(t.file, "added token %q has id %s, which the vocabulary does not have", t.text, t.id)
		}
		for _, kind := range []string{"bos", "eos"} {
			v.kvs.Set(specialKey(kind).id, gguf.Uint32(uint32(row)))
		}
		return nil
	}
	return nil
}

// padVocab rounds the vocabulary up to a multiple.
func (o *Options) padVocab(multiple int) error {
	if multiple <= 0 {
		return badf(modelFile, "pad_vocab_size_multiple: want more than 0, got %d", multiple)
	}
	if o.VocabSize <= 0 || o.VocabSize > maxVocab || multiple > maxVocab {
		return badf(modelFile, "vocab_size %d, want 1 to %d", o.VocabSize, maxVocab)
	}
	o.VocabSize = (o.VocabSize + multiple - 1) / multiple * multiple
	return nil
}

// errBuiltin refuses a directory without a tokenizer, for which the reference
// takes one from its source tree.
func errBuiltin(name string) error {
	return unsupportedf(
		"neither %s nor %s: the vocabulary that replaces them (models/ggml-vocab-%s.gguf of llama.cpp's sources) is "+
			"not part of this program; "+
			"put the tokenizer files of the model next to the weights", jsonFile, spmFile, name)
}

// loadMamba follows MambaModel (conversion/mamba.py).
func loadMamba(f *files, v *Vocab, opt Options) error {
	multiple, err := f.integer("pad_vocab_size_multiple", 8)
	if err != nil {
		return err
	}
	if err := opt.padVocab(multiple); err != nil {
		return err
	}
	switch {
	case f.json != nil:
		return loadGPT2(f, v, opt)
	case isFile(f.dir, spmFile):
		return loadSPM(f, v, opt)
	}
	return errBuiltin("gpt-neox")
}

// loadMamba2 follows Mamba2Model (conversion/mamba.py).
func loadMamba2(f *files, v *Vocab, opt Options) error {
	multiple, err := f.integer("pad_vocab_size_multiple", 16)
	if err != nil {
		return err
	}
	return f.mamba2(v, opt, multiple)
}

// loadGraniteHybrid follows GraniteHybridModel (conversion/granite.py): Mamba2's
// rules, without padding when all layers are attention.
func loadGraniteHybrid(f *files, v *Vocab, opt Options) error {
	multiple := 1
	ssm, err := f.hasSSM()
	if err != nil {
		return err
	}
	if ssm {
		multiple = 8
	}
	return f.mamba2(v, opt, multiple)
}

// hasSSM reports whether a Granite has layers other than attention: by type, by
// index, or one in so many.
func (f *files) hasSSM() (bool, error) {
	n, err := f.integer("num_hidden_layers", 0)
	if err != nil {
		return false, err
	}
	attention := make(map[int]bool)
	types, _ := f.member("layer_types").([]any)
	indices, _ := f.member("attn_layer_indices").([]any)
	switch {
	case len(types) > 0:
		for i, t := range types {
			attention[i] = t == "attention"
		}
	case len(indices) > 0:
		for _, e := range indices {
			if i, ok := pyjson.Integer(e); ok && i.IsInt64() {
				attention[int(i.Int64())] = true
			}
		}
	default:
		period, err := f.integer("attn_layer_period", 0)
		if err != nil {
			return false, err
		}
		offset, err := f.integer("attn_layer_offset", -1)
		if err != nil {
			return false, err
		}
		if period == 0 || offset < 0 {
			return false, badf(modelFile,
				"neither layer_types nor attn_layer_indices nor attn_layer_period and attn_layer_offset")
		}
		return n > 0 && (period > 1 || offset != 0), nil
	}
	for i := range n {
		if !attention[i] {
			return true, nil
		}
	}
	return false, nil
}

func (f *files) mamba2(v *Vocab, opt Options, multiple int) error {
	if err := opt.padVocab(multiple); err != nil {
		return err
	}
	switch {
	case isFile(f.dir, spmFile):
		return loadSPM(f, v, opt)
	case isFile(f.dir, spmV3File):
		return unsupportedf("%s: rename it to %s", spmV3File, spmFile)
	case f.json != nil:
		return loadGPT2(f, v, opt)
	}
	return errBuiltin("gpt-neox")
}

// loadNemotronH follows NemotronHModel (conversion/nemotron.py).
func loadNemotronH(f *files, v *Vocab, opt Options) error {
	if err := opt.padVocab(8); err != nil {
		return err
	}
	return loadGPT2(f, v, opt)
}

// loadOpenELM follows OpenELMModel (conversion/openelm.py).
func loadOpenELM(f *files, v *Vocab, opt Options) error {
	if isFile(f.dir, spmFile) {
		return loadSPM(f, v, opt)
	}
	return errBuiltin("llama-spm")
}

// loadJamba follows JambaModel (conversion/jamba.py).
func loadJamba(f *files, v *Vocab, opt Options) error {
	if isFile(f.dir, spmFile) {
		return loadSPM(f, v, opt)
	}
	if err := loadLlamaHF(f, v, opt); err != nil {
		return err
	}
	v.kvs.Set(keyAddSpacePrefix, gguf.Bool(false))
	return nil
}

// deciVocab is the vocabulary of the Deci models that have Llama 3's tokenizer.
const deciVocab = 128256

// loadDeci follows DeciModel (conversion/deci.py).
func loadDeci(f *files, v *Vocab, opt Options) error {
	if opt.VocabSize == deciVocab || opt.VocabSize == 0 {
		return loadGPT2(f, v, opt)
	}
	return loadLlamaHF(f, v, opt)
}

// loadXverse follows XverseModel (conversion/xverse.py): SentencePiece's tokens
// from tokenizer.json alone, without scores.
func loadXverse(f *files, v *Vocab, opt Options) error {
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

// gemma4Visible are control tokens that chat parsers must see.
var gemma4Visible = []string{"<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>",
	"<tool_response|>", `<|"|>`}

// loadGemma4 follows Gemma4Model (conversion/gemma.py): LlamaHfVocab's rows,
// and merges.
func loadGemma4(f *files, v *Vocab, opt Options) error {
	rows := &Vocab{}
	if err := loadLlamaHF(f, rows, opt); err != nil {
		return err
	}
	v.Tokens, v.Scores, v.Types = rows.Tokens, rows.Scores, rows.Types
	for id, text := range v.Tokens {
		if slices.Contains(gemma4Visible, text) {
			v.Types[id] = UserDefined
		}
	}
	v.Model = "gemma4"
	if err := f.writeGPT2(v, opt, specialKinds, nil); err != nil {
		return err
	}
	v.kvs.Set(keyAddSpacePrefix, gguf.Bool(false))
	v.kvs.Set(keyAddBOS, gguf.Bool(true))
	return nil
}

// diffusion is loadGPT2 with added tokens as they are: those that the files call
// special are control tokens, whatever the others look like.
func (f *files) diffusion(v *Vocab, opt Options) error {
	if err := f.base(v, opt); err != nil {
		return err
	}
	tok, err := f.auto(v, opt)
	if err != nil {
		return err
	}
	for id, t := range tok.Added() {
		if id >= len(v.Tokens) {
			continue
		}
		v.Tokens[id], v.Types[id] = t.Content, UserDefined
		if t.Special {
			v.Types[id] = Control
		}
	}
	v.Model = "gpt2"
	return f.writeGPT2(v, opt, specialKinds, nil)
}

// loadDream follows DreamModel (conversion/dream.py).
func loadDream(f *files, v *Vocab, opt Options) error {
	if isFile(f.dir, spmFile) {
		return loadSPM(f, v, opt)
	}
	return f.diffusion(v, opt)
}

// loadLLaDA follows LLaDAModel (conversion/llada.py).
func loadLLaDA(f *files, v *Vocab, opt Options) error {
	if err := f.diffusion(v, opt); err != nil {
		return err
	}
	v.kvs.Set(keyAddBOS, gguf.Bool(true))
	return nil
}
