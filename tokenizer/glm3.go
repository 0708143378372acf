package tokenizer

import "strconv"

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
