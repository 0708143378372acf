package tokenizer

import (
	"fmt"
	"strconv"

	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
)

// kimiSpecials is the number of special tokens of Kimi; those that
// tokenizer_config.json does not name are reserved.
const kimiSpecials = 256

// kimiPre is the only pre-tokenizer that the reference accepts for Kimi's vocabulary.
const kimiPre = "kimi-k2"

// kimi loads Kimi's vocabulary for rule sets that use it if the files of byte-level BPE are missing. special are its
// special tokens.
func (f *files) kimi(v *Vocab, opt Options) (first int, special []string, err error) {
	r, err := f.readRanks(kimiFile)
	if err != nil {
		return 0, nil, err
	}
	merges, err := r.merges(false)
	if err != nil {
		return 0, nil, err
	}
	tokens, err := f.decoderTokens()
	if err != nil {
		return 0, nil, err
	}
	named := make(map[string]string)
	for _, t := range tokens {
		named[t.id] = t.text
	}
	first = len(r.order)
	for i := range kimiSpecials {
		text, ok := named[strconv.Itoa(first+i)]
		if !ok {
			text = fmt.Sprintf("<|reserved_token_%d|>", first+i)
		}
		special = append(special, text)
	}
	if err := r.rows(v, opt.VocabSize, first, special); err != nil {
		return 0, nil, err
	}
	if err := r.setPre(v, opt, kimiWords); err != nil {
		return 0, nil, err
	}
	if v.Pre != kimiPre {
		return 0, nil, unsupportedf("%s: pre-tokenizer %q, want %q for this architecture", kimiFile, v.Pre, kimiPre)
	}
	return first, special, f.writeRanks(v, opt, merges)
}

// loadDeepSeek2 follows DeepseekV2Model (conversion/deepseek.py).
func loadDeepSeek2(f *files, v *Vocab, opt Options) error {
	if f.json != nil || !isFile(f.dir, kimiFile) {
		return loadGPT2(f, v, opt)
	}
	_, _, err := f.kimi(v, opt)
	return err
}

// loadKimiLinear follows KimiLinearModel (conversion/kimi_linear.py).
func loadKimiLinear(f *files, v *Vocab, opt Options) error {
	if f.json != nil || !isFile(f.dir, kimiFile) {
		return loadGPT2(f, v, opt)
	}
	first, special, err := f.kimi(v, opt)
	if err != nil {
		return err
	}
	eos := f.config.Get("eos_token")
	if o, ok := eos.(*pyjson.Object); ok {
		eos = o.Get("content")
	}
	for i, text := range special {
		if text == eos {
			v.kvs.Set(specialKey("eos").id, gguf.Uint32(uint32(first+i)))
			return nil
		}
	}
	return badf(configFile, "eos_token: want one of the special tokens, found %s", pyjson.Describe(eos))
}

// loadKimiK3 follows KimiK3Model (conversion/kimi_k3.py): the token of config.json ends
// a turn. Without a template the reference takes one from its source tree.
func loadKimiK3(f *files, v *Vocab, opt Options) error {
	if err := loadKimiLinear(f, v, opt); err != nil {
		return err
	}
	if eos := f.member("eos_token_id"); eos != nil {
		if err := v.writeConfigID("eos", "eos_token_id", eos); err != nil {
			return err
		}
	}
	if _, ok := v.kvs.Get(keyChatTemplate); !ok {
		v.warnf("%s: no chat template is written: the model comes with a program instead of one", configFile)
	}
	return nil
}
