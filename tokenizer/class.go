package tokenizer

// Class names the set of rules by which a family of architectures picks and
// writes its tokenizer: in the reference, the class that defines set_vocab.
type Class string

// The rule sets. The comment gives the place in the reference's conversion
// package.
const (
	ClassLlama         Class = "llama"        // llama.py LlamaModel
	ClassMistral       Class = "mistral"      // base.py _set_vocab_mistral, for Mistral's own format
	ClassGPT2          Class = "gpt2"         // base.py TextModel: _set_vocab_gpt2, for byte-level BPE
	ClassSPMOrGPT2     Class = "spm-or-gpt2"  // qwen.py Qwen2Model and others: tokenizer.model, else byte-level BPE
	ClassGPT2OrSPM     Class = "gpt2-or-spm"  // mpt.py MPTModel
	ClassSentencePiece Class = "spm"          // base.py _set_vocab_sentencepiece, nothing else
	ClassGemma         Class = "gemma"        // gemma.py GemmaModel
	ClassGemma2        Class = "gemma2"       // gemma.py Gemma2Model
	ClassGemma3        Class = "gemma3"       // gemma.py Gemma3Model
	ClassPhi3          Class = "phi3"         // phi.py Phi3MiniModel
	ClassNemotron      Class = "nemotron"     // nemotron.py NemotronModel
	ClassInternLM2     Class = "internlm2"    // internlm.py InternLM2Model
	ClassBert          Class = "bert"         // bert.py BertModel
	ClassRoberta       Class = "roberta"      // bert.py RobertaModel
	ClassXLMRoberta    Class = "xlm-roberta"  // bert.py XLMRobertaModel
	ClassNomicBert     Class = "nomic-bert"   // bert.py NomicBertModel
	ClassJinaBertV2    Class = "jina-bert-v2" // bert.py JinaBertV2Model
	ClassModernBert    Class = "modern-bert"  // bert.py ModernBertModel
	ClassT5            Class = "t5"           // t5.py T5Model, T5EncoderModel
	ClassRWKV          Class = "rwkv"         // base.py _set_vocab_rwkv_world
	ClassRWKV7         Class = "rwkv7"        // rwkv.py Rwkv7Model, the same; ARwkv7Model is ClassSPMOrGPT2
	ClassGLM           Class = "glm"          // base.py _set_vocab_glm
	ClassGLM4          Class = "glm4"         // glm.py Glm4Model
	ClassChatGLM       Class = "chatglm"      // chatglm.py ChatGLMModel
	ClassMamba         Class = "mamba"        // mamba.py MambaModel
	ClassMamba2        Class = "mamba2"       // mamba.py Mamba2Model
	ClassJamba         Class = "jamba"        // jamba.py JambaModel
	ClassFalconH1      Class = "falcon-h1"    // falcon_h1.py FalconH1Model
	ClassInternLM3     Class = "internlm3"    // internlm.py InternLM3Model
	ClassMiniCPM       Class = "minicpm"      // minicpm.py MiniCPMModel
	ClassErnie         Class = "ernie"        // ernie.py Ernie4_5Model
	ClassDream         Class = "dream"        // dream.py DreamModel
	ClassLLaDA         Class = "llada"        // llada.py LLaDAModel
	ClassHunYuan       Class = "hunyuan"      // hunyuan.py HunYuanModel
	ClassHunYuanMoE    Class = "hunyuan-moe"  // hunyuan.py HunYuanMoEModel
	ClassDeepSeek2     Class = "deepseek2"    // deepseek.py DeepseekV2Model
	ClassXverse        Class = "xverse"       // xverse.py XverseModel
	ClassArctic        Class = "arctic"       // arctic.py ArcticModel
	ClassPlamo         Class = "plamo"        // plamo.py PlamoModel
	ClassPlamo2        Class = "plamo2"       // plamo.py Plamo2Model
	ClassPlamo3        Class = "plamo3"       // plamo.py Plamo3Model
	ClassGrok          Class = "grok"         // grok.py GrokModel
	ClassGraniteHybrid Class = "granite-hybrid"
	ClassDeci          Class = "deci"         // deci.py DeciModel
	ClassQwen          Class = "qwen"         // base.py _set_vocab_qwen, tiktoken
	ClassOpenELM       Class = "openelm"      // openelm.py OpenELMModel
	ClassGemma4        Class = "gemma4"       // gemma.py Gemma4Model
	ClassEuroBert      Class = "eurobert"     // bert.py EuroBertModel
	ClassSolarOpen     Class = "solar-open"   // glm.py SolarOpenModel
	ClassDots3         Class = "dots3"        // dots3.py Dots3NoteModel
	ClassNemotronH     Class = "nemotron-h"   // nemotron.py NemotronHModel
	ClassRefact        Class = "refact"       // refact.py RefactModel
	ClassMiniMax       Class = "minimax"      // minimax.py MiniMaxText01Model
	ClassLaguna        Class = "laguna"       // laguna.py LagunaModel
	ClassNone          Class = "none"         // base.py _set_vocab_none, for models without text
	ClassD1            Class = "d1"           // lfm2.py D1Model
	ClassOpenJev       Class = "openjev"      // qwen.py OpenJevModel
	ClassPplxDecider   Class = "pplx-decider" // pplx_decider.py PplxDeciderModel
	ClassVllmD3        Class = "vllm-d3"      // vllm_d3.py VllmD3Model
	ClassClef          Class = "clef"         // clef.py ClefModel
	ClassVllmDecision2 Class = "vllm-decision2"
	ClassLev           Class = "lev"          // lev.py LevModel
	ClassKev           Class = "kev"          // lev.py KevModel
	ClassNimble        Class = "nimble"       // lev.py NimbleModel
	ClassD1Omni        Class = "d1-omni"      // lfm2.py D1OmniModel
	ClassDecider       Class = "decider"      // bert.py ModernBertDecisionModel
	ClassQwen3ASR      Class = "qwen3-asr"    // qwen3vl.py Qwen3ASRTextModel
	ClassQwen3Omni     Class = "qwen3-omni"   // qwen3vl.py Qwen3OmniMoeTextModel
	ClassKimiLinear    Class = "kimi-linear"  // kimi_linear.py KimiLinearModel
	ClassKimiK3        Class = "kimi-k3"      // kimi_k3.py KimiK3Model
	ClassMuseGlimmer   Class = "muse-glimmer" // muse_glimmer.py MuseGlimmerModel
	ClassQwen3TTS      Class = "qwen3-tts"    // qwen3tts.py Qwen3TTSTalkerModel
	ClassPocketTTS     Class = "pocket-tts"   // pockettts.py PocketTTSModel
	ClassTarget        Class = "target"       // stands for the class of a draft model's target; callers replace it
)
