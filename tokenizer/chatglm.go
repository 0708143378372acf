package tokenizer

import (
	"strconv"
	"strings"
)

// ChatGLM is BPE with the tokens Named, or the tokenizer.model of ChatGLM3. Where that is the only vocabulary, as in
// ChatGLM2, the reference takes ChatGLM3 by its name and refuses the others: it looks for a fingerprint, and knows none.
// Source: ChatGLMModel (conversion/chatglm.py).
type ChatGLM struct{ Named []Named }

func (c ChatGLM) load(f *files, v *Vocab, opt Options) error {
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
	return BPE{Named: c.Named}.load(f, v, opt)
}

// glm3Special are the tokens that ChatGLM3 has after the tokens of tokenizer.model.
var glm3Special = []string{"[MASK]", "[gMASK]", "[sMASK]", "sop", "eop", "<|system|>", "<|user|>", "<|assistant|>",
	"<|observation|>"}

// loadChatGLM3 follows ChatGLMModel.set_vocab_chatglm3 (conversion/chatglm.py).
func loadChatGLM3(f *files, v *Vocab, opt Options) error {
	m, err := f.readModel(spmFile)
	if err != nil {
		return err
	}
	if len(m.pieces) < 3 || m.pieces[0].typ != Unknown || m.pieces[1].typ != Control || m.pieces[2].typ != Control {
		return badf(spmFile, "want the unknown piece first, and bos and eos after it")
	}
	n, err := f.integer("padded_vocab_size", 0)
	if err != nil {
		return err
	}
	if used := len(m.pieces) + len(glm3Special); n < used || n > maxVocab {
		return badf(modelFile, "padded_vocab_size %d, want %d to %d", n, used, maxVocab)
	}
	if err := m.rows(v, spmFile, Options{}); err != nil {
		return err
	}
	v.Tokens[0], v.Tokens[1], v.Tokens[2] = "<unk>", "<bos>", "<eos>"
	for _, text := range glm3Special {
		v.append(text, 0, Control)
	}
	for id := len(v.Tokens); id < n; id++ {
		v.append("[PAD"+strconv.Itoa(id)+"]", 0, Unused)
	}
	v.Model, v.Pre = "llama", "chatglm-spm"
	v.writeRows()
	return f.writeSpecial(v, opt)
}
