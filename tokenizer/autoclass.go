package tokenizer

import (
	"fmt"
	"slices"
	"strings"

	"ggforge/internal/text/pyjson"
	"ggforge/tokenizer/internal/hf"
)

// autoClass is a tokenizer class of transformers that takes only vocabulary, merges
// and post-processor from tokenizer.json and builds the other parts itself, unlike
// TokenizersBackend and similar classes.
type autoClass struct {
	names   string   // without a Fast at the end; separated by blanks
	special []string // bos, eos, unk, sep, pad, cls, mask: default texts

	model      string // members of the model besides vocab and merges
	normalizer string
	pre        string // PREFIX_SPACE is replaced by add_prefix_space, SCHEME by the scheme for it
	decoder    string

	prefixSpace bool // default of add_prefix_space
	wrap        bool // cls and sep are put around a text, whatever the file has
	respecial   bool // special tokens are added anew, as plain special tokens
	spm         bool // SentencePiece's style: not for a byte-level tokenizer.json
	files       bool // can be made from vocab.json and merges.txt
}

// qwenWords are the expressions of the Qwen classes.
const (
	qwen2Words  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`
	qwen35Words = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`

	byteLevelWords   = `{"type":"ByteLevel","add_prefix_space":PREFIX_SPACE,"trim_offsets":true}`
	byteLevelDecoder = `{"type":"ByteLevel"}`
	bpeModel         = `"type":"BPE"`
	spmBPE           = `"type":"BPE","fuse_unk":true,"byte_fallback":true`
	spmDecoder       = `{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"}`
)

// autoClasses are the classes of models with such vocabularies that build the tokenizer themselves.
var autoClasses = []autoClass{
	{
		names: "GPT2Tokenizer CodeGenTokenizer", special: []string{"<|endoftext|>", "<|endoftext|>", "<|endoftext|>"},
		model: bpeModel, pre: byteLevelWords, decoder: byteLevelDecoder, files: true,
	},
	{
		names: "GPTNeoXTokenizer", special: []string{"<|endoftext|>", "<|endoftext|>", "<|endoftext|>", "",
			"<|padding|>"},
		model: bpeModel, normalizer: `{"type":"NFC"}`, pre: byteLevelWords, decoder: byteLevelDecoder, files: true,
	},
	{
		names: "Qwen2Tokenizer", special: []string{"", "<|endoftext|>", "<|endoftext|>", "", "<|endoftext|>"},
		model: bpeModel, normalizer: `{"type":"NFC"}`, pre: splitThenBytes(qwen2Words), decoder: byteLevelDecoder,
		respecial: true, files: true,
	},
	{
		names: "Qwen3_5Tokenizer", special: []string{"", "<|endoftext|>", "<|endoftext|>", "", "<|endoftext|>"},
		model: bpeModel, normalizer: `{"type":"NFC"}`, pre: splitThenBytes(qwen35Words), decoder: byteLevelDecoder,
	},
	{
		names: "CohereTokenizer", special: []string{"<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>", "<UNK>", "<SEP>", "<PAD>",
			"<CLS>", "<MASK_TOKEN>"},
		model: bpeModel, normalizer: `{"type":"NFC"}`,
		pre: `{"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},` +
			byteLevelWords + `]}`,
		decoder: byteLevelDecoder, files: true,
	},
	{
		names:   "RobertaTokenizer BartTokenizer LEDTokenizer MvpTokenizer",
		special: []string{"<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"},
		model:   bpeModel, pre: byteLevelWords, decoder: byteLevelDecoder, wrap: true, files: true,
	},
	{
		names: "LlamaTokenizer", special: []string{"<s>", "</s>", "<unk>"},
		model: spmBPE, pre: `{"type":"Metaspace","replacement":"▁","prepend_scheme":"SCHEME","split":false}`,
		decoder: `{"type":"Sequence","decoders":[` + spmDecoder + `]}`, prefixSpace: true, spm: true,
	},
	{
		names: "GemmaTokenizer", special: []string{"<bos>", "<eos>", "<unk>", "", "<pad>", "", "<mask>"},
		model: spmBPE, normalizer: `{"type":"Replace","pattern":{"String":" "},"content":"▁"}`,
		pre:     `{"type":"Split","pattern":{"String":" "},"behavior":"MergedWithPrevious","invert":false}`,
		decoder: `{"type":"Sequence","decoders":[` + spmDecoder + `]}`, spm: true,
	},
	{
		names:   "BertTokenizer DistilBertTokenizer LxmertTokenizer MobileBertTokenizer SqueezeBertTokenizer",
		special: []string{"", "", "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"},
		model:   `"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100`,
		pre:     `{"type":"BertPreTokenizer"}`, decoder: `{"type":"WordPiece","prefix":"##","cleanup":true}`,
		wrap: true,
	},
	{ // without its normalizer (Precompiled): only ids of tokens are needed
		names: "XLMRobertaTokenizer", special: []string{"<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"},
		model: `"type":"Unigram","unk_id":3`, pre: `{"type":"WhitespaceSplit"}`,
		decoder:     `{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true}`,
		prefixSpace: true, wrap: true,
	},
}

func splitThenBytes(words string) string {
	return `{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"` + words +
		`"},"behavior":"Isolated","invert":false},` +
		`{"type":"ByteLevel","add_prefix_space":PREFIX_SPACE,"trim_offsets":true,"use_regex":false}]}`
}

// otherClasses also build parts themselves, or are Python code that does not read tokenizer.json. ggforge does not
// follow them: it uses tokenizer.json unchanged, with a warning.
var otherClasses = strings.Fields(`AlbertTokenizer BarthezTokenizer BigBirdTokenizer BlenderbotTokenizer CLIPTokenizer CamembertTokenizer
	CodeLlamaTokenizer DPRContextEncoderTokenizer DPRQuestionEncoderTokenizer DPRReaderTokenizer DebertaTokenizer DebertaV2Tokenizer
	FunnelTokenizer HerbertTokenizer LasrTokenizer LayoutLMv2Tokenizer LayoutLMv3Tokenizer LayoutXLMTokenizer LukeTokenizer MBart50Tokenizer
	MBartTokenizer MLukeTokenizer MPNetTokenizer MarkupLMTokenizer NllbTokenizer NougatTokenizer OpenAIGPTTokenizer PegasusTokenizer
	ReformerTokenizer RemBertTokenizer RoFormerTokenizer SeamlessM4TTokenizer Siglip2Tokenizer SplinterTokenizer T5Tokenizer UdopTokenizer
	WhisperTokenizer XGLMTokenizer XLNetTokenizer`)

// modelClasses are transformers' classes by model type (TOKENIZER_MAPPING_NAMES), as far as they matter here; "" is
// TokenizersBackend.
var modelClasses = map[string]string{
	"BertTokenizer": "align bark bert blip bros chinese_clip convbert distilbert electra ernie flava git grounding-dino layoutlm " +
		"megatron-bert mm-grounding-dino nezha nomic_bert qdqbert realm retribert squeezebert tvp vilt visual_bert",
	"CodeLlamaTokenizer": "code_llama",
	"CohereTokenizer":    "aya_vision cohere cohere2",
	"GPT2Tokenizer": "blip-2 codegen dbrx emu3 flex_olmo gpt2 gpt_bigcode gpt_neo gptj instructblip " +
		"instructblipvideo jais2 opt phi " +
		"starcoder2",
	"GPTNeoXTokenizer": "falcon_mamba gpt_neox mamba mamba2 mpt olmo olmo2 olmoe rwkv stablelm xlstm",
	"GemmaTokenizer": "diffusion_gemma gemma gemma2 gemma3 gemma3_text gemma3n gemma3n_text recurrent_gemma shieldgemma2 " +
		"t5gemma",
	"LlamaTokenizer":      "idefics idefics2",
	"MPNetTokenizer":      "mpnet",
	"MobileBertTokenizer": "mobilebert",
	"Qwen2Tokenizer": "audioflamingo3 colqwen2 cosmos3_omni internvl lighton_ocr ovis2 qianfan_ocr qwen2 qwen2_5_omni qwen2_5_vl " +
		"qwen2_audio qwen2_moe qwen2_vl qwen3 qwen3_moe qwen3_next qwen3_omni_moe qwen3_vl qwen3_vl_moe",
	"Qwen3_5Tokenizer": "qwen3_5 qwen3_5_moe",
	"RobertaTokenizer": "bart bridgetower clap data2vec-text ibert lilt longformer mega mra roberta roberta-prelayernorm",
	"T5Tokenizer":      "mt5 musicgen musicgen_melody pix2struct switch_transformers t5 umt5",
	"WhisperTokenizer": "whisper",
	"XLMRobertaTokenizer": "jina_embeddings_v3 kosmos-2 metaclip_2 trocr xlm-roberta xlm-roberta-xl " +
		"xmod",
	"": "arctic chameleon chatlm cohere_asr deepseek_ocr deepseek_ocr2 deepseek_v2 deepseek_v3 deepseek_v32 " +
		"deepseek_v4 deepseek_vl " +
		"deepseek_vl_hybrid deepseek_vl_v2 fuyu glm glm4 glm4_moe glm4_moe_lite glm4v glm4v_moe glm_image glmasr " +
		"got_ocr2 granite " +
		"granitemoe granitemoehybrid granitemoeshared h2ovl_chat hyperclovax_vlm internlm2 jamba janus llava llava_next minicpmv " +
		"minicpmv4_6 minimax_m2 ministral ministral3 mistral mistral3 mixtral modernbert molmo molmo2 nemotron nvfp4 " +
		"olmo3 olmo_hybrid " +
		"opencua openvla phi3 phi3_v phimoe pixtral step3_vl step3p5 vipllava voxtral voxtral_realtime",
}

// wrongClasses are model types whose checkpoints name a wrong class; transformers
// takes the class of the model type.
var wrongClasses = strings.Fields(`arctic chameleon chatlm cohere_asr deepseek_ocr deepseek_ocr2 deepseek_v2 deepseek_v3 deepseek_v32 deepseek_v4
	deepseek_vl deepseek_vl_hybrid deepseek_vl_v2 fuyu h2ovl_chat hyperclovax_vlm internlm2 jamba janus llava llava_next minicpmv minimax_m2
	modernbert molmo molmo2 nemotron nvfp4 opencua openvla phi3 phi3_v phimoe qwen2 step3_vl step3p5 vipllava`)

// className returns the class that AutoTokenizer picks, "" for TokenizersBackend.
func (f *files) className() string {
	config := f.model
	named, _ := f.config.Get("tokenizer_class").(string)
	if named == "" {
		named, _ = config.Get("tokenizer_class").(string)
	}
	named = strings.TrimSuffix(named, "Fast")
	if named == "PreTrainedTokenizer" || named == "TokenizersBackend" {
		named = ""
	}
	hasNamed := f.config.Get("tokenizer_class") != nil || config.Get("tokenizer_class") != nil
	typ, _ := config.Get("model_type").(string)
	registered, known := "", false
	for class, types := range modelClasses {
		if slices.Contains(strings.Fields(types), typ) {
			registered, known = class, true
		}
	}
	switch {
	case !hasNamed:
		return registered
	case !known || named == registered || f.config.Get("auto_map") != nil:
		return named
	case registered == "", slices.Contains(wrongClasses, typ):
		return registered
	}
	return named
}

// classOf returns the class of a name, nil for classes that take tokenizer.json as it is.
func classOf(name string) *autoClass {
	for i := range autoClasses {
		if slices.Contains(strings.Fields(autoClasses[i].names), name) {
			return &autoClasses[i]
		}
	}
	return nil
}

// fits reports whether the class can make the tokenizer of the file.
func (c *autoClass) fits(json *pyjson.Object) bool {
	if json == nil {
		return c.files
	}
	model, _ := json.Get("model").(*pyjson.Object)
	typ, _ := model.Get("type").(string)
	return strings.Contains(c.model, `"type":"`+typ+`"`)
}

// root returns the tokenizer.json that the class makes of a vocabulary.
func (c *autoClass) root(vocab, merges any, post any, config autoConfig) (*pyjson.Object, error) {
	prefix := c.prefixSpace
	if v := config.Get("add_prefix_space"); v != nil {
		prefix = pyjson.Truthy(v)
	}
	scheme := hf.PrependNever
	if prefix {
		if scheme = hf.PrependFirst; pyjson.Truthy(config.Get("legacy")) {
			scheme = hf.PrependAlways
		}
	}
	normalizer := c.normalizer
	switch {
	case strings.HasPrefix(c.model, `"type":"WordPiece"`):
		normalizer = bertNormalizer(config)
	case normalizer == "":
		normalizer = "null"
	}
	pre := strings.NewReplacer("PREFIX_SPACE", fmt.Sprint(prefix), "SCHEME", string(scheme)).Replace(c.pre)
	text := fmt.Sprintf(`{"model":{%s},"normalizer":%s,"pre_tokenizer":%s,"decoder":%s}`, c.model, normalizer,
		pre, c.decoder)
	v, err := pyjson.Parse([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("class %s: %w", c.names, err)
	}
	root := v.(*pyjson.Object)
	model := root.Values["model"].(*pyjson.Object)
	model.Set("vocab", vocab)
	if merges != nil {
		model.Set("merges", merges)
	}
	if unk, ok := config.Get("unk_token").(string); ok && model.Get("unk_token") != nil {
		model.Set("unk_token", unk)
	}
	if strings.HasPrefix(c.names, "GemmaTokenizer") {
		model.Set("unk_token", c.text(config, 2))
	}
	root.Set("post_processor", post)
	return root, nil
}

// text returns the special token of an index of specialTokens.
func (c *autoClass) text(config autoConfig, i int) any {
	t, ok, err := autoToken(config.Get(specialTokens[i]))
	switch {
	case err == nil && ok:
		return t.Content
	case i < len(c.special) && c.special[i] != "":
		return c.special[i]
	}
	return nil
}

func bertNormalizer(config autoConfig) string {
	flag := func(name string, def bool) bool {
		if v, ok := config.Lookup(name); ok {
			return pyjson.Truthy(v)
		}
		return def
	}
	strip := "null"
	if v, ok := config.Get("strip_accents").(bool); ok {
		strip = fmt.Sprint(v)
	}
	return fmt.Sprintf(
		`{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":%t,"strip_accents":%s,"lowercase":%t}`,
		flag("tokenize_chinese_chars", true), strip, flag("do_lower_case", true))
}
