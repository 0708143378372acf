package tokenizer

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"

	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
	"ggforge/tokenizer/internal/hf"
)

// tekkenSpecial are the special tokens of a tekken.json that lists none.
var tekkenSpecial = []string{"<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
	"[TOOL_RESULTS]",
	"[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]",
	"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"}

// tekkenTemplates has llama.cpp's names of the chat formats of Mistral's tokenizer versions. The templates of later
// versions are in llama.cpp's source tree, which ggforge does not have.
var tekkenTemplates = map[string]string{"v3": "mistral-v3-tekken", "v7": "mistral-v7-tekken"}

// Tekken is the tekken.json of checkpoints in Mistral's own format, with the template of chat_template.jinja. Source:
// _set_vocab_mistral (conversion/base.py) and gguf-py's MistralVocab:
//
//	config          default_vocab_size, default_num_special_tokens, version
//	special_tokens  rank, token_str; filled up with <SPECIAL_i>      ids from 0 on
//	vocab           rank, token_bytes (base64)                       ids after them
//
// Vocabulary entries beyond default_vocab_size are not used.
type Tekken struct{}

func (Tekken) load(f *files, v *Vocab, opt Options) error {
	if !isFile(f.dir, tekkenFile) {
		return unsupportedf(
			"no %s: other tokenizers of Mistral's own format are not read; convert the checkpoint in Hugging Face's format", tekkenFile)
	}
	return f.tekken(v, opt, true)
}

// tekken loads tekken.json; jinja: chat_template.jinja counts.
func (f *files) tekken(v *Vocab, opt Options, jinja bool) error {
	root, err := readObject(f.dir, tekkenFile)
	if err != nil {
		return err
	}
	config, _ := root.Get("config").(*pyjson.Object)
	n, ok1 := count(config.Get("default_vocab_size"))
	nSpecial, ok2 := count(config.Get("default_num_special_tokens"))
	version, ok3 := config.Get("version").(string)
	if !ok1 || !ok2 || !ok3 {
		return badf(tekkenFile, "config: want default_vocab_size, default_num_special_tokens and version")
	}
	template, ok := tekkenTemplates[version]
	if jinja && isFile(f.dir, chatJinjaFile) {
		ok = true // the model has a template
		if template, err = readText(f.dir, chatJinjaFile); err != nil {
			return err
		}
	}
	if !ok {
		return unsupportedf(
			"%s: version %s: the chat template that belongs to it is not part of this program; %s next to it is read instead",
			tekkenFile, version, jsonFile)
	}
	if err := tekkenSpecials(v, root, nSpecial); err != nil {
		return err
	}
	r, err := tekkenRanks(root, n-nSpecial)
	if err != nil {
		return err
	}
	merges, err := r.splits()
	if err != nil {
		return err
	}
	for _, token := range r.order {
		v.Tokens = append(v.Tokens, hf.ByteLevelText(token))
		v.Types = append(v.Types, Normal)
	}

	v.Model, v.Pre = "gpt2", "tekken"
	v.kvs.Set(keyModel, gguf.String(v.Model))
	v.kvs.Set(keyPre, gguf.String(v.Pre))
	if len(merges) > 0 {
		v.kvs.Set(keyMerges, gguf.Strings(merges))
	}
	for _, e := range []Named{{"bos", "<s>"}, {"eos", "</s>"}, {"unk", "<unk>"}, {"pad", "<pad>"}} {
		id := slices.Index(v.Tokens[:nSpecial], e.Text)
		if id < 0 {
			return badf(tekkenFile, "no special token %q", e.Text)
		}
		v.kvs.Set(specialKey(e.Kind).id, gguf.Uint32(uint32(id)))
	}
	types := make([]int32, len(v.Types))
	for id, typ := range v.Types {
		types[id] = int32(typ)
	}
	v.kvs.Set(keyTokens, gguf.Strings(v.Tokens))
	v.kvs.Set(keyScores, gguf.Int32s(make([]int32, len(v.Types)))) // integers there, too
	v.kvs.Set(keyTokenTypes, gguf.Int32s(types))
	if opt.Arch != "" {
		v.kvs.Set(gguf.ArchKey(opt.Arch, "vocab_size"), gguf.Uint32(uint32(len(v.Tokens))))
	}
	v.kvs.Set(keyAddBOS, gguf.Bool(true))
	v.kvs.Set(specialKey("eos").add, gguf.Bool(false))
	v.kvs.Set(keyChatTemplate, gguf.String(template))
	return nil
}

// tekkenSpecials appends n special tokens.
func tekkenSpecials(v *Vocab, root *pyjson.Object, n int) error {
	texts := tekkenSpecial
	if value := root.Get("special_tokens"); value != nil {
		list, ok := value.([]any)
		if !ok {
			return badf(tekkenFile, "special_tokens: want a list, got %s", pyjson.Describe(value))
		}
		texts = nil
		for i, e := range list {
			o, _ := e.(*pyjson.Object)
			text, ok := o.Get("token_str").(string)
			if rank, isRank := count(o.Get("rank")); !ok || !isRank || rank != i {
				return badf(tekkenFile, "special_tokens[%d]: want a token_str and the rank %d", i, i)
			}
			texts = append(texts, text)
		}
	}
	if len(texts) > n {
		return badf(tekkenFile, "%d special tokens, but default_num_special_tokens is %d", len(texts), n)
	}
	seen := make(map[string]bool, n)
	for i := range n {
		text := fmt.Sprintf("<SPECIAL_%d>", i)
		if i < len(texts) {
			text = texts[i]
		}
		if seen[text] {
			return badf(tekkenFile, "special token %q repeated", text)
		}
		seen[text] = true
		v.Tokens, v.Types = append(v.Tokens, text), append(v.Types, Control)
	}
	return nil
}

// tekkenRanks returns the first n entries of the vocabulary.
func tekkenRanks(root *pyjson.Object, n int) (*ranks, error) {
	list, _ := root.Get("vocab").([]any)
	if n < 0 || n > len(list) {
		return nil, badf(tekkenFile, "vocab: want %d entries or more, got %d", n, len(list))
	}
	r := &ranks{file: tekkenFile, rank: make(map[string]int, n)}
	for i, e := range list[:n] {
		o, _ := e.(*pyjson.Object)
		text, _ := o.Get("token_bytes").(string)
		token, err := base64.StdEncoding.DecodeString(text)
		rank, isRank := count(o.Get("rank"))
		if err != nil || len(token) == 0 || len(token) > maxRankBytes || !isRank || rank != i {
			return nil, badf(tekkenFile, "vocab[%d]: want token_bytes, 1 to %d in base64, and the rank %d", i,
				maxRankBytes, i)
		}
		if _, ok := r.rank[string(token)]; ok || i < 256 && string(token) != string([]byte{byte(i)}) {
			return nil, badf(tekkenFile,
				"vocab[%d]: token %q repeated or out of place: the first 256 are the bytes in order", i, token)
		}
		r.rank[string(token)] = i
		r.order = append(r.order, string(token))
	}
	return r, nil
}

// splits returns as merges, for each token, all pairs of tokens that it consists of, lower ranks first.
func (r *ranks) splits() ([]string, error) {
	var merges []string
	size, room := 0, 1<<16
	for _, token := range r.order {
		room += maxSplits * len(token)
	}
	for i, token := range r.order {
		if i < 256 {
			continue
		}
		type pair struct{ left, right int }
		var pairs []pair
		for cut := 1; cut < len(token); cut++ {
			left, ok1 := r.rank[token[:cut]]
			right, ok2 := r.rank[token[cut:]]
			if ok1 && ok2 {
				pairs = append(pairs, pair{left, right})
			}
		}
		if len(pairs) == 0 {
			return nil, badf(r.file, "vocab[%d]: token %q is not a merge of two others", i, token)
		}
		slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Or(a.left-b.left, a.right-b.right) })
		if size += len(pairs) * (len(token) + 1); size > room {
			return nil, badf(r.file, "vocab: more than %d bytes of merges", room)
		}
		for _, p := range pairs {
			merges = append(merges, hf.ByteLevelText(r.order[p.left])+" "+hf.ByteLevelText(r.order[p.right]))
		}
	}
	return merges, nil
}
