package tokenizer

// loaders has the rule sets except Llama's, which opens files itself. A loader fills v, which is initially empty, with
// the pairs to write.
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
