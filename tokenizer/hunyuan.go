package tokenizer

import (
	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
)

// hyNamed are HunYuan's special tokens before <|extra_0|>; the first follows
// the last rank.
var hyNamed = []string{"<|endoftext|>", "<|startoftext|>", "<|bos|>", "<|eos|>", "<|pad|>"}

// hunYuan loads the parts that the two rule sets of HunYuan share: rows, merges and special tokens from hy.tiktoken.
// The vocabulary cannot have other tokens.
func (f *files) hunYuan(v *Vocab, opt Options) error {
	r, err := f.readRanks(hyFile)
	if err != nil {
		return err
	}
	merges, err := r.merges(false)
	if err != nil {
		return err
	}
	n := opt.VocabSize - len(r.order) - len(hyNamed)
	if n != hyExtras && n != hyExtras-1 {
		return badf(hyFile, "%d tokens, but config.json says vocab_size %d: want %d or %d special tokens more",
			len(r.order), opt.VocabSize, len(hyNamed)+hyExtras-1, len(hyNamed)+hyExtras)
	}
	if err := r.rows(v, opt.VocabSize, len(r.order),
		append(hyNamed[:len(hyNamed):len(hyNamed)], extras(n)...)); err != nil {
		return err
	}
	if err := r.setPre(v, opt, qwenWords); err != nil {
		return err
	}
	return f.writeRanks(v, opt, merges)
}

// writeRanks writes rows that are complete, their merges and the special tokens.
func (f *files) writeRanks(v *Vocab, opt Options, merges []string) error {
	v.writeRows()
	if len(merges) > 0 {
		v.kvs.Set(keyMerges, gguf.Strings(merges))
	}
	s, err := f.loadSpecial(v, opt, specialKinds, -1)
	if err != nil {
		return err
	}
	return s.write(v)
}

// loadHunYuanMoE follows HunYuanMoEModel (conversion/hunyuan.py).
func loadHunYuanMoE(f *files, v *Vocab, opt Options) error {
	if err := f.hunYuan(v, opt); err != nil {
		return err
	}
	v.kvs.Set(specialKey("bos").id, gguf.Uint32(hyBOS))
	return nil
}

// loadHunYuan follows HunYuanModel (conversion/hunyuan.py), for the dense models.
func loadHunYuan(f *files, v *Vocab, opt Options) error {
	if f.json == nil {
		if err := f.hunYuan(v, opt); err != nil {
			return err
		}
		hidden, err := f.integer("hidden_size", 0)
		if err != nil {
			return err
		}
		if hidden == 4096 {
			v.kvs.Set(specialKey("bos").id, gguf.Uint32(hyDenseBOS))
		}
	} else {
		if err := f.base(v, opt); err != nil {
			return err
		}
		kinds := specialKinds
		if pad, ok := pyjson.Integer(f.member("pad_token_id")); ok && pad.Sign() < 0 {
			kinds = []string{"bos", "eos", "unk", "sep", "cls", "mask"}
		}
		v.Model = "gpt2"
		if err := f.writeGPT2(v, opt, kinds, nil); err != nil {
			return err
		}
	}
	if f.member("eod_token_id") != nil {
		if err := v.writeConfigID("eos", "eod_token_id", f.member("eod_token_id")); err != nil {
			return err
		}
	}
	const generation = "generation_config.json"
	o, err := readObjectIfFile(f.dir, generation)
	if err != nil {
		return err
	}
	if list, _ := o.Get("eos_token_id").([]any); len(list) >= 2 {
		return v.writeConfigID("eot", generation+": eos_token_id", list[0])
	}
	return nil
}
