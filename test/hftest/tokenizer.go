package hftest

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// kind is one sort of tokenizer files.
type kind struct {
	pre   string           // the reference's name of the pre-tokenizer, "" where there is none
	facts map[string]int64 // values of $NAME in config.json
	write func(files map[string][]byte) error
}

// tokenizerOf returns the tokenizer of a spec. The kinds, with their vocabulary sizes, are
//
//	spm spm-nojson     SentencePiece BPE as in Llama 2, with and without tokenizer.json; 1000 pieces
//	gemma              SentencePiece BPE with Gemma's pieces; 1200
//	t5 xlmr            SentencePiece unigram; 1020, 1002
//	unigram            the same model as tokenizer.model and nothing else; 1000
//	bert               WordPiece
//	bpe:FAMILY         byte-level BPE; 1000 and the special tokens of the family (see families)
//	roberta            byte-level BPE in RoBERTa's order
//	qwen-tiktoken      ranks in tiktoken's format, and code that reads them for the reference; 151936
//	rwkv               a vocabulary of RWKV's World models; 557, of which id 0 is not in the file
//	chameleon          byte-level BPE after 4 special tokens and 8192 tokens of images
//	none               no files
//
// In config.json, $bos, $eos, $pad, $unk and $vocab stand for ids and the size.
func tokenizerOf(s *Spec) kind {
	k := tokenizerKind(s.Tokenizer, s.AddedTokens)
	if s.Pre != "" {
		k.pre = s.Pre
	}
	return k
}

func tokenizerKind(name string, added []string) kind {
	extra := int64(len(added))
	switch name {
	case "none":
		return kind{facts: map[string]int64{"vocab": 1000}, write: func(map[string][]byte) error { return nil }}
	case "spm", "spm-nojson":
		return kind{facts: map[string]int64{"bos": 1, "eos": 2, "unk": 0, "pad": 2, "vocab": 1000 + extra},
			write: func(f map[string][]byte) error { return writeSPM(f, "tiny-spm", 1000, added, name == "spm") }}
	case "gemma":
		return kind{facts: map[string]int64{"bos": 2, "eos": 1, "unk": 3, "pad": 0, "vocab": 1200 + extra},
			write: func(f map[string][]byte) error { return writeSPM(f, "tiny-spm-gemma", 1200, added, true) }}
	case "t5":
		return kind{facts: map[string]int64{"eos": 1, "pad": 0, "unk": 2, "vocab": 1020}, write: writeT5}
	case "unigram":
		return kind{facts: map[string]int64{"vocab": 1000}, write: func(f map[string][]byte) error {
			f["tokenizer.model"] = mustRead("tiny-unigram-t5/spiece.model")
			return nil
		}}
	case "xlmr":
		return kind{facts: map[string]int64{"bos": 0, "eos": 2, "pad": 1, "unk": 3, "vocab": 1002}, write: writeXLMR}
	case "bert":
		return kind{pre: "jina-v2-en", facts: map[string]int64{"pad": 0, "unk": 1, "vocab": int64(len(bertWords()))},
			write: writeBert}
	case "roberta":
		return kind{pre: "roberta-bpe", facts: map[string]int64{"bos": 0, "eos": 2, "pad": 1, "unk": 3,
			"vocab": int64(len(baseBPE().Vocab)) + 5}, write: writeRoberta}
	case "qwen-tiktoken":
		return kind{pre: "qwen2", facts: map[string]int64{"vocab": 151936}, write: writeQwen}
	case "chameleon":
		return kind{pre: "chameleon", facts: map[string]int64{"bos": 0, "pad": 1, "eos": 2, "unk": 3,
			"vocab": int64(imagesEnd + len(baseBPE().Vocab))}, write: writeChameleon}
	case "rwkv":
		return kind{facts: map[string]int64{"bos": 0, "eos": 0, "vocab": 557}, write: writeRWKV}
	}
	if family, ok := strings.CutPrefix(name, "bpe:"); ok {
		if f, ok := families[family]; ok {
			return f.kind(added)
		}
	}
	panic(fmt.Sprintf("hftest: unknown tokenizer %q", name))
}

// A family has the properties of one published tokenizer.
type family struct {
	split  string // pre-tokenizer, a key of splits
	tokens string // special tokens in id order, separated by blanks
	bos    string
	eos    string
	pad    string
	unk    string
	class  string // of the transformers library
	post   string // post-processor: byte (ByteLevel), bos (adds bos), "" (none)
	chat   bool   // has a chat template
	pre    string
}

const fastClass = "PreTrainedTokenizerFast"

var families = map[string]family{
	"gpt2": {"byte", "<|endoftext|>", "<|endoftext|>", "<|endoftext|>", "", "<|endoftext|>", "GPT2Tokenizer",
		"byte", false, "gpt-2"},
	"llama3": {"llama3",
		"<|begin_of_text|> <|end_of_text|> <|reserved_special_token_0|> <|start_header_id|> <|end_header_id|> <|eot_id|>", "<|begin_of_text|>", "<|end_of_text|>", "", "", fastClass, "bos", true, "llama-bpe"},
	"qwen2": {"llama3", "<|endoftext|> <|im_start|> <|im_end|>", "", "<|im_end|>", "<|endoftext|>", "",
		"Qwen2Tokenizer", "byte", true, "qwen2"},
	"deepseek-v3": {"llama3", "<｜begin▁of▁sentence｜> <｜end▁of▁sentence｜> <｜▁pad▁｜>", "<｜begin▁of▁sentence｜>",
		"<｜end▁of▁sentence｜>", "<｜▁pad▁｜>", "", "LlamaTokenizerFast", "bos", true, "deepseek-v3"},
	"deepseek-llm": {"llama3", "<｜begin▁of▁sentence｜> <｜end▁of▁sentence｜>", "<｜begin▁of▁sentence｜>",
		"<｜end▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "", "LlamaTokenizerFast", "bos", false, "deepseek-llm"},
	"starcoder": {"digits", "<|endoftext|> <fim_prefix> <fim_middle> <fim_suffix>", "<|endoftext|>",
		"<|endoftext|>", "", "<|endoftext|>", "GPT2Tokenizer", "", false, "starcoder"},
	"refact": {"digits", "<|end_of_text|> <fim_prefix> <fim_pad>", "<|end_of_text|>", "<|end_of_text|>",
		"<|end_of_text|>", "<|end_of_text|>", "GPT2Tokenizer", "", false, "refact"},
	"falcon": {"digits", ">>TITLE<< >>ABSTRACT<< <|endoftext|>", "", "<|endoftext|>", "", "", fastClass, "",
		false, "falcon"},
	"neox": {"byte", "<|endoftext|> <|padding|>", "<|endoftext|>", "<|endoftext|>", "", "<|endoftext|>",
		"GPTNeoXTokenizer", "byte", false, "olmo"},
	"bloom": {"llama3", "<unk> <s> </s> <pad>", "<s>", "</s>", "<pad>", "<unk>", fastClass, "byte",
		false, "bloom"},
	"command-r": {"digits", "<PAD> <UNK> <BOS_TOKEN> <|END_OF_TURN_TOKEN|>", "<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>",
		"<PAD>", "", "CohereTokenizer", "bos", true, "command-r"},
	"stablelm2": {"llama3", "<|endoftext|> <|im_start|> <|im_end|>", "", "<|endoftext|>", "<|endoftext|>", "",
		"GPT2Tokenizer", "byte", false, "stablelm2"},
	"phi-2": {"byte", "<|endoftext|>", "<|endoftext|>", "<|endoftext|>", "", "<|endoftext|>",
		"CodeGenTokenizer", "byte", false, "phi-2"},
	"olmo2": {"llama3", "<|endoftext|> <|pad|>", "<|endoftext|>", "<|endoftext|>", "<|pad|>", "<|endoftext|>",
		"GPT2Tokenizer", "byte", false, "dbrx"},
	"glm4": {"llama3",
		"<|endoftext|> [MASK] [gMASK] [sMASK] <sop> <eop> <|system|> <|user|> <|assistant|> <|observation|>", "",
		"<|endoftext|>", "<|endoftext|>", "", fastClass, "", true, "glm4"},
	"smollm": {"digits", "<|endoftext|> <|im_start|> <|im_end|>", "<|im_start|>", "<|im_end|>", "<|im_end|>",
		"<|endoftext|>", "GPT2Tokenizer", "", true, "smollm"},
	"exaone": {"digits", "[PAD] [BOS] [EOS] [UNK] [|endofturn|]", "[BOS]", "[EOS]", "[PAD]", "[UNK]",
		"GPT2Tokenizer", "", true, "exaone"},
	"gpt-4o": {"llama3", "<|startoftext|> <|endoftext|> <|return|> <|channel|> <|start|> <|end|> <|message|>",
		"<|startoftext|>", "<|return|>", "<|endoftext|>", "", fastClass, "byte", true, "gpt-4o"},
	"llama4": {"llama3", "<|begin_of_text|> <|end_of_text|> <|eot|> <|finetune_right_pad|>", "<|begin_of_text|>",
		"<|eot|>", "<|finetune_right_pad|>", "", fastClass, "bos", false, "llama4"},
	"laguna": {"llama3", "〈|UNK|〉 〈|MASK|〉 〈|EOS|〉 〈|PAD|〉 <assistant> </assistant>", "〈|EOS|〉", "</assistant>",
		"〈|PAD|〉", "〈|UNK|〉", fastClass, "", true, "laguna"},
	"lfm2": {"llama3", "<|pad|> <|startoftext|> <|endoftext|> <|im_start|> <|im_end|>", "<|startoftext|>",
		"<|im_end|>", "<|pad|>", "", fastClass, "bos", true, "lfm2"},
	"hunyuan-dense": {"llama3", "<｜hy_begin▁of▁sentence｜> <｜hy_place▁holder▁no▁2｜> <｜hy_▁pad▁｜>",
		"<｜hy_begin▁of▁sentence｜>", "<｜hy_place▁holder▁no▁2｜>", "<｜hy_▁pad▁｜>", "", fastClass, "bos", false,
		"hunyuan-dense"},
}

const chat = "{% for m in messages %}<|{{ m['role'] }}|>\n{{ m['content'] }}{{ eos_token }}\n{% endfor %}{% if " +
	"add_generation_prompt %}<|assistant|>\n{% endif %}"

type (
	object = map[string]any
	list   = []any
)

// addedToken is a member of added_tokens.
func addedToken(id int, text string, special bool) object {
	return object{"id": id, "content": text, "single_word": false, "lstrip": false, "rstrip": false,
		"normalized": false, "special": special}
}

// decoderMap is added_tokens in the form of tokenizer_config.json.
func decoderMap(tokens list) object {
	m := object{}
	for _, t := range tokens {
		t := t.(object)
		o := object{}
		for k, v := range t {
			if k != "id" {
				o[k] = v
			}
		}
		m[fmt.Sprint(t["id"])] = o
	}
	return m
}

func byteLevel(regex bool) object {
	return object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": regex}
}

// splits are the pre-tokenizers of families.
var splits = map[string]object{
	"byte": byteLevel(true),
	"digits": {"type": "Sequence", "pretokenizers": list{object{"type": "Digits", "individual_digits": true},
		byteLevel(true)}},
	"llama3": {"type": "Sequence", "pretokenizers": list{object{"type": "Split", "behavior": "Isolated",
		"invert": false, "pattern": object{
			"Regex": `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`}}, byteLevel(false)}},
}

func specialPart(text string, typeID int) object {
	return object{"SpecialToken": object{"id": text, "type_id": typeID}}
}

func sequencePart(id string, typeID int) object {
	return object{"Sequence": object{"id": id, "type_id": typeID}}
}

func specialTokens(ids map[string]int) object {
	m := object{}
	for text, id := range ids {
		m[text] = object{"id": text, "ids": list{id}, "tokens": list{text}}
	}
	return m
}

// beforeEach is the post-processor that puts a token before each sequence.
func beforeEach(text string, id int) object {
	return object{"type": "TemplateProcessing", "single": list{specialPart(text, 0), sequencePart("A", 0)},
		"pair":           list{specialPart(text, 0), sequencePart("A", 0), specialPart(text, 1), sequencePart("B", 1)},
		"special_tokens": specialTokens(map[string]int{text: id})}
}

type bpe struct {
	Vocab  map[string]int
	Merges [][2]string
}

var baseBPE = sync.OnceValue(func() *bpe {
	var b bpe
	if err := json.Unmarshal(mustRead("tiny-bpe/bpe.json"), &b); err != nil {
		panic(err)
	}
	return &b
})

// merges returns the merges as text, one pair each.
func (b *bpe) merges() []string {
	var all []string
	for _, m := range b.Merges {
		all = append(all, m[0]+" "+m[1])
	}
	return all
}

func mergesFile(merges []string) []byte {
	return []byte("#version: 0.2\n" + strings.Join(merges, "\n") + "\n")
}

func bpeModel(vocab map[string]int, merges []string, ignoreMerges bool) object {
	return object{"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil,
		"end_of_word_suffix": nil,
		"fuse_unk":           false, "byte_fallback": false, "ignore_merges": ignoreMerges, "vocab": vocab,
		"merges": merges}
}

func (f family) kind(added []string) kind {
	names := append(strings.Fields(f.tokens), added...)
	base := len(baseBPE().Vocab)
	facts := map[string]int64{"vocab": int64(base + len(names))}
	for fact, text := range map[string]string{"bos": f.bos, "eos": f.eos, "pad": f.pad, "unk": f.unk} {
		if text != "" {
			facts[fact] = int64(base + slices.Index(names, text))
		}
	}
	return kind{pre: f.pre, facts: facts, write: func(files map[string][]byte) error {
		vocab, merges := baseBPE().Vocab, baseBPE().merges()
		var tokens list
		for i, text := range names {
			tokens = append(tokens, addedToken(base+i, text, true))
		}
		var post any
		switch f.post {
		case "byte":
			post = byteLevel(true)
		case "bos":
			post = beforeEach(f.bos, base+slices.Index(names, f.bos))
		}
		files["tokenizer.json"] = marshal(object{"version": "1.0", "truncation": nil, "padding": nil,
			"added_tokens": tokens, "normalizer": nil,
			"pre_tokenizer": splits[f.split], "post_processor": post, "decoder": byteLevel(true),
			"model": bpeModel(vocab, merges, f.pre == "llama-bpe")})
		if f.class != fastClass {
			files["vocab.json"], files["merges.txt"] = marshal(vocab), mergesFile(merges)
		}
		special := object{}
		config := object{"added_tokens_decoder": decoderMap(tokens), "clean_up_tokenization_spaces": false,
			"model_max_length": 2048, "tokenizer_class": f.class}
		for key, text := range map[string]string{"bos_token": f.bos, "eos_token": f.eos, "pad_token": f.pad,
			"unk_token": f.unk} {
			if text != "" {
				special[key], config[key] = text, text
			}
		}
		if f.chat {
			config["chat_template"] = chat
		}
		files["tokenizer_config.json"], files["special_tokens_map.json"] = marshal(config), marshal(special)
		return nil
	}}
}

// imagesEnd is the token after Chameleon's tokens of images.
const imagesEnd = 8196

// writeChameleon writes byte-level BPE whose texts have tokens from imagesEnd on.
func writeChameleon(files map[string][]byte) error {
	names := []string{"<s>", "<pad>", "</s>", "<unk>"}
	vocab := map[string]int{}
	var tokens list
	for i, name := range names {
		vocab[name] = i
		tokens = append(tokens, addedToken(i, name, true))
	}
	for i := len(names); i < imagesEnd; i++ {
		vocab[fmt.Sprintf("IMGIMG%04dZ", i)] = i
	}
	for text, id := range baseBPE().Vocab {
		vocab[text] = imagesEnd + id
	}
	files["tokenizer.json"] = marshal(object{"version": "1.0", "truncation": nil, "padding": nil,
		"added_tokens": tokens, "normalizer": nil, "pre_tokenizer": splits["digits"],
		"post_processor": beforeEach("<s>", 0), "decoder": byteLevel(true),
		"model": bpeModel(vocab, baseBPE().merges(), false)})
	special := object{"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
	config := object{"added_tokens_decoder": decoderMap(tokens), "clean_up_tokenization_spaces": false,
		"model_max_length": 2048, "tokenizer_class": fastClass, "chat_template": chat}
	for key, text := range special {
		config[key] = text
	}
	files["tokenizer_config.json"], files["special_tokens_map.json"] = marshal(config), marshal(special)
	return nil
}

// writeSPM copies one of the SentencePiece tokenizers in tokenizer/testdata and
// appends tokens to it.
func writeSPM(files map[string][]byte, dir string, size int, added []string, withJSON bool) error {
	names := []string{"tokenizer.model", "tokenizer_config.json", "special_tokens_map.json"}
	if withJSON {
		names = append(names, "tokenizer.json")
	}
	for _, name := range names {
		files[name] = mustRead(dir + "/" + name)
	}
	if len(added) == 0 {
		return nil
	}
	ids := object{}
	var tokens list
	for i, text := range added {
		ids[text] = size + i
		tokens = append(tokens, addedToken(size+i, text, true))
	}
	files["added_tokens.json"] = marshal(ids)
	config, err := parseObject(string(files["tokenizer_config.json"]))
	if err != nil {
		return err
	}
	decoder, _ := config["added_tokens_decoder"].(object)
	for id, t := range decoderMap(tokens) {
		decoder[id] = t
	}
	files["tokenizer_config.json"] = marshal(config)
	if !withJSON {
		return nil
	}
	whole, err := parseObject(string(files["tokenizer.json"]))
	if err != nil {
		return err
	}
	old, _ := whole["added_tokens"].(list)
	whole["added_tokens"] = append(old, tokens...)
	files["tokenizer.json"] = marshal(whole)
	return nil
}

// unigram reads the pieces and the character map of a valid SentencePiece model; see package tokenizer for the format.
func unigram(file string) (pieces list, charsMap []byte) {
	fields := func(b []byte, f func(number uint64, body []byte)) {
		for len(b) > 0 {
			tag, n := binary.Uvarint(b)
			b = b[n:]
			switch tag & 7 {
			case 0:
				_, n = binary.Uvarint(b)
			case 1:
				n = 8
			case 2:
				length, m := binary.Uvarint(b)
				f(tag>>3, b[m:m+int(length)])
				n = m + int(length)
			case 5:
				f(tag>>3, b[:4])
				n = 4
			}
			b = b[n:]
		}
	}
	fields(mustRead(file), func(number uint64, body []byte) {
		switch number {
		case 1:
			piece := list{"", 0.0}
			fields(body, func(number uint64, body []byte) {
				switch number {
				case 1:
					piece[0] = string(body)
				case 2:
					piece[1] = math.Float32frombits(binary.LittleEndian.Uint32(body))
				}
			})
			pieces = append(pieces, piece)
		case 3:
			fields(body, func(number uint64, body []byte) {
				if number == 2 {
					charsMap = body
				}
			})
		}
	})
	return pieces, charsMap
}

// unigramJSON is tokenizer.json of a unigram model.
func unigramJSON(tokens, vocab list, unk int, charsMap []byte, post object) []byte {
	meta := object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true}
	for i, piece := range vocab { // as published files have them: a 0 is written 0.0
		p := slices.Clone(piece.(list))
		if score, ok := p[1].(float64); ok && score == math.Trunc(score) {
			p[1] = json.Number(strconv.FormatFloat(score, 'f', 1, 64))
		}
		vocab[i] = p
	}
	return marshal(object{"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": tokens,
		"normalizer": object{"type": "Precompiled",
			"precompiled_charsmap": base64.StdEncoding.EncodeToString(charsMap)},
		"pre_tokenizer":  object{"type": "Sequence", "pretokenizers": list{object{"type": "WhitespaceSplit"}, meta}},
		"post_processor": post, "decoder": meta,
		"model": object{"type": "Unigram", "unk_id": unk, "vocab": vocab}})
}

func writeT5(files map[string][]byte) error {
	const file, extraIDs = "tiny-unigram-t5/spiece.model", 20 // published models have 100
	files["spiece.model"] = mustRead(file)
	pieces, charsMap := unigram(file)
	tokens := list{addedToken(0, "<pad>", true), addedToken(1, "</s>", true), addedToken(2, "<unk>", true)}
	var extra list
	for i := extraIDs - 1; i >= 0; i-- {
		text := fmt.Sprintf("<extra_id_%d>", i)
		tokens = append(tokens, addedToken(len(pieces), text, true))
		pieces = append(pieces, list{text, 0.0})
		extra = append(extra, text)
	}
	slices.Reverse(extra)
	files["tokenizer.json"] = unigramJSON(tokens, pieces, 2, charsMap,
		object{"type": "TemplateProcessing", "single": list{sequencePart("A", 0), specialPart("</s>", 0)},
			"pair": list{sequencePart("A", 0), specialPart("</s>", 0), sequencePart("B", 1),
				specialPart("</s>", 1)},
			"special_tokens": specialTokens(map[string]int{"</s>": 1})})
	files["tokenizer_config.json"] = marshal(object{"added_tokens_decoder": decoderMap(tokens),
		"additional_special_tokens": extra, "clean_up_tokenization_spaces": true,
		"eos_token": "</s>", "extra_ids": extraIDs, "model_max_length": 512, "pad_token": "<pad>",
		"tokenizer_class": "T5Tokenizer", "unk_token": "<unk>"})
	files["special_tokens_map.json"] = marshal(object{"additional_special_tokens": extra, "eos_token": "</s>",
		"pad_token": "<pad>", "unk_token": "<unk>"})
	return nil
}

func writeXLMR(files map[string][]byte) error {
	const file = "tiny-unigram-xlmr/sentencepiece.bpe.model"
	files["sentencepiece.bpe.model"] = mustRead(file)
	pieces, charsMap := unigram(file)
	vocab := list{list{"<s>", 0.0}, list{"<pad>", 0.0}, list{"</s>", 0.0}, list{"<unk>", 0.0}}
	vocab = append(append(vocab, pieces[3:]...), list{"<mask>", 0.0})
	mask := addedToken(len(vocab)-1, "<mask>", true)
	mask["lstrip"] = true
	tokens := list{addedToken(0, "<s>", true), addedToken(1, "<pad>", true), addedToken(2, "</s>", true),
		addedToken(3, "<unk>", true), mask}
	a, b, begin, end := sequencePart("A", 0), sequencePart("B", 0), specialPart("<s>", 0), specialPart("</s>", 0)
	files["tokenizer.json"] = unigramJSON(tokens, vocab, 3, charsMap,
		object{"type": "TemplateProcessing", "single": list{begin, a, end}, "pair": list{begin, a, end, end, b, end},
			"special_tokens": specialTokens(map[string]int{"<s>": 0, "</s>": 2})})
	special := object{"bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "mask_token": "<mask>",
		"pad_token": "<pad>", "sep_token": "</s>", "unk_token": "<unk>"}
	files["special_tokens_map.json"] = marshal(special)
	special["added_tokens_decoder"], special["clean_up_tokenization_spaces"] = decoderMap(tokens), true
	special["model_max_length"], special["tokenizer_class"] = 512, "XLMRobertaTokenizer"
	files["tokenizer_config.json"] = marshal(special)
	return nil
}

var bertWords = sync.OnceValue(func() []string {
	return strings.Split(strings.TrimSuffix(string(mustRead("tiny-wordpiece/vocab.txt")), "\n"), "\n")
})

func writeBert(files map[string][]byte) error {
	files["vocab.txt"] = mustRead("tiny-wordpiece/vocab.txt")
	ids := map[string]int{}
	for i, w := range bertWords() {
		ids[w] = i
	}
	var tokens list
	for _, text := range []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"} {
		tokens = append(tokens, addedToken(ids[text], text, true))
	}
	files["tokenizer.json"] = marshal(object{"version": "1.0", "truncation": nil, "padding": nil,
		"added_tokens": tokens,
		"normalizer": object{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
			"strip_accents": nil, "lowercase": true},
		"pre_tokenizer": object{"type": "BertPreTokenizer"},
		"post_processor": object{"type": "TemplateProcessing",
			"single": list{specialPart("[CLS]", 0), sequencePart("A", 0), specialPart("[SEP]", 0)},
			"pair": list{specialPart("[CLS]", 0), sequencePart("A", 0), specialPart("[SEP]", 0),
				sequencePart("B", 1), specialPart("[SEP]", 1)},
			"special_tokens": specialTokens(map[string]int{"[CLS]": ids["[CLS]"], "[SEP]": ids["[SEP]"]})},
		"decoder": object{"type": "WordPiece", "prefix": "##", "cleanup": true},
		"model": object{"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
			"max_input_chars_per_word": 100, "vocab": ids}})
	special := object{"cls_token": "[CLS]", "mask_token": "[MASK]", "pad_token": "[PAD]", "sep_token": "[SEP]",
		"unk_token": "[UNK]"}
	files["special_tokens_map.json"] = marshal(special)
	for k, v := range (object{"added_tokens_decoder": decoderMap(tokens), "clean_up_tokenization_spaces": true,
		"do_basic_tokenize": true, "do_lower_case": true,
		"model_max_length": 512, "never_split": nil, "strip_accents": nil, "tokenize_chinese_chars": true,
		"tokenizer_class": "BertTokenizer"}) {
		special[k] = v
	}
	files["tokenizer_config.json"] = marshal(special)
	return nil
}

func writeRoberta(files map[string][]byte) error {
	order := []string{"<s>", "<pad>", "</s>", "<unk>"}
	base := baseBPE()
	words := make([]string, len(base.Vocab))
	for text, id := range base.Vocab {
		words[id] = text
	}
	order = append(append(order, words...), "<mask>")
	vocab := map[string]int{}
	for i, text := range order {
		vocab[text] = i
	}
	var tokens list
	for i, text := range order[:4] {
		t := addedToken(i, text, true)
		t["normalized"] = true
		tokens = append(tokens, t)
	}
	mask := addedToken(len(order)-1, "<mask>", true)
	mask["lstrip"] = true
	tokens = append(tokens, mask)
	files["tokenizer.json"] = marshal(object{"version": "1.0", "truncation": nil, "padding": nil,
		"added_tokens": tokens, "normalizer": nil,
		"pre_tokenizer": byteLevel(true), "decoder": byteLevel(true), "model": bpeModel(vocab, base.merges(), false),
		"post_processor": object{"type": "RobertaProcessing", "sep": list{"</s>", 2}, "cls": list{"<s>", 0},
			"trim_offsets": true, "add_prefix_space": false}})
	files["vocab.json"], files["merges.txt"] = marshal(vocab), mergesFile(base.merges())
	special := object{"bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "mask_token": "<mask>",
		"pad_token": "<pad>", "sep_token": "</s>", "unk_token": "<unk>"}
	files["special_tokens_map.json"] = marshal(special)
	// RobertaTokenizer does not load with the reference's versions of transformers and tokenizers
	for k, v := range (object{"added_tokens_decoder": decoderMap(tokens), "add_prefix_space": false,
		"clean_up_tokenization_spaces": true, "errors": "replace",
		"model_max_length": 512, "tokenizer_class": fastClass, "trim_offsets": true}) {
		special[k] = v
	}
	files["tokenizer_config.json"] = marshal(special)
	return nil
}

// writeRWKV makes a World vocabulary: lines of id, Python literal, length in
// bytes; ids begin at 1.
func writeRWKV(files map[string][]byte) error {
	var b strings.Builder
	id := 0
	line := func(literal string, n int) {
		id++
		fmt.Fprintf(&b, "%d %s %d\n", id, literal, n)
	}
	for c := range 256 {
		switch {
		case c == '\'':
			line(`"'"`, 1)
		case c < 128:
			line(pythonString(string(rune(c))), 1)
		default:
			line(fmt.Sprintf(`b'\x%02x'`, c), 1)
		}
	}
	words := []string{"\n\n", " the", "the", "\t\t", `"a`, `\n`, "é", "我", "日本", "🚀", " return", "  ", "\r\n", "ü\n"}
	for i := 0; id+len(words) < 556; i++ {
		words = append(words, "w"+strconv.Itoa(i))
	}
	for _, w := range words {
		line(pythonString(w), len(w))
	}
	files["rwkv_vocab_v20230424.txt"] = []byte(b.String())
	files["tokenizer_config.json"] = marshal(object{"name_or_path": "rwkv-tokenizer", "add_prefix_space": false,
		"tokenizer_class": "RwkvTokenizer", "use_fast": false,
		"auto_map": object{"AutoTokenizer": list{"hf_rwkv_tokenizer.RwkvTokenizer", nil}}})
	files["special_tokens_map.json"] = marshal(object{"bos_token": "<s>", "eos_token": "<s>", "unk_token": "<s>"})
	return nil
}

// pythonString is Python's repr of a string without single quotes.
func pythonString(s string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, c := range s {
		switch {
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\\':
			b.WriteString(`\\`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// mustRead reads a file of tokenizer/testdata. The folder is found from the
// working directory, which is in the repository in tests.
func mustRead(name string) []byte {
	data, err := os.ReadFile(filepath.Join(testdata(), filepath.FromSlash(name)))
	if err != nil {
		panic(err)
	}
	return data
}

var testdata = sync.OnceValue(func() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "tokenizer", "testdata")
		} else if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
			panic("hftest: not in the repository")
		}
		dir = filepath.Dir(dir)
	}
})
