package tokenizer

import (
	"fmt"
	"strings"

	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
)

// Tokenizers of TTS models, which have audio codes after the text tokens.

// talkerConfig is the member of config.json with the talker of Qwen's TTS models.
const talkerConfig = "talker_config"

// Qwen3TTS is tokenizer.model, else byte-level BPE, with the audio codes at the end. Options.VocabSize is the number of
// text tokens. Source: Qwen3TTSTalkerModel (conversion/qwen3tts.py).
type Qwen3TTS struct{}

func (Qwen3TTS) load(f *files, v *Vocab, opt Options) error {
	codes, err := f.codecTokens()
	if err != nil {
		return err
	}
	if isFile(f.dir, spmFile) {
		if err := f.spmRows(v, opt); err != nil {
			return err
		}
		v.Scores = append(v.Scores, make([]float32, len(codes))...)
		v.addCodes(codes)
		v.writeSPM()
		return f.writeSpecial(v, opt)
	}
	if err := f.base(v, opt); err != nil {
		return err
	}
	v.addCodes(codes)
	v.Model = "gpt2"
	if err := f.writeBPE(v, opt, &special{kinds: specialKinds}, nil); err != nil {
		return err
	}
	v.kvs.Delete(keyChatTemplate) // not a chat model
	return nil
}

func (v *Vocab) addCodes(codes []string) {
	for _, text := range codes {
		v.Tokens, v.Types = append(v.Tokens, text), append(v.Types, Control)
	}
}

// codecTokens returns the names of the audio codes: their numbers, except for codes whose ids are in members of
// talker_config that end in _id.
//
//	"codec_bos_id": 2149                      <|codec_bos|>
//	"codec_language_id": {"chinese": 2055}    <|codec_language_chinese|>
//
// If two members have the same id, the later name counts.
func (f *files) codecTokens() ([]string, error) {
	talker, ok := f.model.Get(talkerConfig).(*pyjson.Object)
	if !ok {
		return nil, badf(modelFile, "%s: want an object", talkerConfig)
	}
	size, ok := pyjson.Integer(talker.Get("vocab_size"))
	if !ok || size.Sign() <= 0 || !size.IsInt64() || size.Int64() > maxVocab {
		return nil, badf(modelFile, "%s.vocab_size: want 1 to %d, found %s", talkerConfig, maxVocab,
			pyjson.Describe(talker.Get("vocab_size")))
	}
	names := make([]string, size.Int64())
	for i := range names {
		names[i] = fmt.Sprintf("<|codec_%d|>", i)
	}
	name := func(key, text string, value any) error {
		id, ok := pyjson.Integer(value)
		if !ok || !id.IsInt64() || id.Sign() < 0 || id.Int64() >= int64(len(names)) {
			return badf(modelFile, "%s.%s: want the id of one of %d codes, found %s", talkerConfig, key, len(names),
				pyjson.Describe(value))
		}
		names[id.Int64()] = "<|" + text + "|>"
		return nil
	}
	for _, key := range talker.Names {
		prefix, ok := strings.CutSuffix(key, "_id")
		if !ok {
			continue
		}
		switch value := talker.Get(key).(type) {
		case *pyjson.Object:
			for _, sub := range value.Names {
				if err := name(key+"."+sub, prefix+"_"+sub, value.Get(sub)); err != nil {
					return nil, err
				}
			}
		default:
			if _, ok := pyjson.Integer(value); !ok {
				continue // null, or no id
			}
			if err := name(key, prefix, value); err != nil {
				return nil, err
			}
		}
	}
	return names, nil
}

// beforeVoice is the key of config.json that is true if a Pocket TTS has a learned vector before a voice.
const beforeVoice = "insert_bos_before_voice"

// PocketTTS is a unigram model; the embedding has more rows than the model has pieces. Source: PocketTTSModel
// (conversion/pockettts.py).
type PocketTTS struct{}

func (PocketTTS) load(f *files, v *Vocab, opt Options) error {
	m, err := f.readModel(spmFile)
	if err != nil {
		return err
	}
	if m.modelType != spmUnigram {
		return badf(spmFile, "SentencePiece model of type %d, want %d (unigram)", m.modelType, spmUnigram)
	}
	if err := f.spmRows(v, opt); err != nil {
		return err
	}
	own := []string{"<|pad|>", "<|audio_bos|>"}
	if f.member(beforeVoice) == true {
		own = []string{"<|pad|>", "<|bos_before_voice|>", "<|audio_bos|>"}
	}
	first := len(v.Tokens) - len(own)
	if first < 0 {
		return badf(spmFile, "a vocabulary of %d tokens, want at least %d", len(v.Tokens), len(own))
	}
	for i, text := range own {
		v.set(first+i, text, -1000, Control)
	}
	v.Model, v.Pre = "t5", "default"
	v.writeRows()
	v.kvs.Set(keyAddSpacePrefix, gguf.Bool(m.addDummyPrefix))
	v.writeNormalizer(m.removeExtraWhitespaces, m.charsMap)
	for _, kind := range []string{"bos", "eos"} {
		v.kvs.Set(specialKey(kind).add, gguf.Bool(false))
	}
	return nil
}
