package arch

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

var _ = register(qwen2, qwen2moe, qwen3, qwen3moe, qwen2vl, qwen3vl, qwen3vlmoe, qwen3asr, qwen3omni)

// qwen2 is Qwen 1.5, 2 and 2.5. Source: the Qwen2 class of the reference's
// converter.
var qwen2 = &table.Arch{
	Name: "qwen2",
	Classes: []string{"Qwen2ForCausalLM", "Qwen2Model", "KORMoForCausalLM", "DotsOCRForCausalLM",
		"Qwen2AudioForConditionalGeneration",
		"AudioFlamingo3ForConditionalGeneration"},
	Tokenizer: parts.SPMOrBPE,
	Fused:     table.FusedQKV,
	Metadata:  slices.Concat(parts.CommonRows, []table.Row{parts.PoolingRow}),
	Unused:    parts.MultimodalKeys,
	Expect:    []table.Expect{parts.SiLU, parts.Expect("mask_type"), parts.Expect("use_mrope", "false")},
	Rename:    parts.HeadlessNames,
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, []table.TensorRow{ // KORMo's names
		{HF: "model.layers.{bid}.pre_attention_layernorm", GGUF: "blk.{bid}.attn_norm", Optional: true},
		{HF: "model.layers.{bid}.pre_mlp_layernorm", GGUF: "blk.{bid}.ffn_norm", Optional: true},
	}, parts.AttentionRows(table.MayBias, table.NoBias), parts.MLPRows),
	Graph: parts.Decoder(graph.RMS, parts.GQA(parts.NeoX), parts.SwiGLU),
}

// qwen2moe is Qwen 1.5 and 2 with experts.
var qwen2moe = &table.Arch{
	Name:      "qwen2moe",
	Classes:   []string{"Qwen2MoeForCausalLM"},
	Body:      table.Body{Classes: []string{"Qwen2MoeModel"}, Prefix: "model."},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata:  parts.QwenMoERows,
	Expect: []table.Expect{parts.SiLU, parts.Expect("norm_topk_prob", "false"),
		parts.Expect("decoder_sparse_step", "1")},
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.MayBias, table.NoBias),
		parts.ExpertRows, parts.FusedExpertRows, parts.QwenSharedRows),
	Graph: &graph.Model{
		Dims: graph.Dims{"n_ff_exp": parts.SharedWidth, "n_ff_shexp": parts.SharedExpertOrWhole},
		Norm: graph.RMS, Layer: parts.PreNorm(parts.GQA(parts.NeoX), parts.Experts(parts.Router, graph.GatedShared)),
		Final: parts.OutputNorm, Head: graph.LM{},
	},
}

// qwen3 is Qwen 3, its embedding models and its rerankers.
var qwen3 = &table.Arch{
	Name:      "qwen3",
	Classes:   []string{"Qwen3ForCausalLM", "Qwen3Model", "StepVLForConditionalGeneration"},
	Config:    config.Rules{Outer: []string{"StepVLForConditionalGeneration"}},
	Tokenizer: parts.SPMOrBPE,
	Fused:     table.FusedQKV,
	Metadata:  slices.Concat(qwen2.Metadata, rerankRows),
	Unused:    slices.Concat(parts.MultimodalKeys, stepVLKeys),
	Expect:    []table.Expect{parts.SiLU},
	Rename:    parts.HeadlessNames,
	Tensors: slices.Concat(rerankHead, parts.NormRows, parts.AttentionRows(table.MayBias, table.NoBias),
		parts.QKNormRows, parts.MLPRows),
	Graph: &graph.Model{
		Folds: true,
		Norm:  graph.RMS, Layer: parts.PreNorm(parts.GQA(parts.QKNorm, parts.NeoX), parts.SwiGLU),
		Final: parts.OutputNorm, Head: graph.LM{Rank: graph.LastSoftmax{}},
	},
}

// stepVLKeys are keys of Step3-VL's vision encoder.
var stepVLKeys = []string{"understand_projector_stride", "vision_select_layer", "image_token_len", "patch_token_len",
	"im_start_token", "im_end_token",
	"im_patch_token", "use_im_start_end"}

// qwen3moe is Qwen 3 with experts.
var qwen3moe = &table.Arch{
	Name:      "qwen3moe",
	Classes:   []string{"Qwen3MoeForCausalLM"},
	Body:      table.Body{Classes: []string{"Qwen3MoeModel"}, Prefix: "model."},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata:  parts.QwenMoERows,
	Expect: []table.Expect{parts.SiLU, parts.Expect("norm_topk_prob", "true"), parts.Expect("decoder_sparse_step", "1"),
		parts.Expect("use_qk_norm", "true")},
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.MayBias, table.NoBias),
		parts.QKNormRows, parts.ExpertRows, parts.FusedExpertRows),
	Graph: &graph.Model{
		Folds: true,
		Dims:  graph.Dims{"n_ff_exp": parts.SharedWidth},
		Norm:  graph.RMS,
		Layer: parts.PreNorm(parts.GQA(parts.QKNorm, parts.NeoX), parts.Experts(parts.RouterTopK, graph.NoShared)),
		Final: parts.OutputNorm, Head: graph.LM{},
	},
}

// qwen2vl is the language model of Qwen 2 VL and 2.5 VL. Source: the Qwen-VL
// classes of the reference's converter.
var qwen2vl = &table.Arch{
	Name: "qwen2vl",
	Classes: []string{"Qwen2VLForConditionalGeneration", "Qwen2_5_VLForConditionalGeneration", "Qwen2VLModel",
		"Qwen2_5OmniModel"},
	Config:       config.Rules{Types: []string{"qwen2_vl", "qwen2_5_vl"}, Flat: true},
	Tokenizer:    parts.SPMOrBPE,
	Fused:        table.FusedQKV,
	RopeSections: true,
	Metadata:     parts.CommonRows,
	Unused:       slices.Concat(parts.MultimodalKeys, omniKeys),
	Expect:       []table.Expect{parts.SiLU},
	Rename:       slices.Concat(thinkerNames, parts.HeadlessNames),
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.MayBias, table.NoBias),
		parts.MLPRows),
	Graph: &graph.Model{
		Reads: []string{"rope.dimension_sections!"},
		Norm:  graph.NormKind{Eps: "0"}, // the runtime does not read the key
		Layer: parts.PreNorm(parts.GQA(parts.NeoX), parts.SwiGLU), Final: parts.OutputNorm, Head: graph.LM{},
		Unread: []string{"attention.layer_norm_rms_epsilon"},
	},
}

// omniKeys are keys of the talker of Qwen's Omni models, and of tokens.
var omniKeys = []string{"enable_audio_output", "enable_talker", "talker_config", "token2wav_config",
	"code2wav_config", "init_std",
	"assistant_token_id", "im_end_token_id", "im_start_token_id", "system_token_id", "user_token_id",
	"tts_bos_token_id", "tts_eos_token_id", "tts_pad_token_id"}

// thinkerNames rename tensors of Omni models, whose language model is the thinker.
var thinkerNames = []table.Rename{{Prefix: "thinker.", With: ""}}

// qwen3vl is the language model of Qwen 3 VL, whose first layers add states of some vision encoder layers (DeepStack).
var qwen3vl = &table.Arch{
	Name:         "qwen3vl",
	Classes:      []string{"Qwen3VLForConditionalGeneration"},
	Tokenizer:    parts.SPMOrBPE,
	Fused:        table.FusedQKV,
	RopeSections: true,
	Metadata:     slices.Concat(qwen3.Metadata, []table.Row{{Key: "n_deepstack_layers", Derive: deepstackLayers}}),
	Unused:       qwen3vlUnused,
	Expect:       []table.Expect{parts.SiLU},
	Rename:       slices.Concat(thinkerNames, parts.HeadlessNames),
	Tensors:      qwen3.Tensors,
	Graph: &graph.Model{
		Reads: []string{"rope.dimension_sections!"},
		Norm:  graph.RMS,
		Layer: parts.PreNorm(parts.GQA(parts.QKNorm, graph.RoPE{Sections: graph.TakingTurn}), parts.SwiGLU),
		Final: parts.OutputNorm, Head: graph.LM{Rank: graph.LastSoftmax{}}, Unread: []string{"n_deepstack_layers"},
	},
}

// qwen3vlUnused: the runtime interleaves the sections of this architecture.
var qwen3vlUnused = slices.Concat(parts.MultimodalKeys, omniKeys,
	[]string{"rope_scaling.mrope_interleaved", "rope_scaling.interleaved", "support_languages"})

// qwen3vlmoe is qwen3vl with experts, which are stored transposed: [experts, hidden, 2*width], gate first, and
// [experts, width, hidden].
var qwen3vlmoe = &table.Arch{
	Name:         "qwen3vlmoe",
	Classes:      []string{"Qwen3VLMoeForConditionalGeneration"},
	Tokenizer:    tokenizer.BPE{},
	Fused:        table.FusedQKV,
	RopeSections: true,
	Metadata:     slices.Concat(qwen3moe.Metadata, []table.Row{{Key: "n_deepstack_layers", Derive: deepstackLayers}}),
	Unused:       qwen3vlUnused,
	Expect:       qwen3moe.Expect,
	Rename:       slices.Concat(thinkerNames, parts.HeadlessNames),
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.MayBias, table.NoBias),
		parts.QKNormRows, parts.ExpertRows,
		withTranspose(parts.FusedExpertRows)),
	Graph: &graph.Model{
		Reads: []string{"rope.dimension_sections!"},
		Dims:  graph.Dims{"n_ff_exp": parts.SharedWidth},
		Norm:  graph.RMS,
		Layer: parts.PreNorm(parts.GQA(parts.QKNorm, graph.RoPE{Sections: graph.TakingTurn}),
			parts.Experts(parts.RouterTopK, graph.NoShared)),
		Final: parts.OutputNorm, Head: graph.LM{}, Unread: []string{"n_deepstack_layers"},
	},
}

// qwen3asr and qwen3omni are the language models of Qwen 3 ASR and Omni, without DeepStack layers in the file.
var (
	qwen3asr  = withAudioEncoder(qwen3vl, "Qwen3ASRForConditionalGeneration", qwen3ASRTokens)
	qwen3omni = withAudioEncoder(qwen3vlmoe, "Qwen3OmniMoeForConditionalGeneration", qwen3OmniTokens)
)

func withAudioEncoder(model *table.Arch, class string, tok tokenizer.Rules) *table.Arch {
	return &table.Arch{
		Name:         model.Name,
		Classes:      []string{class},
		Tokenizer:    tok,
		Fused:        model.Fused,
		RopeSections: true,
		Metadata:     parts.Override(model.Metadata, table.Row{Key: "n_deepstack_layers", Const: gguf.Uint32(0)}),
		Unused:       model.Unused,
		Expect:       model.Expect,
		Rename:       model.Rename,
		Tensors:      model.Tensors,
		Graph:        model.Graph,
	}
}

// withTranspose returns rows with a transform that transposes the matrices of a stack.
func withTranspose(list []table.TensorRow) []table.TensorRow {
	list = slices.Clone(list)
	for i := range list {
		list[i].PerSource = parts.TransposeLast
	}
	return list
}

// deepstackLayers writes the number of vision encoder layers with DeepStack.
func deepstackLayers(c *config.View) (gguf.Value, bool, error) {
	const key = "deepstack_visual_indexes"
	vision := c.Sub("vision_config")
	if !vision.Present(key) && c.KnownType() != "" {
		return gguf.Uint32(3), true, nil // the default of transformers
	}
	list, _, err := vision.Ints(key)
	return gguf.Uint32(uint32(len(list))), err == nil, err
}

// rerankerFiles are the source of Facts.Reranker and Facts.Tokens.
var rerankerFiles = &config.Source{Read: readReranker}

var rerankerNames = []string{"qwen3-reranker", "qwen3-vl-reranker"}

// readReranker determines whether the model is a reranker. A reranker of the Qwen 3 family is a language model prompted
// with the question whether a document answers a query; only the output rows of "yes" and "no" matter. It is recognized
// by names and model card, since config.json has no such key. Source: the Qwen3 class of the reference's converter.
func readReranker(files config.Files, v *config.View, f *config.Facts) error {
	names := []string{f.Dir, v.Class}
	for _, key := range []string{"_name_or_path", "model_type"} {
		if s, ok := v.Raw[key].(string); ok {
			names = append(names, s)
		}
	}
	for _, hint := range rerankerNames {
		for _, name := range names {
			f.Reranker = f.Reranker || strings.Contains(strings.ToLower(name), hint)
		}
	}
	if !f.Reranker {
		data, err := files.ReadFile("README.md")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		card := strings.ToLower(string(data))
		for _, hint := range rerankerNames {
			f.Reranker = f.Reranker || strings.Contains(card, "# "+hint)
		}
	}
	if !f.Reranker {
		return nil
	}
	var tok struct {
		Model struct{ Vocab map[string]int64 }
		Added []struct {
			ID      int64
			Content string
		} `json:"added_tokens"`
	}
	if _, err := config.ReadJSON(files, "tokenizer.json", &tok); err != nil {
		return err
	}
	f.Tokens = map[string]int64{}
	for _, t := range []string{"yes", "no"} {
		for _, added := range tok.Added {
			if _, ok := f.Tokens[t]; !ok && added.Content == t {
				f.Tokens[t] = added.ID
			}
		}
		if id, ok := tok.Model.Vocab[t]; ok {
			f.Tokens[t] = id
		}
	}
	return nil
}

// isReranker is the condition that the model is a reranker.
func isReranker(l table.Layer) (bool, error) { return l.Facts.Reranker, nil }

// ifReranker returns d for rerankers, no value for other models.
func ifReranker(d table.Derive) table.Derive {
	return func(c *config.View) (v gguf.Value, ok bool, err error) {
		if !c.Facts.Reranker {
			return v, false, nil
		}
		return d(c)
	}
}

// rerankRows are the metadata of rerankers.
var rerankRows = []table.Row{
	{Key: "pooling_type", Derive: ifReranker(parts.Constant(gguf.Uint32(parts.PoolRank))), Facts: rerankerFiles},
	{Key: "classifier.output_labels", Derive: ifReranker(parts.Constant(gguf.Strings([]string{"yes", "no"})))},
	{Key: "tokenizer.chat_template.rerank", Derive: ifReranker(parts.Constant(gguf.String(rerankTemplate)))},
	{Key: "tokenizer.chat_templates", Derive: ifReranker(parts.Constant(gguf.Strings([]string{"rerank"})))},
}

// rerankTemplate is the prompt that the models were trained with, from their model cards.
const rerankTemplate = "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and " +
	"the Instruct provided. " +
	"Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n" +
	"<|im_start|>user\n<Instruct>: Given a web search query, retrieve relevant passages that answer the " +
	"query\n<Query>: {query}\n<Document>: {document}<|im_end|>\n" +
	"<|im_start|>assistant\n<think>\n\n</think>\n\n"

// rerankHead are EmbedRows of the Qwen 3 family: the classifier of a reranker is taken from the output matrix, or from
// a tied embedding.
var rerankHead = []table.TensorRow{
	{HF: "model.embed_tokens", GGUF: "token_embd", If: parts.Not(parts.Both(isReranker, parts.Tied))},
	{HF: "model.embed_tokens", Split: []table.Part{{GGUF: "cls.output", Transform: yesNo}, {GGUF: "token_embd"}},
		If: parts.Both(isReranker, parts.Tied)},
	{HF: "model.norm", GGUF: "output_norm"},
	{HF: "lm_head", GGUF: "output", Optional: true, If: parts.Not(parts.Both(isReranker, parts.Not(parts.Tied)))},
	{HF: "lm_head", GGUF: "cls.output", Transform: yesNo, If: parts.Both(isReranker, parts.Not(parts.Tied))},
}

// yesNo takes the rows of the tokens "yes" and "no".
var yesNo = &table.Transform{Name: "yes-no", Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
	ne := s.NE()
	ids := [2]int64{}
	for i, token := range []string{"yes", "no"} {
		id, ok := l.Facts.Tokens[token]
		if !ok || len(ne) != 2 || id < 0 || id >= ne[1] {
			return nil, fault.Errorf(fault.Broken,
				"tokenizer.json: want a token %q with a row in dimensions %s, for a reranker", token, gguf.Shape(ne))
		}
		ids[i] = id
	}
	return rows.Gather(s, []int64{ne[0], 2}, func(i int64) int64 { return ids[i] })
}}

// qwen3ASRTokens has chatML in place of the template for transcriptions. Of both, the token
// that ends a turn is bos and eos.
var (
	qwen3ASRTokens = tokenizer.Either{First: parts.SPMOrBPE.First, Else: parts.SPMOrBPE.Else, Then: tokenizer.Steps{
		tokenizer.Set{Key: "tokenizer.chat_template", Value: gguf.String(chatML)}, turnEnds}}
	qwen3OmniTokens = tokenizer.BPE{Then: tokenizer.Steps{turnEnds}}

	turnEnds = tokenizer.Token{Text: "<|im_end|>", Kinds: []string{"bos", "eos"}, Added: true}
)

// chatML is the template of turns between <|im_start|> and <|im_end|>.
const chatML = `{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '` +
	`<|im_end|>' + '\n'}}{% endfor %}` +
	`{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`
